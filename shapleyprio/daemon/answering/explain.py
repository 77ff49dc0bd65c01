"""Why a job, a user's jobs or an account's jobs wait where they wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Protocol

from shapleyprio.common.wording import names_shown
from shapleyprio.daemon.answering.explain_facts import (
    Basis,
    JobExplanation,
    JobsExplanation,
    OrganizationJobs,
    Outside,
    Prospect,
)
from shapleyprio.daemon.answering.explain_ranks import RankedOrganization, rank_organizations
from shapleyprio.daemon.answering.inquiries import Asker
from shapleyprio.daemon.answering.mutual_gain import estimate_behind
from shapleyprio.daemon.answering.pool_status import pool_status
from shapleyprio.daemon.answering.waiting_work import Sees, seen_by
from shapleyprio.daemon.drift.figures import last_window
from shapleyprio.daemon.pushing.by_hand import Kind, by_hand_in
from shapleyprio.daemon.pushing.going_first import means
from shapleyprio.daemon.pushing.rollback import UNREADABLE
from shapleyprio.fairness.directcontr import DirectContr
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import NOBODY, Tenures, takes_part
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import PendingJob, PendingQueue, SlurmError, in_slurms_order
from shapleyprio.store import (
    ClusterStore,
    CycleRow,
    ExceptionRow,
    Push,
    PushesView,
    PushState,
    StandingRow,
    View,
)

PUSHES_SHOWN = 10

PUSHES_SEARCHED = 10_000
"""So many of the last writes are looked through for a job's name, or for its first points."""


_Place = tuple[str, Outside | None]
"""An organization or NOBODY, and why jobs count for none."""


class NothingToExplainError(LookupError):
    """No such job waits, no such user or account is known, or who asks may not see it.

    The message is one line.
    """


class QueueSource(Protocol):
    """Where the jobs that wait are read: the port `Slurm`, or what was read from it just now."""

    def pending(self) -> PendingQueue:
        """Reads the jobs that wait; raises SlurmError."""


def explain_job(
    store: ClusterStore, slurm: QueueSource, label: str, asker: Asker | None = None
) -> JobExplanation:
    """Explains the priority of one pending job.

    While Slurm is away a job that was written to is explained from the store.

    Args:
        store: of the cluster, where the standings are.
        slurm: where the job is.
        label: job id, or the name users know it by (``33_4``).
        asker: who asks; None for somebody who can read the store, and so all there is. To others a
            job that they may not see is one that does not wait.

    Raises:
        NothingToExplainError: no such job waits.
        SlurmError: Slurm is away, and nothing was ever written to such a job.
        StoreError: it cannot be found out.
    """
    queue = _Queue.asked_of(slurm)
    job = next((item for item in queue.jobs if label in _names_of(item)), None)
    with store.reading() as view:
        scene = _Scene(view, queue, seen_by(asker, None if job is None else job.user))
        hands: Mapping[Kind, int] = {}
        prospect: Prospect | None = None
        if queue.failure is not None:
            pushes = _pushes_to(view.pushes, label)
            if not pushes or not (asker is None or asker.rights().operator):
                raise queue.failure  # whose job it is Slurm alone knows
            organization = pushes[0].organization
        else:
            sibling, cluster = next(
                (pair for pair in queue.elsewhere if label in _names_of(pair[0])), (None, "")
            )
            if asker is not None and not _is_shown(job or sibling, asker):
                raise NothingToExplainError(
                    f"no job {label} of user {asker.user} waits (others' jobs are shown to their "
                    f"users, coordinators and operators alone); see `squeue -j {label}`"
                )
            if job is None and sibling is not None:
                raise NothingToExplainError(
                    f"job {label} is the federation's: it may run here, but counts at {cluster}, "
                    "and that cluster's daemon gives it its priority; ask there"
                )
            if job is None:
                unreadable = UNREADABLE if queue.incomplete else ""
                raise NothingToExplainError(
                    f"no job {label} waits{unreadable}; "
                    f"see `squeue -j {label}` and `sacct -j {label}`"
                )
            pushes = _pushes_for(view.pushes, job)
            prospect = scene.prospect_of(job)
            organization = scene.organization_of(job)
            hands = by_hand_in(view, job)
    ahead, tied_ahead, own_ahead = scene.ahead_of(job)
    return JobExplanation(
        basis=scene.basis,
        label=label,
        job=job,
        ranked=scene.ranked_seen(organization),
        outside=None if job is None else scene.outside(job),
        ahead=ahead,
        tied_ahead=tied_ahead,
        own_ahead=own_ahead,
        pushes=pushes[:PUSHES_SHOWN],
        given=next((one for one in pushes if one.state is PushState.AT_SUBMISSION), None),
        by_hand=hands,
        exception=None if job is None else scene.exception_of(job),
        put_ahead=0 if job is None else scene.put_ahead_of(job),
        prospect=prospect,
    )


def _names_of(job: PendingJob) -> tuple[str, str]:
    return job.label, str(job.job_id)


def _is_shown(job: PendingJob | None, asker: Asker) -> bool:
    """Returns whether the asker learns about a job; of none at all, whether that there is none.

    Both take the same steps, so that the time until the answer says nothing either.
    """
    if job is not None and job.user == asker.user:
        return True
    rights = asker.rights()
    return rights.operator or (job is not None and rights.see(job.account))


def explain_user(
    store: ClusterStore, slurm: QueueSource, user: str, asker: Asker | None = None
) -> JobsExplanation:
    """Explains the priorities of all pending jobs of a user.

    Args:
        store: of the cluster, where the standings are.
        slurm: where the jobs are.
        user: login name.
        asker: as for a job.

    Raises:
        NothingToExplainError: no job of such a user waits or runs, or the asker may not see them.
        SlurmError: Slurm is away, and no job of such a user ran at the last cycle.
        StoreError: it cannot be found out.
    """
    if asker is not None and not (user == asker.user or asker.rights().operator):
        raise NothingToExplainError(
            f"the jobs of user {user} are shown to that user and to operators alone"
        )
    queue = _Queue.asked_of(slurm)
    with store.reading() as view:
        scene, running = _Scene(view, queue, seen_by(asker, user)), view.runs.unfinished()
        jobs = scene.jobs_by_organization(running, lambda job: job.user == user)
    if not jobs:
        if queue.failure is not None:
            raise queue.failure
        elsewhere = {cluster for job, cluster in queue.elsewhere if job.user == user}
        counts = f" here, and those that wait count at {names_shown(elsewhere)}: ask there"
        raise NothingToExplainError(
            f"no job of user {user} waits or runs{counts if elsewhere else ''}; "
            f"see `squeue -u {user}` and `sacct -u {user}`"
        )
    return JobsExplanation(basis=scene.basis, whose="user", name=user, organizations=jobs)


def explain_account(
    store: ClusterStore, slurm: QueueSource, account: str, asker: Asker | None = None
) -> JobsExplanation:
    """Explains the priorities of all pending jobs of an account, without those below it.

    Args:
        store: of the cluster, where the standings are.
        slurm: where the jobs are.
        account: its name.
        asker: as for a job.

    Raises:
        NothingToExplainError: such an account was never heard of, or is not the asker's to see.
        StoreError: it cannot be found out.
    """
    if asker is not None and not asker.rights().see(account):
        raise NothingToExplainError(
            f"the jobs of account {account} are shown to its coordinators and to operators "
            "alone; --user shows your own"
        )
    queue = _Queue.asked_of(slurm)
    with store.reading() as view:
        scene, running = _Scene(view, queue, seen_by(asker)), view.runs.unfinished()
        jobs = scene.jobs_by_organization(running, lambda job: job.account == account, account)
    if not scene.tenures.knows("account", account) and not jobs[0].waiting:
        raise NothingToExplainError(unknown_account(account, scene.tenures))
    return JobsExplanation(basis=scene.basis, whose="account", name=account, organizations=jobs)


@dataclass(frozen=True, slots=True)
class _Queue:
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
    def asked_of(cls, slurm: QueueSource) -> _Queue:
        try:
            queue = slurm.pending()
        except SlurmError as failure:
            return cls((), incomplete=False, failure=failure)
        return cls(queue.jobs, bool(queue.malformed), failure=None, elsewhere=queue.elsewhere)


@dataclass(slots=True)
class _Chosen:
    """Jobs of an organization that somebody asks for, by their accounts."""

    accounts: set[str] = field(default_factory=set)
    waiting: list[PendingJob] = field(default_factory=list)
    running: int = 0


class _Scene:
    """The queue and the standings, read together."""

    def __init__(self, view: View, queue: _Queue, sees: Sees) -> None:
        self._view = view
        self._queue = queue
        self._sees = sees
        standings = view.history.latest_standings()
        watermark = view.ledger.watermark()
        self._second = watermark.accounted_to if watermark else 0
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
            rule=_rule(cycle) if standings else None,
            estimated_at=cycle.estimated_at if cycle else None,
            steering=next(reversed(view.history.steering()), None),
            window=window,
            horizon=watermark.horizon if watermark else None,
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
        return Prospect.of(self._view, job, self._second)

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
        found: defaultdict[_Place, _Chosen] = defaultdict(_Chosen)
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

    def _organization_jobs(self, place: _Place, ours: _Chosen) -> OrganizationJobs:
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

    def _in_order(self, entry: tuple[_Place, object]) -> tuple[int, str]:
        (organization, outside), _ = entry
        ranked = self._ranked.get(organization)
        return ranked.rank if ranked else len(self._ranked) + 1, outside or organization


def _rule(cycle: CycleRow | None) -> str:
    """Returns the rule that ranked; cycles that do not name one are from when there was one."""
    return (cycle.rule if cycle else "") or DirectContr.name


def _pushes_for(pushes: PushesView, job: PendingJob) -> Sequence[Push]:
    """Returns the last writes to what a job has its points of, by any channel."""
    found = {
        push.number: push
        for channel in CHANNELS.values()
        for push in pushes.latest(limit=PUSHES_SEARCHED, key=channel.key_of(job))
        if CHANNELS[push.channel].key_of(job) == push.key
    }
    return [found[number] for number in sorted(found, reverse=True)]


def _pushes_to(pushes: PushesView, label: str) -> Sequence[Push]:
    """Returns the last writes to the job with that id or name, as the store knows it."""
    by_id = pushes.latest(limit=PUSHES_SEARCHED, key=label)
    found = by_id or [push for push in pushes.latest(limit=PUSHES_SEARCHED) if push.label == label]
    return [push for push in found if CHANNELS[push.channel].per_job]


def _by_age(job: PendingJob) -> tuple[int, int]:
    return job.submit, job.job_id


def unknown_account(account: str, tenures: Tenures) -> str:
    """Says that no such account is known, and which may be meant."""
    known = {tenure.name for tenure in tenures if tenure.kind == "account"}
    near = get_close_matches(account, sorted(known), n=1)
    hint = f"did you mean {near[0]}?" if near else "see `sacctmgr show account`"
    return f"no account {account} is known here; {hint}"
