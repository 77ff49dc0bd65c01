"""The findings and actions of one cycle, for the store, the metrics and people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Self

from shapleyprio.daemon.pushing.following import Foreign
from shapleyprio.daemon.pushing.going_first import PlannedFirst
from shapleyprio.daemon.pushing.push import PushCounts
from shapleyprio.fairness.pool import PoolPart
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.slurm.port import AdapterInUse
from shapleyprio.store import (
    ExceptionRow,
    NewPush,
    PauseRow,
    PendingJobs,
    StandingRow,
    UserAfterEnd,
    Wait,
)


@dataclass(slots=True)
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


@dataclass(slots=True)
class CycleReport:
    """What one cycle found and did.

    Attributes:
        number: of the cycle.
        t: second at which the ledger stands.
        tally: what became of the accounting records.
        started: runs that were not known before.
        waits: how long those waited that count for an organization.
        pending_jobs: the jobs that could start and wait.
        standings: one row for each organization, in the order of the configuration.
        planned: the writes that were made, or in a dry run would be, the most urgent first.
        postponed: how many more are left to the next cycle.
        at_submission: what new jobs had got from the table of points, for the record.
        missed: jobs, first seen, to which the table should have given points and did not.
        table_written: second of the table of points that it wrote; None if it wrote none.
        pushed: what became of them.
        of_unknown_accounts: pending jobs under accounts that accounting does not know.
        after_end: organization -> processor-seconds that its runs are found to have gone on after
            their ends.
        users_after_end: users whose runs continued most after an end in the last day.
        touched: how many pending jobs were touched so that they follow.
        set_by_others: key of a job -> what somebody else has newly set where we write.
        pause: during which it ran, so that it steered nothing; None if nothing was paused.
        exceptions: those that last.
        first: what puts their jobs first.
        foreign: what others have set where we write.
        seconds_until_reorder: seconds from t until the order of organizations that wait changes,
            if nothing starts or ends; None if not before the next poll.
        lag_seconds: age of the newest second up to which accounting is known to be complete.
        seconds: phase -> how long it took.
        slurm_version: the release of Slurm.
        adapter: through which Slurm was spoken to.
        rule: name of the rule that ranked the organizations.
        estimated_at: second for which the contributions that it ranked by were estimated; None
            if they are the ledger's.
        pool: what the other clusters of the pool add to the scores.
        conflicts: how often a transaction was repeated, for the database had undone it.
    """

    number: int
    t: int = 0
    tally: Tally = field(default_factory=Tally)
    started: list[Run] = field(default_factory=list)
    waits: Sequence[Wait] = ()
    pending_jobs: Sequence[PendingJobs] = ()
    standings: Sequence[StandingRow] = ()
    planned: Sequence[NewPush] = ()
    postponed: int = 0
    at_submission: Sequence[NewPush] = ()
    missed: int = 0
    table_written: int | None = None
    pushed: PushCounts = field(default_factory=PushCounts)
    of_unknown_accounts: int = 0
    after_end: Mapping[str, int] = field(default_factory=dict)
    users_after_end: Sequence[UserAfterEnd] = ()
    touched: int = 0
    set_by_others: Mapping[str, int] = field(default_factory=dict)
    pause: PauseRow | None = None
    exceptions: Sequence[ExceptionRow] = ()
    first: PlannedFirst = field(default_factory=PlannedFirst)
    foreign: Foreign = field(default_factory=Foreign)
    seconds_until_reorder: int | None = None
    lag_seconds: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    slurm_version: str = ""
    adapter: AdapterInUse | None = None
    rule: str = ""
    estimated_at: int | None = None
    pool: Sequence[PoolPart] = ()
    conflicts: int = 0


class StopWatch:
    """Notes in a report how long the phases of a cycle took."""

    def __init__(self, report: CycleReport) -> None:
        self._report = report
        self._last = monotonic()

    def lap(self, phase: str) -> None:
        """Ends the phase and begins the next."""
        now = monotonic()
        self._report.seconds[phase] = now - self._last
        self._last = now
