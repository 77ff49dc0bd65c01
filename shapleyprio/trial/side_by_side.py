"""Runs arms beside each other, and ends them all if one fails or the trial is interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.trial.arms import Arm
from shapleyprio.trial.running import Conditions, Stage, Trace, run_arm

LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One arm of one trial.

    Attributes:
        name: of its directory; short, for UNIX sockets are below it.
        arm: how.
        conditions: what.
        stage: how far it is.
    """

    name: str
    arm: Arm
    conditions: Conditions
    stage: Stage


Watch = Callable[[Sequence[Run]], None]
Finished = Callable[[Run, Trace], None]


def run_side_by_side(
    runs: Sequence[Run], *, directory: Path, at_once: int, watch: Watch, finished: Finished
) -> None:
    """Runs each in a directory and on ports of its own.

    Args:
        runs: in the order in which they begin.
        directory: each one's is below it, under its name.
        at_once: how many run beside each other at most.
        watch: is told now and then how far each is.
        finished: is told of each that came to its end.

    Raises:
        TrialError: an arm failed; the others were ended.
        KeyboardInterrupt, SystemExit: and all were ended.
    """
    stopped = threading.Event()
    with ThreadPoolExecutor(at_once) as pool:
        futures = {
            pool.submit(
                run_arm, run.arm, run.conditions, directory / run.name, run.stage, stopped
            ): run
            for run in runs
        }
        waiting = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
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
