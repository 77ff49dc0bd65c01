"""The state of a cluster in the store after its last cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from shapleyprio.daemon.answering.mutual_gain import Estimated, estimate_behind
from shapleyprio.daemon.answering.pool_status import PoolStatus, pool_status
from shapleyprio.daemon.answering.waiting_work import Sees
from shapleyprio.daemon.answering.waits import WaitsInPartition, read_waits
from shapleyprio.store import (
    ClusterStore,
    CycleRow,
    PublishedPoints,
    QuarantinedLine,
    StandingRow,
    StoreError,
)

DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationStatus:
    """One organization's row.

    Attributes:
        organization: its name.
        share: fraction of the organizations' processors that it brings.
        contribution, utility, balance: φ (or φ̃), ψ and their difference in part-seconds.
        contribution_share, utility_share: fractions of the sums over all organizations; None
            where the sum is not above zero.
        balance_per_part: balance / parts completed by all, in seconds: how much later (negative:
            sooner) than it earned it was served, on average over all parts; None if none are
            known of.
        score: by which the ranking rule orders the organizations, the highest first.
        reason: why it has its rank, in a few words of the ranking rule.
        priority: points its pending jobs get.
        pending, running: its jobs.
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
            "estimated_at": self.cycle.estimated_at,
            "postponed": self.cycle.postponed,
            "of_unknown_accounts": self.cycle.of_unknown_accounts,
            "coalitions": self.estimated and self.estimated.coalitions,
            "failure": self.failure
            and {
                "cycle": self.failure.number,
                "outcome": self.failure.outcome,
                "message": self.failure.message,
            },
            "organizations": [
                {name: getattr(row, name) for name in OrganizationStatus.__slots__}
                | self._from_estimate(row.organization)
                for row in self.rows
            ],
            "table": self.table
            and {"path": self.table.path, "since": self.table.since, "missed": self.missed},
            "quarantined": self.quarantined_count,
            "pool": self.pool and self.pool.as_json(),
            "waits": [row.as_json() for row in self.waits],
        }

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
        standings = view.latest_standings()
        last = view.last_cycle()
        cycle = view.cycle(standings[0].cycle) if standings else None
        estimated = estimate_behind(view, cycle) if cycle else None
        table = view.published_points()
        missed = view.missed(since=cycle.started - DAY) if cycle else 0
        quarantined = tuple(view.quarantined(limit=5))
        quarantined_count = view.quarantined_count()
        pool = pool_status(view, standings)
        waits = read_waits(view, cycle.t) if cycle else ()
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
        )
        for row in sorted(standings, key=lambda row: -row.priority)
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None
