"""What has become of the records that a cycle read, as numbers for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Self

from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import Tenures


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the records of a cycle.

    Attributes:
        seen: records read, those of jobs that wait left out.
        kept: runs that were new or had changed.
        unstarted: records of jobs that have not started.
        quarantined: lines that could not be read, and records from the future.
        late: records that came after their run had been pruned.
        withdrawn: unfinished runs that accounting no longer knows of.
    """

    seen: int = 0
    kept: int = 0
    unstarted: int = 0
    quarantined: int = 0
    late: int = 0
    withdrawn: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in Tally.__slots__))


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountedSoFar:
    """What a cycle has accounted, up to the last transaction that is committed.

    Attributes:
        tally: what became of the records.
        started_by: transaction after transaction, runs that were not known before.
        lag_seconds: age of the newest second up to which accounting is known to be complete.
    """

    tally: Tally = field(default_factory=Tally)
    started_by: tuple[Sequence[Run], ...] = ()
    lag_seconds: int = 0

    @property
    def started(self) -> list[Run]:
        """All runs that were not known before."""
        return list(chain.from_iterable(self.started_by))

    def and_then(self, tally: Tally, started: Sequence[Run], lag_seconds: int) -> Self:
        """Returns what is accounted after another transaction."""
        return replace(
            self,
            tally=self.tally + tally,
            started_by=(*self.started_by, started),
            lag_seconds=lag_seconds,
        )


@dataclass(frozen=True, slots=True)
class Opening:
    """A ledger is opened, and who holds what has been so always.

    Attributes:
        since: first second that counts.
        accounts, nodes: organization, NOBODY among them -> how many it holds.
    """

    since: int
    accounts: Mapping[str, int]
    nodes: Mapping[str, int]

    @classmethod
    def of(cls, since: int, tenures: Tenures) -> Self:
        """Makes the opening of a ledger that knows these tenures so far."""
        held = list(tenures)
        return cls(
            since,
            accounts=Counter(tenure.organization for tenure in held if tenure.kind == "account"),
            nodes=Counter(tenure.organization for tenure in held if tenure.kind == "node"),
        )
