"""The estimate that a cycle ranked by: who is worth what to others, and whose work waits in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from shapleyprio.common.wording import clock_time, duration
from shapleyprio.daemon.answering.inquiries import Asker
from shapleyprio.store import CycleRow, EstimateRow, EstimatesView, WaitingWork

Sees = Callable[[WaitingWork], bool]
"""Whether somebody may see what a user brings."""

OF_USER = ("user", "account", "jobs", "processor_seconds")
"""What is told of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationWaitingWork:
    """The waiting work that an organization brings into the newest estimate.

    Attributes:
        jobs, processor_seconds: of all its users together.
        users: what users bring of it, the most first; only what may be seen.
    """

    jobs: int
    processor_seconds: int
    users: tuple[WaitingWork, ...]

    def seen_by(self, sees: Sees) -> Self:
        """Returns what somebody may see."""
        return replace(self, users=tuple(filter(sees, self.users)))

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "jobs": self.jobs,
            "processor_seconds": self.processor_seconds,
            "users": [{name: getattr(row, name) for name in OF_USER} for row in self.users],
        }


def by_organization(
    rows: Iterable[WaitingWork], organizations: Iterable[str]
) -> dict[str, OrganizationWaitingWork]:
    """Returns what each organization brings, without pending jobs nothing.

    Args:
        rows: of the estimate, the most first.
        organizations: that it has.
    """
    users: dict[str, list[WaitingWork]] = {name: [] for name in organizations}
    for row in rows:
        users.setdefault(row.organization, []).append(row)
    return {
        name: OrganizationWaitingWork(
            jobs=sum(row.jobs for row in own),
            processor_seconds=sum(row.processor_seconds for row in own),
            users=tuple(own),
        )
        for name, own in users.items()
    }


def seen_by(asker: Asker | None, about: str | None = None) -> Sees:
    """Returns what somebody may see of waiting work.

    Args:
        asker: as for `explain_job`.
        about: user whose jobs are asked about; who asks about the own ones sees these alone, for
            which no rights are read.
    """

    def sees(row: WaitingWork) -> bool:
        return (
            asker is None
            or row.user == asker.user
            or (about != asker.user and asker.rights().see(row.account))
        )

    return sees


@dataclass(frozen=True, slots=True, kw_only=True)
class MutualGain:
    """An organization's worth to the others and theirs to it, since the estimate's begin.

    Attributes:
        organization: its name.
        begin: first second that the coalitions were simulated for.
        others_sooner: by how many seconds the others' parts were executed sooner, on average, than
            they would have been without its processors and jobs; None if there were none.
        own_sooner: by how many its own parts were, than alone.
        error: standard error of its contribution in part-seconds.
    """

    organization: str
    begin: int
    others_sooner: Fraction | None
    own_sooner: Fraction | None
    error: int

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        others, own = self.others_sooner, self.own_sooner
        return {
            "since": self.begin,
            "others_sooner_seconds": None if others is None else float(others),
            "own_sooner_seconds": None if own is None else float(own),
            "contribution_error": self.error,
        }

    def sentences(self) -> list[str]:
        """Says in plain words what the value means."""
        since = f"since {clock_time(self.begin)}"
        found = []
        if self.others_sooner is not None:
            found.append(
                f"Without {self.organization}, its nodes and its jobs, the others' work {since} "
                f"would have been done {_later(self.others_sooner)} on average."
            )
        if self.own_sooner is not None:
            found.append(
                f"Alone on its own nodes, {self.organization}'s work {since} would have been done "
                f"{_later(self.own_sooner)} on average."
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """The estimate that a cycle ranked by.

    Attributes:
        t: second for which it was made.
        coalitions: how many were valued.
        gains: organization -> what it is worth to the others.
        waiting_work: organization -> what it brings into the newest estimate, which is this one
            but in a cycle that has taken a newer one and goes on.
    """

    t: int
    coalitions: int
    gains: Mapping[str, MutualGain]
    waiting_work: Mapping[str, OrganizationWaitingWork]

    @property
    def error(self) -> int:
        """The largest standard error of a contribution, in part-seconds."""
        return max(gain.error for gain in self.gains.values())


def estimate_behind(estimates: EstimatesView, cycle: CycleRow) -> Estimated | None:
    """Reads the estimate that a cycle ranked by; None if it ranked by no estimate."""
    if cycle.estimated_at is None:
        return None
    rows = estimates.latest_estimate(until=cycle.estimated_at)
    if not rows or rows[0].t != cycle.estimated_at:
        return None  # pruned, or forgotten with a correction
    gains = mutual_gains(rows)
    return Estimated(
        t=rows[0].t,
        coalitions=rows[0].coalitions,
        gains=gains,
        waiting_work=by_organization(estimates.waiting_work(), gains),
    )


def mutual_gains(rows: Sequence[EstimateRow]) -> dict[str, MutualGain]:
    """Returns what each organization of an estimate is worth to the others.

    Args:
        rows: one for each organization.
    """
    utility, parts = sum(row.utility for row in rows), sum(row.parts for row in rows)
    return {
        row.organization: MutualGain(
            organization=row.organization,
            begin=row.begin,
            others_sooner=_mean(utility - row.utility - row.without, parts - row.parts),
            own_sooner=_mean(row.utility - row.alone, row.parts),
            error=row.error,
        )
        for row in rows
    }


def _mean(worth: int, parts: int) -> Fraction | None:
    return Fraction(worth, parts) if parts else None


def _later(seconds: Fraction) -> str:
    if abs(seconds) < 1:
        return "as soon"
    return f"{duration(float(abs(seconds)))} {'later' if seconds > 0 else 'sooner'}"
