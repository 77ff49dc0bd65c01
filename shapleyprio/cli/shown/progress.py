"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from shapleyprio.replay.progress import ProgressCallback

ProgressBar = Callable[[str, int | None], ProgressCallback]
"""Makes a bar: name of the work, how much there is if that is known."""


@contextmanager
def progress_bars() -> Iterator[ProgressBar]:
    """Yields a maker of progress bars.

    Nothing is shown where standard error is no terminal.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:15}"), BarColumn(), TaskProgressColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as progress:

        def bar(what: str, total: int | None) -> ProgressCallback:
            task = progress.add_task(what, total=total)
            return lambda done: progress.update(task, completed=done)

        yield bar
