"""What the store tells of a cluster after its last cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shapleyprio.store import CycleRow, KeptAside, StandingRow, Store, StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationStatus:
    """One organization's row.

    Attributes:
        organization: its name.
        share: fraction of the organizations' processors that it brings.
        contribution, utility, balance: φ̃, ψ and φ̃ − ψ in part-seconds.
        drift_seconds: (ψ − φ̃) / parts completed by all: how much sooner (negative: later) than
            it earned each part was executed, on average. φ̃ stands in for Ref's ψ here.
        priority: points its pending jobs get.
        pending, running: its jobs.
    """

    organization: str
    share: float
    contribution: int
    utility: int
    balance: int
    drift_seconds: float
    priority: int
    pending: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A cluster after its last cycle that told standings.

    Attributes:
        cluster: its name.
        cycle: that cycle.
        failure: a later cycle that failed, if the last one did.
        rows: the organizations, the first to be served first.
        kept_aside: lines of Slurm's that could not be read, the newest first.
        kept_aside_count: how many there are.
    """

    cluster: str
    cycle: CycleRow
    failure: CycleRow | None
    rows: tuple[OrganizationStatus, ...]
    kept_aside: tuple[KeptAside, ...]
    kept_aside_count: int

    def as_json(self) -> dict[str, Any]:
        """As a value for json.dumps."""
        return {
            "cluster": self.cluster,
            "t": self.cycle.t,
            "cycle": self.cycle.number,
            "outcome": self.cycle.outcome,
            "failure": self.failure
            and {
                "cycle": self.failure.number,
                "outcome": self.failure.outcome,
                "message": self.failure.message,
            },
            "organizations": [
                {name: getattr(row, name) for name in OrganizationStatus.__slots__}
                for row in self.rows
            ],
            "kept_aside": self.kept_aside_count,
        }


def read_status(store: Store, cluster: str) -> Status:
    """Reads a cluster's status.

    Raises:
        StoreError: there was no cycle yet that told standings.
    """
    with store.reading(cluster) as view:
        standings = view.latest_standings()
        last = view.last_cycle()
        cycle = view.cycle(standings[0].cycle) if standings else None
        kept_aside = tuple(view.kept_aside(limit=5))
        kept_aside_count = view.kept_aside_count()
    if cycle is None:
        why = f": {last.message}" if last is not None and last.message else ""
        raise StoreError(f"no cycle on cluster {cluster} has succeeded yet{why}")
    failed = last is not None and last.number > cycle.number and bool(last.message)
    return Status(
        cluster=cluster,
        cycle=cycle,
        failure=last if failed else None,
        rows=organization_rows(standings),
        kept_aside=kept_aside,
        kept_aside_count=kept_aside_count,
    )


def organization_rows(standings: list[StandingRow]) -> tuple[OrganizationStatus, ...]:
    """Standings of one cycle as rows for people, the first to be served first."""
    processors = sum(row.processors for row in standings)
    parts = sum(row.parts for row in standings)
    return tuple(
        OrganizationStatus(
            organization=row.organization,
            share=row.processors / processors if processors else 0.0,
            contribution=row.contribution,
            utility=row.utility,
            balance=row.contribution - row.utility,
            drift_seconds=(row.utility - row.contribution) / parts if parts else 0.0,
            priority=row.priority,
            pending=row.pending,
            running=row.running,
        )
        for row in sorted(standings, key=lambda row: -row.priority)
    )
