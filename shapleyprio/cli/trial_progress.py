"""Shows on standard error how far the arms of trials are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from shapleyprio.trial.side_by_side import Run, Watch

LINE_EVERY_SECONDS = 60
"""Where standard error is no terminal."""


@contextmanager
def watching() -> Iterator[Watch]:
    """Bars on a terminal, else a line a minute for each arm that runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (TextColumn("{task.description:24}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def watch(runs: Sequence[Run]) -> None:
            for run in runs:
                if run.name not in tasks:
                    total = run.conditions.workload.window.length
                    tasks[run.name] = progress.add_task(run.name, total=total, told="")
                progress.update(tasks[run.name], completed=run.stage.second, told=told_of(run))

        yield watch


def _lines() -> Watch:
    last = time.monotonic()

    def watch(runs: Sequence[Run]) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY_SECONDS:
            last = time.monotonic()
            for run in runs:
                if run.stage.doing not in {"waiting", "stopped"}:
                    click.echo(f"shapleyprio: {run.name}: {told_of(run)}", err=True)

    return watch


def told_of(run: Run) -> str:
    """How far an arm is, in words."""
    stage, conditions = run.stage, run.conditions
    if stage.doing != "running":
        return stage.doing
    jobs, length = len(conditions.workload.job), conditions.workload.window.length
    left = (length - stage.second) // conditions.speed
    return f"{stage.submitted:,} of {jobs:,} jobs, {left // 60}:{left % 60:02} left"
