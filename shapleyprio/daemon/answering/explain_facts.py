"""Facts of an explanation: the numbers behind the priorities of pending jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal, Self

from shapleyprio.daemon.answering.explain_ranks import FIGURES, RankedOrganization
from shapleyprio.daemon.answering.freshness import exception_as_json
from shapleyprio.daemon.answering.pool_status import PoolStatus
from shapleyprio.daemon.drift.figures import LastWindow
from shapleyprio.daemon.forecasting.messages import FRESH_SECONDS, LimitCost
from shapleyprio.daemon.pushing.by_hand import Kind
from shapleyprio.slurm.port import PendingJob
from shapleyprio.slurm.reasons import lack_of
from shapleyprio.store import LATER, ExceptionRow, ForecastRow, Push, SteeringRow, View

FORESEEN = frozenset({"turn", "time", "dependency", "reservation", "limit"})
"""What jobs wait for that have a forecast."""

OF_PUSH = ("cycle", "at", "channel", "target", "old", "new", "state")
"""What is told of each write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """When a job will start, as far as anybody knows.

    Attributes:
        forecast: of it; None if there is none, or none that is fresh.
        waits_for: ``turn`` or ``processors``, or what the job lacks beside its turn.
        reason: why it waits, as Slurm says, if it lacks anything beside its turn.
        cost: of its limit; None if it costs nothing that is worth a word, or nobody knows.
    """

    forecast: ForecastRow | None
    waits_for: str
    reason: str | None = None
    cost: LimitCost | None = None

    @classmethod
    def of(cls, view: View, job: PendingJob, t: int) -> Self:
        """Finds out what is known of a job.

        Args:
            view: of the cluster.
            job: that waits.
            t: now, on the cluster's clock.
        """
        reason = None if job.waits_for_its_turn else job.reason
        waits_for: str = "turn" if reason is None else lack_of(reason).missing
        foreseen = waits_for in FORESEEN and view.orders.pause() is None
        found = view.forecasts.of_job(job.job_id) if foreseen else None
        if found is None or t - found.t > FRESH_SECONDS:
            return cls(forecast=None, waits_for=waits_for, reason=reason)
        if reason is None and found.waits_for in {"processors", "reservation", "limit"}:
            waits_for = found.waits_for
        return cls(forecast=found.not_before(t), waits_for=waits_for, reason=reason)

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps; what lies beyond all futures is null."""
        found = self.forecast
        seconds = {
            name: None if found is None or (second := getattr(found, name)) == LATER else second
            for name in ("t", "median", "early", "late")
        }
        return {
            **seconds,
            "within_hour": None if found is None else found.within_hour / 100,
            "waits_for": self.waits_for,
            "shorter_limit": self.cost and asdict(self.cost),
        }


class Outside(StrEnum):
    """Why a job counts for no organization."""

    PARTITION = "partition_left_out"
    ACCOUNT = "account_left_out"
    UNCLAIMED = "account_unclaimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What an explanation rests on.

    Attributes:
        cluster: whose it is; of one that pools split, with the pool that it is of.
        pool: of the cluster after the cycle that ranked; None if it is in none.
        t: second of the standings, None before the first cycle that has some.
        rule: name of the rule that ranked the organizations; None before that cycle.
        estimated_at: second for which the contributions that it ranked by were estimated; None
            if they are the ledger's.
        steering: since when which rule and channel have steered; None before anything has.
        window: the last replayed one, which says who was late or ahead; None before the first.
        horizon: age in seconds from which work gains nothing more, None for never.
        paused: whether steering is paused, so that nothing is written.
        away: why Slurm did not show its queue, None if it did. Pending jobs are then those that
            the last cycle saw, held ones included.
    """

    cluster: str
    pool: PoolStatus | None
    t: int | None
    rule: str | None
    estimated_at: int | None
    steering: SteeringRow | None
    window: LastWindow | None
    horizon: int | None
    paused: bool
    away: str | None

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "cluster": self.cluster,
            "pool": self.pool and self.pool.as_json(),
            "t": self.t,
            "rule": self.rule,
            "estimated_at": self.estimated_at,
            "steering": self.steering and asdict(self.steering),
            "drift": self.window and self.window.as_json(),
            "horizon": self.horizon,
            "slurm_away": self.away,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JobExplanation:
    """The numbers behind one job's priority.

    Attributes:
        basis: what they rest on.
        label: as it was asked for.
        job: as Slurm shows it now; None while it is away.
        ranked: its organization; None if it counts for none, or before the first cycle.
        outside: why it counts for none; None if it does, or while Slurm is away.
        ahead: pending jobs that are ahead in Slurm's order; None while it is away.
        tied_ahead: those of them that have the same priority.
        own_ahead: those of them that are its own organization's.
        pushes: what was written to the job, or to what it has its points of; the newest first.
        given: what it had got from the table of points when it was first seen; None if nothing,
            or if that is no longer on record.
        by_hand: what somebody has set at it -> the value.
        exception: by which it goes first; None if there is none.
        put_ahead: jobs ahead of it that go first by exceptions which concern it.
        prospect: when it will start; None while Slurm is away.
    """

    basis: Basis
    label: str
    job: PendingJob | None
    ranked: RankedOrganization | None
    outside: Outside | None
    ahead: int | None
    tied_ahead: int | None
    own_ahead: int | None
    pushes: Sequence[Push]
    given: Push | None
    by_hand: Mapping[Kind, int]
    exception: ExceptionRow | None = None
    put_ahead: int = 0
    prospect: Prospect | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "job": _job_as_json(self.job),
            **_rank_as_json(self.ranked),
            "outside": self.outside,
            "ahead": self.ahead,
            "tied_ahead": self.tied_ahead,
            "own_ahead": self.own_ahead,
            **self.basis.as_json(),
            "pushes": [{name: getattr(one, name) for name in OF_PUSH} for one in self.pushes],
            "at_submission": self.given and self.given.new,
            "by_hand": dict(self.by_hand),
            "exception": self.exception and exception_as_json(self.exception),
            "put_ahead": self.put_ahead,
            "start": self.prospect and self.prospect.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationJobs:
    """Those jobs of a user or an account that count for one organization.

    Attributes:
        ranked: the organization; None as for a job.
        outside: as for a job.
        accounts: their accounts.
        waiting: how many wait, an array's waiting part as one; None while Slurm is away.
        held: how many of them are held.
        running: how many ran at the last cycle.
        oldest: the one that waits longest.
        next_job: the one with the highest priority; None if none waits or all are held.
        ahead, tied_ahead, own_ahead: jobs ahead of that one, as for one job.
        prospect: when that one will start.
    """

    ranked: RankedOrganization | None
    outside: Outside | None
    accounts: tuple[str, ...]
    waiting: int | None
    held: int | None
    running: int
    oldest: PendingJob | None
    next_job: PendingJob | None
    ahead: int | None
    tied_ahead: int | None
    own_ahead: int | None
    prospect: Prospect | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            **_rank_as_json(self.ranked),
            "outside": self.outside,
            "accounts": list(self.accounts),
            "waiting": self.waiting,
            "held": self.held,
            "running": self.running,
            "oldest": _job_as_json(self.oldest),
            "next": _job_as_json(self.next_job),
            "ahead": self.ahead,
            "tied_ahead": self.tied_ahead,
            "own_ahead": self.own_ahead,
            "start": self.prospect and self.prospect.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsExplanation:
    """The numbers behind the priorities of all jobs of a user or an account.

    Attributes:
        basis: what they rest on.
        whose: what was asked for.
        name: of the user or account.
        organizations: one entry for each organization that the jobs count for.
    """

    basis: Basis
    whose: Literal["user", "account"]
    name: str
    organizations: tuple[OrganizationJobs, ...]

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            self.whose: self.name,
            **self.basis.as_json(),
            "organizations": [jobs.as_json() for jobs in self.organizations],
        }


def _job_as_json(job: PendingJob | None) -> dict[str, Any] | None:
    return None if job is None else asdict(job)


def _rank_as_json(ranked: RankedOrganization | None) -> dict[str, object]:
    """Returns a value for json.dumps; without a rank all its keys are there and null."""
    return dict.fromkeys(FIGURES) if ranked is None else ranked.as_json()
