"""Runs arms beside each other, and ends them all if one fails or the trial is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

from shapleyprio.trial.arms import Arm
from shapleyprio.trial.running import Conditions, Stage, Trace, run_arm

LOOK_SECONDS = 0.5

Watch = Callable[[Sequence[Stage]], None]


def run_arms(
    arms: Sequence[Arm], conditions: Conditions, *, directory: Path, at_once: int, watch: Watch
) -> list[Trace]:
    """Runs every arm in a directory and on ports of its own.

    Args:
        arms: in the order in which they begin.
        conditions: what they have in common.
        directory: each arm's is below it, under its name.
        at_once: how many run beside each other at most.
        watch: is told now and then how far each is.

    Raises:
        TrialError: an arm failed; the others were ended.
        KeyboardInterrupt, SystemExit: and all were ended.
    """
    stages = [Stage(arm.name) for arm in arms]
    with ThreadPoolExecutor(at_once) as pool:
        futures = [
            pool.submit(run_arm, arm, conditions, directory / arm.name, stage)
            for arm, stage in zip(arms, stages, strict=True)
        ]
        try:
            while not _over(futures):
                watch(stages)
        finally:
            _end(futures, conditions)
    return [future.result() for future in futures]


def _over(futures: Sequence[Future[Trace]]) -> bool:
    """Waits a moment; tells whether all is done, or the rest is in vain."""
    done, waiting = wait(futures, timeout=LOOK_SECONDS, return_when=FIRST_EXCEPTION)
    for future in done:
        future.result()
    return not waiting


def _end(futures: Sequence[Future[Trace]], conditions: Conditions) -> None:
    """Waits until each arm has cleared up after itself, whatever signals come meanwhile."""
    conditions.stopped.set()
    for future in futures:
        future.cancel()
    while not all(future.done() for future in futures):
        with suppress(KeyboardInterrupt, SystemExit):
            wait(futures)
