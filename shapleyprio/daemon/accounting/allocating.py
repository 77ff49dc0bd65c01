"""Who holds what, and how many processors runs hold where: by that they are allocated.

When a node or an account changes hands, the runs that continue beyond that second are reallocated
in the same transaction. Where accounting has only the sum of a run's processors, it is split by the
sizes of the nodes until Slurm says how many the run holds on each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from shapleyprio.common.errors import KnownError
from shapleyprio.daemon.accounting.remembered import Remembered
from shapleyprio.fairness.runs import Run, RunKey, split
from shapleyprio.fairness.tenure import NOBODY, Kind, Move, Tenure, Tenures, names_of
from shapleyprio.store import Transaction, batches

RUNS_AT_ONCE = 5000

MOST_STRANGERS = 20_000
"""Unclaimed names from which on the store remembers no more of them. Where Slurm does not enforce
accounts, each job can have another one, and every cycle reads all names that were heard of."""


class CorrectionError(KnownError):
    """Ownership cannot be corrected as asked for; the message says why and what can be done."""


@dataclass(frozen=True, slots=True)
class CorrectedTenures:
    """All tenures of one node or account, the oldest first, before a correction and after."""

    before: tuple[Tenure, ...]
    after: tuple[Tenure, ...]


class OpenTenures:
    """The tenures of one ledger, open for changes within one transaction.

    Args:
        transaction: where everything is read from and written to.
        remembered: the ledger as it is in the store.
        ask_holders: says who holds what now, kind -> name -> organization; called at most
            once, when a run names a node or an account that was never heard of.

    Attributes:
        tenures: as they stand.
        asked: whether that was asked.
        moves: what has changed hands.
        latest: second of the last change, 0 without any.
    """

    def __init__(
        self,
        transaction: Transaction,
        remembered: Remembered,
        ask_holders: Callable[[], Mapping[Kind, Mapping[str, str]]],
    ) -> None:
        self._transaction = transaction
        self._remembered = remembered
        self.tenures: Tenures = remembered.tenures
        self._ledger = remembered.ledger
        self._runs = remembered.runs
        self._ask_holders = ask_holders
        self.asked = False
        self.moves: list[Move] = []
        self.latest = 0

    def observe(self, kind: Kind, holders: Mapping[str, str], second: int) -> None:
        """Takes in who holds which node or account from now on; `moves` has what changed hands.

        Runs that reach beyond the change are placed again; what was earned before it stays.
        """
        changed = self.tenures.observe(kind, holders, second)
        moved = {tenure.name for tenure in changed if tenure.since is not None}
        self._save_tenures(changed)
        if moved:
            self._place_again(second)
            self.latest = max(self.latest, second)
            self.moves += [
                move
                for move in self.tenures.moves(second)
                if move.kind == kind and move.name in moved
            ]

    def correct(
        self, holders: Mapping[Kind, Mapping[str, str]], since: int, opened: int
    ) -> list[CorrectedTenures]:
        """Makes names that were heard of their holders' from then on, in the past as well.

        Runs that reach beyond that second are placed again, so the ledger is what it would be if
        it had always been so.

        Args:
            holders: kind -> name -> organization.
            since: first second.
            opened: second from which parts count; what is no later stands for "always".

        Returns:
            what is other than before.
        """
        first = None if since <= opened else since
        corrected = []
        for kind, names in holders.items():
            for name, organization in names.items():
                before = self.tenures.of(kind, name)
                if self.tenures.correct(kind, name, organization, first):
                    after = self.tenures.of(kind, name)
                    corrected.append(CorrectedTenures(tuple(before), tuple(after)))
        self._save_tenures(found.after[0] for found in corrected)
        if corrected:
            self._place_again(max(since, opened))
            self.latest = max(self.latest, since)
        return corrected

    def hear_of(self, run: Run, now: int) -> None:
        """Assigns to NOBODY the names that neither Slurm's layout nor the configuration has."""
        names = names_of(run)
        if all(self.tenures.knows(kind, name) for kind, name in names):
            return
        if not self.asked:
            self.asked = True
            for kind, holders in self._ask_holders().items():
                self.observe(kind, holders, now)
        for kind, name in names:
            strangers = self._remembered.strangers
            if strangers < MOST_STRANGERS and not self.tenures.knows(kind, name):
                self._remembered.strangers = strangers + 1
                self._save_tenures(self.tenures.observe(kind, {name: NOBODY}, now))

    def _save_tenures(self, changed: Iterable[Tenure]) -> None:
        names = dict.fromkeys((tenure.kind, tenure.name) for tenure in changed)
        self._transaction.ledger.save_tenures({name: self.tenures.of(*name) for name in names})

    def _place_again(self, second: int) -> None:
        for placed in batches(self._transaction.runs.runs_alive_after(second), RUNS_AT_ONCE):
            changed = []
            for run, old in placed:
                allocations = self.tenures.allocations(run)
                if allocations != old:
                    self._ledger.subtract(old)
                    self._ledger.add(allocations)
                    changed.append((run, allocations))
            self._runs.put(self._transaction.runs, changed, [run.key for run, _ in placed])


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
