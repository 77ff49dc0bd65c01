"""Accounting records that need not be looked at again, since they are the same objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shapleyprio.fairness.runs import JobRecord, RunKey
from shapleyprio.slurm.forgetting import forget_others
from shapleyprio.slurm.port import Malformed
from shapleyprio.store import AllocatedRun

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
