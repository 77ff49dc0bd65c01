"""Jobs that an admin or a guarantee puts first, before all or those of their organization.

With every channel this uses the job's site factor: the points that it would have there anyway, and
as many more as put it first. They are written like all others, so what restores original values
restores these as well. Of several exceptions those before all come first, then what an admin has
ordered, then the one that was ordered first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shapleyprio.daemon.pushing import push
from shapleyprio.daemon.pushing.by_hand import SITE_FACTOR
from shapleyprio.daemon.pushing.lasting import means
from shapleyprio.daemon.pushing.push import Ours, Stamp, Wanted
from shapleyprio.daemon.pushing.urgency import changes
from shapleyprio.slurm.channels import Claims, PriorityTarget
from shapleyprio.slurm.port import PendingJob, Slurm
from shapleyprio.store import ClusterStore, ExceptionRow, ManagedValue, NewPush, Transaction

MARGIN = 10
"""Points by which a job goes before its own organization: Slurm rounds each priority by itself."""

_Entry = tuple[ExceptionRow, PendingJob, PriorityTarget]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFactors:
    """The values at the site factors of jobs, and those without exceptions.

    Attributes:
        claims: whose the jobs are.
        points: organization -> points that its jobs have there anyway; those of others have none.
        managed: what we did there.
        given: as `push.plan` has it.
    """

    claims: Claims
    points: Mapping[str, int]
    managed: Mapping[str, ManagedValue]
    given: Collection[int]

    @property
    def ours(self) -> Ours:
        """What may be ours without a record of it."""
        return Ours(given=self.given, points=self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstJobs:
    """The waiting jobs that exceptions put first, but for those that somebody has set by hand.

    Attributes:
        groups: each exception with its jobs and where to write, the one that goes first at the
            begin; all those of guarantees are one group.
    """

    groups: Sequence[Sequence[_Entry]] = ()

    @classmethod
    def among(
        cls,
        pending: Iterable[PendingJob],
        rows: Iterable[ExceptionRow],
        slurm: Slurm,
        found: SiteFactors,
    ) -> FirstJobs:
        """Finds them.

        Args:
            pending: the jobs that wait.
            rows: the exceptions that last.
            slurm: where they wait.
            found: the value there.
        """
        if not rows:
            return cls()
        number_of = {row.job_id: row for row in rows}
        meant: dict[int, tuple[ExceptionRow, PendingJob]] = {}
        for job in pending:
            row = number_of.get(job.job_id) or number_of.get(job.array_job_id)
            if row is not None and means(row, job):
                meant[job.job_id] = row, job
        targets = SITE_FACTOR.targets(slurm, [job for _, job in meant.values()], found.claims)
        foreign = push.foreign(SITE_FACTOR, targets, found.managed, found.ours)
        groups: defaultdict[tuple[bool, bool, int, int], list[_Entry]] = defaultdict(list)
        for target in targets:
            if target not in foreign and target.organization in found.points:
                row, job = meant[int(target.key)]
                place = (0, 0) if row.by_guarantee else (row.since, row.job_id)
                groups[not row.before_all, row.by_guarantee, *place].append((row, job, target))
        return cls(groups=[groups[place] for place in sorted(groups)])

    @property
    def keys(self) -> frozenset[str]:
        """Keys of their targets."""
        return frozenset(target.key for group in self.groups for _, _, target in group)

    def without(self, pushes: Iterable[NewPush]) -> list[NewPush]:
        """Returns the writes that are to something else than to what puts jobs first."""
        keys = self.keys
        return [item for item in pushes if item.channel != SITE_FACTOR.name or item.key not in keys]

    def plan(
        self,
        pending: Sequence[PendingJob],
        needed: Sequence[NewPush],
        found: SiteFactors,
        room: int,
        stamp: Stamp,
    ) -> PlannedFirst:
        """Plans what puts them first.

        What was written before stays while it does. A job that goes before all gets more than it
        needs, so that it does when ranks change; one that goes before its own organization gets
        hardly more, or it would go before others as well.

        Args:
            pending: the jobs that wait.
            needed: the other writes, which change priorities as well.
            found: the value there.
            room: points that a job which goes before all gets beyond what it needs.
            stamp: for the record.
        """
        if not self.groups:
            return PlannedFirst()
        places = _Places(pending, needed, found.claims, self.keys)
        planned: list[NewPush] = []
        passed: list[tuple[ExceptionRow, Mapping[str, int]]] = []
        for group in reversed(self.groups):
            bare = {job.job_id: places.priority(job) - target.value for _, job, target in group}
            after: dict[int, int] = {}
            for row, job, target in group:
                usual = found.points[target.organization]
                floor = places.highest(None if row.before_all else target.organization)
                least = max(floor + 1 - bare[job.job_id], usual)
                value = _value(target.value, least, usual, room if row.before_all else None)
                after[job.job_id] = bare[job.job_id] + value
                wanted = Wanted(
                    points={target.organization: value},
                    reasons={target.organization: f"put first by {row.user}: {row.reason}"},
                )
                planned += push.plan(
                    SITE_FACTOR, [target], found.managed, wanted, stamp, found.given
                )
            row, job, target = max(group, key=lambda one: after[one[1].job_id])
            if not row.passed and not row.by_guarantee:
                without = bare[job.job_id] + found.points[target.organization]
                if counts := places.passed(job, without, after[job.job_id]):
                    passed.append((row, counts))
            for _, job, _ in group:
                places.put(job, after[job.job_id])
        return PlannedFirst(jobs=len(self.keys), pushes=planned, passed=passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFirst:
    """What puts jobs first.

    Attributes:
        jobs: how many go first.
        pushes: the writes.
        passed: exceptions that are followed for the first time, and the jobs that theirs passes:
            organization, NOBODY among them -> how many.
    """

    jobs: int = 0
    pushes: Sequence[NewPush] = ()
    passed: Sequence[tuple[ExceptionRow, Mapping[str, int]]] = ()


def note_passed(store: ClusterStore, planned: PlannedFirst) -> None:
    """Keeps on record which jobs those that go first have passed."""

    def note(transaction: Transaction) -> None:
        for row, counts in planned.passed:
            transaction.orders.note_passed(row, counts)

    if planned.passed:
        store.transact(note)


def _value(now: int, least: int, usual: int, room: int | None) -> int:
    """Returns the value that a job is to have.

    Args:
        now: what does.
        least: what suffices.
        usual: what would without the exception.
        room: as `FirstJobs.plan` has it; None for a job that goes before its own organization.
    """
    margin = MARGIN if room is None else room
    # new points of a QOS or an account reach a job that is written to before the others, so that
    # it seems to need nothing beside them for a while
    needs_none = least == usual == 0
    if now >= least and (room is not None or needs_none or now <= least + 2 * margin):
        return now
    return min(least if least == usual else least + margin, SITE_FACTOR.largest)


class _Places:
    """The priorities of the waiting jobs that Slurm computes, once all is written.

    Args:
        pending: the jobs that wait.
        needed: all writes but those that put jobs first.
        claims: whose the jobs are.
        first: keys of the jobs that are put first, which count for nothing until `put`.
    """

    def __init__(
        self,
        pending: Iterable[PendingJob],
        needed: Iterable[NewPush],
        claims: Claims,
        first: Collection[str],
    ) -> None:
        self._moved = changes(needed)
        self._claims = claims
        self._jobs: list[tuple[PendingJob, int]] = []
        self._highest: dict[str, int] = {}
        for job in pending:
            if job.priority and not job.is_fixed and str(job.job_id) not in first:
                self.put(job, self.priority(job))

    def priority(self, job: PendingJob) -> int:
        """Returns that of a job with the site factor that it has."""
        return job.priority + self._moved[job.job_id]

    def highest(self, organization: str | None) -> int:
        """Returns the highest one of an organization's jobs, None for all; 0 if there are none."""
        if organization is None:
            return max(self._highest.values(), default=0)
        return self._highest.get(organization, 0)

    def put(self, job: PendingJob, priority: int) -> None:
        """Notes where a job is."""
        organization = self._claims.of(job)
        self._jobs.append((job, priority))
        self._highest[organization] = max(self.highest(organization), priority)

    def passed(self, job: PendingJob, without: int, priority: int) -> Counter[str]:
        """Counts by organization the jobs that a job passes with a priority, not without it."""
        before = (-without, job.submit, job.job_id)
        return Counter(
            self._claims.of(other)
            for other, theirs in self._jobs
            if theirs < priority and (-theirs, other.submit, other.job_id) < before
        )
