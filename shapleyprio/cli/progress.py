"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

Told = Callable[[int], None]
"""Is told how much is done so far."""


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int | None], Told]]:
    """Makes bars: what is done, and of how much if that is known -> how to tell of progress.

    Nothing is shown where standard error is no terminal.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:15}"), BarColumn(), TaskProgressColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as progress:

        def bar(what: str, total: int | None) -> Told:
            task = progress.add_task(what, total=total)
            return lambda done: progress.update(task, completed=done)

        yield bar
