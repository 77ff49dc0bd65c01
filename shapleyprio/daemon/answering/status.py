"""The state of a cluster in the store after its last cycle."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Self

from shapleyprio.common.wording import DAY, clock_time, count, duration, percent
from shapleyprio.daemon.answering.estimated import Estimated, Sees, estimate_behind
from shapleyprio.daemon.answering.pool_status import PoolStatus, pool_status
from shapleyprio.daemon.answering.waits import WaitsInPartition, read_waits
from shapleyprio.daemon.drift.figures import LastWindow, last_window
from shapleyprio.daemon.forecasting.scores import ForecastScore, scores_of
from shapleyprio.store import (
    ClusterStore,
    CycleRow,
    PublishedPoints,
    QuarantinedLine,
    StandingRow,
    SteeringRow,
    StoreError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationStatus:
    """One organization's row.

    Attributes:
        organization: its name.
        share: fraction of the organizations' processors that it brings.
        contribution, utility, balance: φ (or φ̃), ψ and their difference in part-seconds.
        contribution_share, utility_share: fractions of the sums over all organizations; None
            where the sum is not above zero.
        balance_per_part: balance / parts completed by all, in seconds: owed if positive; None if
            no parts are known of.
        score: by which the ranking rule orders the organizations, the highest first.
        reason: why it has its rank, in a few words of the ranking rule.
        priority: points its pending jobs get.
        pending, running: its jobs.
        parent: organization that it is a part of; None if it is part of none.
    """

    organization: str
    share: float
    contribution: int
    utility: int
    contribution_share: float | None
    utility_share: float | None
    balance: int
    balance_per_part: float | None
    score: int
    reason: str
    priority: int
    pending: int
    running: int
    parent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A cluster after its last cycle with standings.

    Attributes:
        cluster: its name.
        cycle: that cycle.
        failure: a later cycle that failed, if the last one did.
        rows: the organizations, the first to be served first.
        estimated: what it ranked by, None if by the ledger alone.
        all_parts: completed by all, of any age; 0 if none are known of.
        table: where the table of points is, and since when new jobs have got theirs from it.
        missed: how many did not, of those first seen in the day before that cycle.
        quarantined: lines of Slurm's that could not be read, the newest first.
        quarantined_count: how many there are.
        pool: of the cluster; None if it is in none.
        waits: how long jobs wait, by organization and partition.
        opened: first second that counts in the balances.
        window: the last replayed one, which says who was late or ahead; None before the first.
        steering: since when which rule and channel have steered; None before anything has.
        had_estimate: whether the rule that was chosen has ever ranked here, as far as is known.
        forecasts: what those of starts were worth in the last month, by how long ahead.
    """

    cluster: str
    cycle: CycleRow
    failure: CycleRow | None
    rows: tuple[OrganizationStatus, ...]
    estimated: Estimated | None
    all_parts: int
    table: PublishedPoints | None
    missed: int
    quarantined: tuple[QuarantinedLine, ...]
    quarantined_count: int
    pool: PoolStatus | None = None
    waits: tuple[WaitsInPartition, ...] = ()
    opened: int | None = None
    window: LastWindow | None = None
    steering: SteeringRow | None = None
    had_estimate: bool = False
    forecasts: tuple[ForecastScore, ...] = ()

    @property
    def chosen(self) -> str:
        """The configured rule."""
        return self.steering.chosen if self.steering and self.steering.chosen else self.cycle.rule

    @property
    def fell_back(self) -> bool:
        """Whether another rule ranked than the chosen one, so that there are no balances by it."""
        return self.cycle.rule != self.chosen

    def delay(self, organization: str) -> Fraction | None:
        """Returns by how many seconds it was late in the last window (ahead, if negative)."""
        return None if self.window is None else self.window.delay(organization)

    @property
    def on_estimate(self) -> str:
        """Says that there is no estimate; empty if none is needed or there is one."""
        if not self.fell_back:
            return ""
        when = (
            "has no estimate to rely on; see the daemon's log"
            if self.had_estimate
            else ("has no estimate yet")
        )
        return (
            f"The rule {self.chosen} {when}. Until it has one, {self.cycle.rule} ranks, and there "
            "are no balances to show."
        )

    @property
    def on_rule(self) -> str:
        """Says which rule steers, by which channel, and since when; empty if nothing does."""
        now = self.steering
        if now is None or not now.rule:
            return ""
        instead = f" instead of {now.chosen}" if now.rule != now.chosen else ""
        return (
            f"The rule {now.rule}{instead} has steered since {clock_time(now.since)}, by the "
            f"channel {now.channel}."
        )

    @property
    def on_window(self) -> str:
        """Says against what and over which time organizations were late or ahead."""
        if self.window is None:
            return "Late or ahead: not known, since no window has been replayed yet."
        return (
            f"Late or ahead: against {self.window.in_words}, spread over everybody's work; in all "
            f"{duration(float(self.window.unfairness))} too early or too late."
        )

    @property
    def on_balance(self) -> str:
        """Says what the balances are."""
        if self.opened is None or self.fell_back:
            return ""
        return (
            f"Balance: earned (φ, by the rule {self.cycle.rule}) minus got (ψ) since "
            f"{clock_time(self.opened)}, spread over everybody's work; + is owed."
        )

    @property
    def on_forecasts(self) -> str:
        """Says what the last month's forecasts of starts were worth; empty if none was judged."""
        judged = sum(score.count for score in self.forecasts)
        if not judged:
            return ""
        held = sum(score.count * score.coverage for score in self.forecasts) / judged
        errors = (f"{duration(score.error)} {score.lead} ahead" for score in self.forecasts)
        return (
            f"Forecasts of starts in the last month: {percent(held, digits=0)} of "
            f"{count(judged, 'interval')} held (80% should); half of the medians were off by "
            f"more than {', '.join(errors)}."
        )

    @property
    def error_per_part(self) -> float | None:
        """The largest standard error of an estimated contribution / parts completed by all.

        In seconds; None without an estimate or parts.
        """
        if self.estimated is None or not self.all_parts:
            return None
        return self.estimated.error / self.all_parts

    def seen_by(self, sees: Sees) -> Self:
        """Returns what somebody may see of users' waiting work, with all the rest."""
        if self.estimated is None:
            return self
        work = self.estimated.waiting_work
        seen = {name: own.seen_by(sees) for name, own in work.items()}
        return replace(self, estimated=replace(self.estimated, waiting_work=seen))

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "cluster": self.cluster,
            "t": self.cycle.t,
            "cycle": self.cycle.number,
            "outcome": self.cycle.outcome,
            "slurm_version": self.cycle.slurm_version,
            "adapter": self.cycle.adapter,
            "rule": self.cycle.rule,
            "steering": self.steering and asdict(self.steering),
            "drift": self.window and self.window.as_json(),
            "estimated_at": self.cycle.estimated_at,
            "postponed": self.cycle.postponed,
            "of_unknown_accounts": self.cycle.of_unknown_accounts,
            "by_hand": dict(self.cycle.by_hand),
            "coalitions": self.estimated and self.estimated.coalitions,
            "failure": self.failure
            and {
                "cycle": self.failure.number,
                "outcome": self.failure.outcome,
                "message": self.failure.message,
            },
            "organizations": [
                {name: getattr(row, name) for name in OrganizationStatus.__slots__}
                | self._from_window(row.organization)
                | self._from_estimate(row.organization)
                for row in self.rows
            ],
            "table": self.table
            and {"path": self.table.path, "since": self.table.since, "missed": self.missed},
            "quarantined": self.quarantined_count,
            "pool": self.pool and self.pool.as_json(),
            "waits": [row.as_json() for row in self.waits],
            "forecasts": [score.as_json() for score in self.forecasts],
        }

    def _from_window(self, organization: str) -> dict[str, Any]:
        delay = self.delay(organization)
        return {"drift_seconds": None if delay is None else float(-delay)}

    def _from_estimate(self, organization: str) -> dict[str, Any]:
        if self.estimated is None or organization not in self.estimated.gains:
            return {"value": None, "waiting_work": None}
        return {
            "value": self.estimated.gains[organization].as_json(),
            "waiting_work": self.estimated.waiting_work[organization].as_json(),
        }


class NoStandingsError(StoreError):
    """No cycle of a ledger has succeeded yet."""


def read_status(store: ClusterStore) -> Status:
    """Reads a cluster's status.

    Raises:
        NoStandingsError: there was no cycle with standings yet.
        StoreError: the store cannot be read.
    """
    with store.reading() as view:
        standings = view.history.latest_standings()
        last = view.history.last_cycle()
        cycle = view.history.cycle(standings[0].cycle) if standings else None
        estimated = estimate_behind(view.estimates, cycle) if cycle else None
        table = view.pushes.published_points()
        missed = view.history.missed(since=cycle.started - DAY) if cycle else 0
        quarantined = tuple(view.observed.quarantined(limit=5))
        quarantined_count = view.observed.quarantined_count()
        pool = pool_status(view, standings)
        waits = read_waits(view, cycle.t) if cycle else ()
        watermark = view.ledger.watermark()
        window = last_window(view.history)
        steering = view.history.steering()
        forecasts = scores_of(view, cycle.t) if cycle else []
    if cycle is None:
        why = f": {last.message}" if last is not None and last.message else ""
        raise NoStandingsError(f"no cycle on cluster {store.cluster} has succeeded yet{why}")
    failed = last is not None and last.number > cycle.number and bool(last.message)
    return Status(
        cluster=store.cluster,
        cycle=cycle,
        failure=last if failed else None,
        rows=organization_rows(standings),
        estimated=estimated,
        all_parts=standings[0].all_parts,
        table=table if table and table.since is not None else None,
        missed=missed,
        quarantined=quarantined,
        quarantined_count=quarantined_count,
        pool=pool,
        waits=waits,
        opened=watermark.opened if watermark else None,
        window=window,
        steering=steering[-1] if steering else None,
        had_estimate=any(row.rule == row.chosen == steering[-1].chosen for row in steering),
        forecasts=tuple(forecasts),
    )


def organization_rows(standings: list[StandingRow]) -> tuple[OrganizationStatus, ...]:
    """Formats the standings of one cycle as rows for people, the first to be served first."""
    processors = sum(row.processors for row in standings)
    contribution = sum(row.contribution for row in standings)
    utility = sum(row.utility for row in standings)
    return tuple(
        OrganizationStatus(
            organization=row.organization,
            share=row.processors / processors if processors else 0.0,
            contribution=row.contribution,
            utility=row.utility,
            contribution_share=_share(row.contribution, contribution),
            utility_share=_share(row.utility, utility),
            balance=row.balance,
            balance_per_part=None if (each := row.balance_per_part) is None else float(each),
            score=row.score,
            reason=row.reason,
            priority=row.priority,
            pending=row.pending,
            running=row.running,
            parent=row.parent,
        )
        for row in sorted(standings, key=lambda row: -row.priority)
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None
