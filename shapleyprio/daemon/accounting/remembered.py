"""What the daemon remembers of store and records from one transaction to the next.

The store stays the truth. What is remembered holds for a transaction only if no other process can
have written since: the lease is the same without interruption, and so are the watermark and the
number of corrections. A transaction takes it when it begins and returns it when it is
committed, so a failed transaction leaves nothing behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.pool import Stay, StayLedger
from shapleyprio.fairness.runs import JobRecord, Run, RunKey
from shapleyprio.fairness.tenure import NOBODY, Tenures
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.remembering import forget_others
from shapleyprio.store import AllocatedRun, Runs, Transaction, View, Watermark

Accounted = tuple[JobRecord, RunKey, AllocatedRun]
"""A record, its run, and what was stored of that."""


@dataclass(slots=True)
class AccountedRecords:
    """What became of records.

    Each is kept, so no other has its identity.

    Attributes:
        sizes: node -> processors, by which they were accounted.
        at: the cluster's clock when the last ones were asked for.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    at: int = 0
    _known: dict[int, Accounted | JobRecord] = field(default_factory=dict)
    _brought: list[Accounted | JobRecord] = field(default_factory=list)

    def begin(self) -> None:
        """Begins a new answer: what the last one lacked is forgotten, if it is much."""
        forget_others(self._known, self._brought)
        self._brought = []

    def hold_for(self, sizes: Mapping[str, int], at: int) -> None:
        """Forgets all records if they would have to be accounted otherwise now."""
        if sizes != self.sizes or at < self.at:
            self._known = {}
            self.sizes = dict(sizes)
        self.at = at

    def new_among(
        self, records: Sequence[JobRecord | Malformed]
    ) -> Iterator[JobRecord | Malformed]:
        """Yields the records that were neither accounted nor found to be unstarted."""
        found = map(self._known.get, map(id, records))
        return (record for record, known in zip(records, found, strict=True) if known is None)

    def find(
        self, records: Sequence[JobRecord | Malformed]
    ) -> Iterator[tuple[JobRecord | Malformed, Accounted | JobRecord | None]]:
        """Yields the records of an answer, and what became of the very same ones.

        Yields:
            a record with what was accounted, with itself if its job has not started, or with None
            if it is new.
        """
        found = list(map(self._known.get, map(id, records)))
        self._brought += filter(None, found)
        return zip(records, found, strict=True)

    def add(self, record: JobRecord, key: RunKey, placed: AllocatedRun) -> None:
        """Notes a record that is accounted for good."""
        accounted = record, key, placed
        self._known[id(record)] = accounted
        self._brought.append(accounted)

    def add_unstarted(self, record: JobRecord) -> None:
        """Notes a record of a job that has not started."""
        self._known[id(record)] = record
        self._brought.append(record)


FORGOTTEN_FROM = 1.25
"""Runs that are no longer asked for are forgotten when there are so many times those that are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What is other than before whenever somebody else has changed the ledger.

    Attributes:
        watermark: of the store.
        token: of the lease; None where there is none.
        correction: number of the next one.
        stay: of the cluster in a pool; None if it is in none.
    """

    watermark: Watermark | None
    token: int | None
    correction: int
    stay: Stay | None

    @classmethod
    def of(cls, view: View) -> Self:
        """Reads it."""
        lease = view.lease.read()
        return cls(
            watermark=view.ledger.watermark(),
            token=None if lease is None else lease.token,
            correction=view.ledger.next_correction(),
            stay=view.pools.stay(),
        )


class KnownRuns:
    """The runs that accounting may have news of, as the store has them.

    It keeps all unfinished runs, and finished ones while records of them keep coming.
    """

    def __init__(self) -> None:
        self._placed: dict[RunKey, AllocatedRun] | None = None
        self._unfinished: set[RunKey] = set()
        self._running: Counter[str] = Counter()

    def get(self, key: RunKey) -> AllocatedRun | None:
        """Returns a run if it is in memory."""
        return None if self._placed is None else self._placed.get(key)

    def known(self, runs: Runs, keys: Collection[RunKey]) -> dict[RunKey, AllocatedRun]:
        """Returns those of the runs with these keys that are stored."""
        placed = self._load(runs)
        strange = [key for key in keys if key not in placed]
        for stored in runs.known(strange).values() if strange else ():
            self._set(placed, stored)
        return {key: found for key in keys if (found := placed.get(key)) is not None}

    def put(
        self,
        runs: Runs,
        changed: Sequence[AllocatedRun],
        stored: Collection[RunKey],
    ) -> None:
        """Stores runs in place of those with the same keys.

        Args:
            runs: in the store.
            changed: the runs.
            stored: keys among which are those that are stored, of these runs.
        """
        runs.put(changed, stored)
        if self._placed is not None:
            for found in changed:
                self._set(self._placed, found)

    def remove(self, runs: Runs, keys: Iterable[RunKey]) -> None:
        """Deletes runs."""
        gone = list(keys)
        runs.remove(gone)
        for key in gone if self._placed is not None else ():
            self._forget(self._load(runs), key)

    def unfinished(self, runs: Runs) -> set[RunKey]:
        """Returns the keys of all runs without an end."""
        self._load(runs)
        return self._unfinished

    def running(self, runs: Runs) -> Counter[str]:
        """Returns organization -> how many of its runs hold processors now."""
        self._load(runs)
        return +self._running

    def at_work(self, runs: Runs) -> Sequence[tuple[str, Run]]:
        """Returns the runs that hold processors now, and for which organization each one works."""
        placed = self._load(runs)
        return [
            (organization, placed[key][0])
            for key in self._unfinished
            for organization in _runs_for(placed[key])
        ]

    def running_tasks(self, runs: Runs, arrays: Collection[int]) -> Mapping[int, int]:
        """Returns how many tasks of each of some arrays have not ended."""
        placed = self._load(runs)
        found = (placed[key][0].array_job_id for key in self._unfinished)
        return Counter(array for array in found if array in arrays)

    def keep(self, mentioned: Collection[RunKey]) -> None:
        """Forgets runs that have ended and were not mentioned, if they are many."""
        needed = len(self._unfinished) + len(mentioned)
        if self._placed is not None and len(self._placed) > FORGOTTEN_FROM * needed:
            kept = self._unfinished.union(mentioned)
            self._placed = {key: found for key, found in self._placed.items() if key in kept}

    def _load(self, runs: Runs) -> dict[RunKey, AllocatedRun]:
        if self._placed is None:
            self._placed = {}
            for found in runs.unfinished_allocated():
                self._set(self._placed, found)
        return self._placed

    def _set(self, placed: dict[RunKey, AllocatedRun], found: AllocatedRun) -> None:
        run = found[0]
        self._forget(placed, run.key)
        placed[run.key] = found
        if run.end is None:
            self._unfinished.add(run.key)
            self._running.update(_runs_for(found))

    def _forget(self, placed: dict[RunKey, AllocatedRun], key: RunKey) -> None:
        found = placed.pop(key, None)
        if found is not None and found[0].end is None:
            self._unfinished.discard(key)
            self._running.subtract(_runs_for(found))


@dataclass(slots=True, kw_only=True)
class Remembered:
    """The ledger as it is in the store.

    Attributes:
        seal: for which it is right.
        tenures: who holds what.
        strangers: how many of these belong to no organization.
        ledger: with no entry changed.
        runs: that accounting may have news of.
        records: that are accounted.
    """

    seal: Seal
    tenures: Tenures
    strangers: int
    ledger: StayLedger
    runs: KnownRuns = field(default_factory=KnownRuns)
    records: AccountedRecords = field(default_factory=AccountedRecords)

    def holds(self, seal: Seal, horizon: int | None) -> bool:
        """Returns whether it is the ledger of a store with that seal, under that horizon."""
        return self.seal == seal and self.ledger.horizon == horizon

    @classmethod
    def read(cls, transaction: Transaction, seal: Seal, horizon: int | None) -> Self:
        """Reads it from the store."""
        tenures = transaction.ledger.tenures()
        folded_to = 0 if seal.watermark is None else seal.watermark.folded_to
        ledger = StayLedger(horizon, folded_to=folded_to, entries=transaction.ledger.entries())
        if seal.stay is not None:
            ledger.earlier = Ledger(
                horizon,
                folded_to=folded_to,
                entries=transaction.ledger.entries(earlier=True),
                until=seal.stay.since,
            )
        return cls(
            seal=seal,
            tenures=tenures,
            strangers=sum(tenure.organization == NOBODY for tenure in tenures),
            ledger=ledger,
        )


def _runs_for(found: AllocatedRun) -> list[str]:
    """Returns the organization for which a run without an end holds processors, if it does."""
    allocations = found[1]
    return [allocations[-1].organization] if allocations and allocations[-1].end is None else []
