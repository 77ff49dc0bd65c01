"""Shows on standard error how far the arms of trials are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from shapleyprio.lab.trial.running import ArmRun, ArmsWatch

LINE_EVERY_SECONDS = 60
"""Where standard error is no terminal."""


@contextmanager
def watching() -> Iterator[ArmsWatch]:
    """Shows bars on a terminal, else a line a minute for each arm that runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (TextColumn("{task.description:24}"), BarColumn(), TextColumn("{task.fields[done]}"))
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def watch(runs: Sequence[ArmRun]) -> None:
            for run in runs:
                if run.name not in tasks:
                    total = run.conditions.workload.window.length
                    tasks[run.name] = progress.add_task(run.name, total=total, done="")
                progress.update(
                    tasks[run.name], completed=run.progress.second, done=progress_text(run)
                )

        yield watch


def _lines() -> ArmsWatch:
    last = time.monotonic()

    def watch(runs: Sequence[ArmRun]) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY_SECONDS:
            last = time.monotonic()
            for run in runs:
                if run.progress.doing not in {"waiting", "stopped"}:
                    click.echo(f"shapleyprio: {run.name}: {progress_text(run)}", err=True)

    return watch


def progress_text(run: ArmRun) -> str:
    """Says how far an arm is."""
    progress, conditions = run.progress, run.conditions
    if progress.doing != "running":
        return progress.doing
    jobs, length = len(conditions.workload.job), conditions.workload.window.length
    left = length / conditions.speed
    if progress.second > 0:
        left = progress.real_seconds * (length / progress.second - 1)
    return f"{progress.submitted:,} of {jobs:,} jobs, {countdown(round(left))} left"


def countdown(seconds: int) -> str:
    """Returns the time left as minutes and seconds.

    >>> countdown(125)
    '2:05'
    """
    return f"{seconds // 60}:{seconds % 60:02}"
