"""Runs arms beside each other, and ends them all if one fails or the trial is interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

from shapleyprio.lab.trial.running import ArmRun, Trace, run_arm

WATCH_SECONDS = 0.5


ArmsWatch = Callable[[Sequence[ArmRun]], None]
"""Called now and then; the runs' progress says how far each is."""

ArmFinished = Callable[[ArmRun, Trace], None]
"""Called when an arm has come to its end."""


def run_side_by_side(
    runs: Sequence[ArmRun],
    *,
    directory: Path,
    at_once: int,
    watch: ArmsWatch,
    finished: ArmFinished,
) -> None:
    """Runs each in a directory and on ports of its own.

    Args:
        runs: in the order in which they begin.
        directory: each one's is below it, under its name.
        at_once: how many run beside each other at most.
        watch: called now and then.
        finished: called after each that came to its end.

    Raises:
        SlurmError: an arm failed; the others were ended.
        KeyboardInterrupt, SystemExit: and all were ended.
    """
    stopped = threading.Event()
    with ThreadPoolExecutor(at_once) as pool:
        futures = {pool.submit(run_arm, run, directory / run.name, stopped): run for run in runs}
        waiting = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, WATCH_SECONDS, FIRST_COMPLETED)
                for future in done:
                    finished(futures[future], future.result())
                watch(runs)
        finally:
            _end(futures, stopped)


def _end(futures: Collection[Future[Trace]], stopped: threading.Event) -> None:
    """Waits until each arm has cleared up after itself, whatever signals come meanwhile."""
    stopped.set()
    for future in futures:
        future.cancel()
    while not all(future.done() for future in futures):
        with suppress(KeyboardInterrupt, SystemExit):
            wait(futures)
