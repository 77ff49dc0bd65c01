"""How many processors runs hold on each of their nodes, where accounting has only their sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from shapleyprio.daemon.accounting.open_tenures import OpenTenures
from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.fairness.split import split

KNOWN_AFTER_END_SECONDS = 300
"""MinJobAge as Slurm ships it: for so long the controller knows jobs that have ended."""


class SplitRuns:
    """Runs on several nodes, within one transaction.

    Args:
        sizes: returns node -> its processors, as Slurm has it now.
        holders: who holds which node.
    """

    def __init__(self, sizes: Callable[[], Mapping[str, int]], holders: OpenTenures) -> None:
        self._sizes = sizes
        self._holders = holders
        self._uncounted: dict[RunKey, Run] = {}
        self._of_several: dict[tuple[str, ...], bool] = {}

    def uncounted(self) -> list[Run]:
        """Returns the runs that were noted as such; those that ended before the others."""
        return sorted(self._uncounted.values(), key=lambda run: (run.end is None, run.key))

    def as_before(self, run: Run, old: Run | None) -> Run:
        """Returns the run split as it was stored, whatever sizes its nodes have by now."""
        if len(run.processors) == 1:
            return run
        nodes, total = run.processors.keys(), sum(run.processors.values())
        if old and old.processors.keys() == nodes and sum(old.processors.values()) == total:
            return replace(run, processors=old.processors, counted=old.counted)
        if self._holders.asked:  # nodes that were new a moment ago have sizes now
            return replace(run, processors=split(total, tuple(nodes), self._sizes()))
        return run

    def note_uncounted(self, run: Run, now: int) -> bool:
        """Notes a run for which it matters how many processors it holds on each node.

        It holds some on nodes of several owners which it does not fill, and only their sum is
        known.

        Returns:
            whether it is such a one.
        """
        is_open = self._may_be_counted(run, now)
        if is_open:
            self._uncounted[run.key] = run
        return is_open

    def counted(self, run: Run, held: Mapping[str, int]) -> Run | None:
        """Returns a run split as Slurm says; None if it is on other nodes.

        Args:
            run: that was noted.
            held: node -> processors. Where they are not as many as accounting has, its number is
                split in proportion to these.
        """
        if run.processors.keys() != held.keys():
            return None
        self._uncounted.pop(run.key, None)
        total = sum(run.processors.values())
        return replace(run, processors=split(total, tuple(run.processors), held), counted=True)

    def _may_be_counted(self, run: Run, now: int) -> bool:
        if len(run.processors) == 1 or run.counted:
            return False
        if run.end is not None and run.end < now - KNOWN_AFTER_END_SECONDS:
            return False
        sizes = self._sizes()
        if all(sizes.get(node) == held for node, held in run.processors.items()):
            return False
        nodes = tuple(run.processors)
        if nodes not in self._of_several:
            tenures = self._holders.tenures
            owners = {tenures.holder("node", node, now) for node in nodes}
            self._of_several[nodes] = len(owners) > 1
        return self._of_several[nodes]
