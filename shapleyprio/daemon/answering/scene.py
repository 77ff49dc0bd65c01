"""What an explanation looks at: the queue and the standings, read together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from shapleyprio.daemon.answering.estimated import Sees, estimate_behind
from shapleyprio.daemon.answering.explain_facts import (
    Basis,
    OrganizationJobs,
    Outside,
    Prospect,
)
from shapleyprio.daemon.answering.explain_ranks import RankedOrganization, rank_organizations
from shapleyprio.daemon.answering.pool_status import pool_status
from shapleyprio.daemon.drift.figures import last_window
from shapleyprio.daemon.pushing.lasting import means
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import NOBODY, takes_part
from shapleyprio.slurm.port import PendingJob, PendingQueue, SlurmError, in_slurms_order
from shapleyprio.store import (
    ExceptionRow,
    StandingRow,
    View,
)

Place = tuple[str, Outside | None]
"""An organization or NOBODY, and why jobs count for none."""


class QueueSource(Protocol):
    """Where the jobs that wait are read: the port `Slurm`, or what was read from it just now."""

    def pending(self) -> PendingQueue:
        """Reads the jobs that wait; raises SlurmError."""


@dataclass(frozen=True, slots=True)
class ReadQueue:
    """The jobs that wait; none if Slurm failed to show them.

    Attributes:
        jobs: those whose lines could be read.
        incomplete: whether there are others.
        failure: why Slurm did not show them.
        elsewhere: jobs that are listed and count at another cluster, and that one.
    """

    jobs: Sequence[PendingJob]
    incomplete: bool
    failure: SlurmError | None
    elsewhere: Sequence[tuple[PendingJob, str]] = ()

    @classmethod
    def asked_of(cls, slurm: QueueSource) -> ReadQueue:
        """Reads the queue; Slurm may be away."""
        try:
            queue = slurm.pending()
        except SlurmError as failure:
            return cls((), incomplete=False, failure=failure)
        return cls(queue.jobs, bool(queue.malformed), failure=None, elsewhere=queue.elsewhere)


@dataclass(slots=True)
class Chosen:
    """Jobs of an organization that somebody asks for, by their accounts."""

    accounts: set[str] = field(default_factory=set)
    waiting: list[PendingJob] = field(default_factory=list)
    running: int = 0


class QueueAndStandings:
    """The queue and the standings, read together.

    Args:
        view: of the cluster.
        queue: its jobs that wait.
        sees: what whoever asks may see.
        age: seconds since the last cycle.
    """

    def __init__(self, view: View, queue: ReadQueue, sees: Sees, age: int = 0) -> None:
        self._view = view
        self._queue = queue
        self._sees = sees
        standings = view.history.latest_standings()
        watermark = view.ledger.watermark()
        self._second = watermark.accounted_to if watermark else 0
        self._now = self._second + age
        self.tenures = view.ledger.tenures()
        self._exceptions = view.orders.exceptions()
        self._left_out = self.tenures.left_out("partition", self._second)
        cycle = view.history.cycle(standings[0].cycle) if standings else None
        estimated = estimate_behind(view.estimates, cycle) if cycle else None
        window = last_window(view.history)
        self.basis = Basis(
            cluster=view.cluster,
            pool=pool_status(view, standings),
            t=standings[0].t if standings else None,
            rule=cycle.rule if cycle else None,
            estimated_at=cycle.estimated_at if cycle else None,
            steering=next(reversed(view.history.steering()), None),
            window=window,
            horizon=watermark.horizon if watermark else None,
            paused=view.orders.pause() is not None,
            away=None if queue.failure is None else str(queue.failure),
        )
        self._ranked: Mapping[str, RankedOrganization] = {}
        if standings:
            self._ranked = rank_organizations(
                standings, self._waiting(standings), estimated, window
            )

    def ranked_seen(self, organization: str) -> RankedOrganization | None:
        """Returns where an organization stands, with the users' waiting work that may be seen."""
        ranked = self._ranked.get(organization)
        if ranked is None or ranked.waiting_work is None:
            return ranked
        return replace(ranked, waiting_work=ranked.waiting_work.seen_by(self._sees))

    def organization_of(self, job: PendingJob | Run) -> str:
        """Returns the organization for which a job counts."""
        return self._holder(job.account) if takes_part(job.partition, self._left_out) else NOBODY

    def outside(self, job: PendingJob | Run) -> Outside | None:
        """Returns why a job counts for no organization; None if it does for one."""
        if not takes_part(job.partition, self._left_out):
            return Outside.PARTITION
        return self._outside(job.account)

    def _outside(self, account: str) -> Outside | None:
        if self.tenures.is_left_out("account", account, self._second):
            return Outside.ACCOUNT
        return Outside.UNCLAIMED if self._holder(account) == NOBODY else None

    def _holder(self, account: str) -> str:
        return self.tenures.holder("account", account, self._second)

    def ahead_of(self, job: PendingJob | None) -> tuple[int | None, int | None, int | None]:
        """Counts the jobs ahead, those of them with the same priority, and its organization's."""
        if job is None:
            return None, None, None
        before = [
            other for other in self._queue.jobs if in_slurms_order(other) < in_slurms_order(job)
        ]
        own = self.organization_of(job)
        return (
            len(before),
            sum(other.priority == job.priority for other in before),
            sum(self.organization_of(other) == own for other in before),
        )

    def prospect_of(self, job: PendingJob) -> Prospect:
        """Returns when a job will start, as far as is known; the view has to be open."""
        return Prospect.of(self._view, job, self._now)

    def exception_of(self, job: PendingJob) -> ExceptionRow | None:
        """Returns the exception by which a job goes first; None if there is none."""
        return next((row for row in self._exceptions if means(row, job)), None)

    def put_ahead_of(self, job: PendingJob) -> int:
        """Counts the jobs ahead that go first, before all or before this organization's others."""
        rows, own = self._exceptions, self.organization_of(job)
        return sum(
            any(means(row, other) and (row.before_all or row.organization == own) for row in rows)
            for other in self._queue.jobs
            if rows and in_slurms_order(other) < in_slurms_order(job)
        )

    def jobs_by_organization(
        self,
        unfinished: Iterable[Run],
        chosen: Callable[[PendingJob | Run], bool],
        *accounts: str,
    ) -> tuple[OrganizationJobs, ...]:
        """Returns the chosen jobs, and these accounts with or without jobs, by organization."""
        found: defaultdict[Place, Chosen] = defaultdict(Chosen)
        for account in accounts:
            found[self._holder(account), self._outside(account)].accounts.add(account)
        for job in filter(chosen, self._queue.jobs):
            ours = found[self.organization_of(job), self.outside(job)]
            ours.accounts.add(job.account)
            ours.waiting.append(job)
        for run in filter(chosen, unfinished):
            ours = found[self.organization_of(run), self.outside(run)]
            ours.accounts.add(run.account)
            ours.running += 1
        return tuple(
            self._organization_jobs(place, ours)
            for place, ours in sorted(found.items(), key=self._in_order)
        )

    def _organization_jobs(self, place: Place, ours: Chosen) -> OrganizationJobs:
        jobs = ours.waiting
        ready = [job for job in jobs if job.priority > 0]
        next_job = min(ready, key=in_slurms_order, default=None)
        ahead, tied_ahead, own_ahead = self.ahead_of(next_job)
        known = self._queue.failure is None
        return OrganizationJobs(
            ranked=self.ranked_seen(place[0]),
            outside=place[1],
            accounts=tuple(sorted(ours.accounts)),
            waiting=len(jobs) if known else None,
            held=len(jobs) - len(ready) if known else None,
            running=ours.running,
            oldest=min(jobs, key=_by_age, default=None),
            next_job=next_job,
            ahead=ahead,
            tied_ahead=tied_ahead,
            own_ahead=own_ahead,
            prospect=None if next_job is None else self.prospect_of(next_job),
        )

    def _waiting(self, standings: Sequence[StandingRow]) -> Mapping[str, int]:
        if self._queue.failure is not None:
            return {row.organization: row.pending for row in standings}
        return Counter(self.organization_of(job) for job in self._queue.jobs if job.priority > 0)

    def _in_order(self, entry: tuple[Place, object]) -> tuple[int, str]:
        (organization, outside), _ = entry
        ranked = self._ranked.get(organization)
        return ranked.rank if ranked else len(self._ranked) + 1, outside or organization


def _by_age(job: PendingJob) -> tuple[int, int]:
    return job.submit, job.job_id
