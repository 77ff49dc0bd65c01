"""The demo from the setting up of its stage to the last priority put back, whatever happens."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic

from rich.console import Console

from shapleyprio.config import load_config
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.lab.demo.consortium import CLUSTER, Submission, write_configuration
from shapleyprio.lab.demo.screen import DemoResult, results, screen
from shapleyprio.lab.demo.simulated import SimulatedStage, first_come_first_served
from shapleyprio.lab.demo.stage import DemoError, Snapshot, Stage, watch
from shapleyprio.lab.testbed.detached import last_words
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
    from shapleyprio.lab.testbed.machine import SlurmUnavailableHere

    try:
        return RealStage(config_file, submissions, speed=speed, log=log, say=say)
    except SlurmUnavailableHere as reason:
        _do_without(str(reason), say=say, needed=needed)
        return None


def _do_without(why: str, *, say: Say, needed: bool) -> None:
    if needed:
        raise DemoError(f"{why}; without it there is no daemon to watch")
    say(f"{why}, so the same cycles run against a simulated Slurm")


FIRST_CYCLE_SECONDS = 90
"""Real time within which the daemon must have finished its first cycle."""


@dataclass(frozen=True, slots=True)
class DemoEnd:
    """How the demo went.

    Attributes:
        last: the store after the last cycle.
        failures: lines of the daemon's log about cycles that failed.
        results: one for each organization.
        put_back: how many priorities were put back.
        still_ours: how many waiting jobs still carry a priority of ours after that.
        unreadable: how many lines of the queue could not be read then.
    """

    last: Snapshot
    failures: Sequence[str]
    results: Sequence[DemoResult]
    put_back: int
    still_ours: int
    unreadable: int

    def complaints(self) -> list[str]:
        """Lists what did not work as it must."""
        found = list(self.failures)
        if not self.last.written:
            found.append("no priority was ever written")
        if self.still_ours:
            found.append(f"{self.still_ours} jobs still have our priority after the rollback")
        if self.unreadable:
            found.append(f"{self.unreadable} lines of the queue could not be read")
        return found


def play(stage: Stage, store: ClusterStore, *, duration: int | None, console: Console) -> DemoEnd:
    """Runs the workload under the daemon, shows it, and puts the priorities back.

    Args:
        stage: booted.
        store: the one that the daemon writes.
        duration: seconds of the cluster's clock; None goes on until Ctrl-C.
        console: where it is shown.

    Raises:
        DemoError: the daemon failed.
        SlurmError, StoreError: the priorities could not be put back.
    """
    last: Snapshot | None = None
    began = monotonic()
    with screen(console, duration) as show:
        with suppress(KeyboardInterrupt) if duration is None else nullcontext():
            while stage.step() < (inf if duration is None else duration):
                seen = watch(store, stage, last)
                if seen is None and monotonic() - began > FIRST_CYCLE_SECONDS:
                    break
                if seen is not last and seen is not None:
                    last = seen
                    show(last)
        stage.stop_daemon()
        last = watch(store, stage)
        if last is None:
            raise DemoError(f"the daemon finished no cycle: {last_words(stage.log)}")
        show(last)
    put_back = roll_back(store, stage.slurm).applied
    queue = stage.slurm.pending()
    return DemoEnd(
        last=last,
        failures=[line for line in stage.log.read_text().splitlines() if "cycle failed" in line],
        results=results(last, first_come_first_served(stage.submitted.values(), last.elapsed)),
        put_back=put_back,
        still_ours=sum(bool(job.site_factor) for job in queue.jobs),
        unreadable=len(queue.malformed),
    )
