"""Setting the demo's stage up, and clearing everything away whatever happens on it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shapleyprio.config import load_config
from shapleyprio.lab.demo.consortium import CLUSTER, write_configuration
from shapleyprio.lab.demo.simulated import SimulatedStage
from shapleyprio.lab.demo.stage import DemoError, Stage
from shapleyprio.lab.demo.workload import Submission
from shapleyprio.store import ClusterStore, Store

Say = Callable[[str], None]


@contextmanager
def opened(
    submissions: Iterable[Submission],
    *,
    directory: Path,
    speed: int | None,
    address: str | None,
    pause_seconds: float,
    say: Say,
) -> Iterator[tuple[Stage, ClusterStore]]:
    """Yields a booted stage and the store its daemon writes; afterwards nothing of it runs.

    Args:
        submissions: what the stage is to submit.
        directory: for the whole state.
        speed: of the real Slurm's clock, None for the simulated one.
        address: where the daemon serves its page and metrics; the simulated Slurm has no daemon.
        pause_seconds: real seconds between two simulated cycles.
        say: called with lines about what is being done.

    Raises:
        DemoError: a process was left behind, or there is no daemon that could serve anything.
        TestbedError: the private Slurm did not boot.
    """
    log = directory / "daemon.log"
    config_file = write_configuration(directory, speed=speed or 1, address=address)
    config = load_config(config_file)
    with Store.open(config.store.url, create=True) as opened_store:
        store = opened_store.cluster(CLUSTER)
        stage = None
        if speed is not None:
            stage = _real_stage(
                config_file,
                submissions,
                speed=speed,
                log=log,
                say=say,
                needed=address is not None,
            )
        if stage is None:
            stage = SimulatedStage(config, store, submissions, log=log, pause_seconds=pause_seconds)
        try:
            yield stage, store
        finally:
            with _undisturbed():
                left = stage.stop()
            if left:
                say(f"processes left behind: {', '.join(left)}")
            else:
                say("everything is stopped, no process is left")
    if left:
        raise DemoError("some processes could not be stopped")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keeps a second Ctrl-C from interrupting the clearing up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _real_stage(
    config_file: Path,
    submissions: Iterable[Submission],
    *,
    speed: int,
    log: Path,
    say: Say,
    needed: bool,
) -> Stage | None:
    """Returns a private Slurm, or None, saying why in one line, where it is not available.

    Raises:
        DemoError: it is not available, but is needed.
    """
    try:
        from shapleyprio.lab.demo.real import RealStage
    except ModuleNotFoundError as error:
        if error.name != "psutil":
            raise
        why = "a private Slurm needs psutil (pip install 'shapleyprio[demo]')"
        _do_without(why, say=say, needed=needed)
        return None
    from shapleyprio.lab.testbed.errors import SlurmUnavailableHere

    try:
        return RealStage(config_file, submissions, speed=speed, log=log, say=say)
    except SlurmUnavailableHere as reason:
        _do_without(str(reason), say=say, needed=needed)
        return None


def _do_without(why: str, *, say: Say, needed: bool) -> None:
    if needed:
        raise DemoError(f"{why}; without it there is no daemon to watch")
    say(f"{why}, so the same cycles run against a simulated Slurm")
