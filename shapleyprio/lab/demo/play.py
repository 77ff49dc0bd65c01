"""The demo from the first submission to the last priority put back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from math import inf
from time import monotonic

from rich.console import Console

from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.lab.demo.screen import screen
from shapleyprio.lab.demo.simulated import first_come_first_served
from shapleyprio.lab.demo.stage import DemoError, Stage
from shapleyprio.lab.demo.summary import DemoResult, results
from shapleyprio.lab.demo.watch import Snapshot, watch
from shapleyprio.lab.testbed.detached import last_words
from shapleyprio.store import ClusterStore

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
                seen = watch(store, stage)
                if seen is None and monotonic() - began > FIRST_CYCLE_SECONDS:
                    break
                if seen is not None and (last is None or seen.cycle != last.cycle):
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
