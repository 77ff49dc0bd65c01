"""The ranks of organizations by the rule, and those that Slurm's fair share would give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Any

from shapleyprio.common.wording import HOUR
from shapleyprio.daemon.answering.estimated import Estimated, MutualGain, OrganizationWaitingWork
from shapleyprio.daemon.drift.figures import LastWindow
from shapleyprio.store import StandingRow


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionRank:
    """The union of an organization among the others, and its place within.

    Attributes:
        parent: that is the head of the union.
        rank, unions: of the union, 1 is served first, and how many there are.
        balance_per_part: of all its members, in seconds; None if no parts are known of.
        place, members: of the organization within the union, and how many are in it.
    """

    parent: str
    rank: int
    unions: int
    balance_per_part: float | None
    place: int
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedOrganization(StandingRow):
    """An organization among the others, and what its standing is.

    Attributes:
        rank: by the ranking rule, 1 is served first.
        organizations: how many there are.
        delay: seconds by which it was late in the last replayed window (ahead, if negative); None
            if that is not known.
        fair_share_rank: its rank by usage for each processor owned, the least first, as Slurm's
            fair share has it with the processors as shares; of equal usage it is the same.
        before: organization with a better rank -> its jobs that wait.
        before_by_fair_share: the same by usage for each processor owned.
        gain: what it is worth to the others; None where no estimate was made.
        waiting_work: that it brings into the newest estimate; None likewise.
        union: that it stands in; None if it stands alone.
    """

    rank: int
    organizations: int
    delay: Fraction | None
    fair_share_rank: int
    before: Mapping[str, int]
    before_by_fair_share: Mapping[str, int]
    gain: MutualGain | None
    waiting_work: OrganizationWaitingWork | None
    union: UnionRank | None

    @property
    def points(self) -> int:
        """Priority points that its jobs get."""
        return self.priority

    @property
    def used_each(self) -> Fraction | None:
        """Seconds that its jobs used of each processor it owns; None if it owns none."""
        return Fraction(self.parts, self.processors) if self.processors else None

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {name: figure(self) for name, figure in FIGURES.items()}

    def fair_share_as_json(self) -> dict[str, object]:
        """Returns a value for json.dumps of what Slurm's fair share would make of it."""
        each = self.used_each
        return {
            "rank": self.fair_share_rank,
            "processors": self.processors,
            "used_processor_seconds": self.parts,
            "used_hours_each": None if each is None else float(each / HOUR),
            "before": dict(self.before_by_fair_share),
        }


FIGURES: Mapping[str, Callable[[RankedOrganization], Any]] = {
    "organization": attrgetter("organization"),
    "rank": attrgetter("rank"),
    "organizations": attrgetter("organizations"),
    "contribution": attrgetter("contribution"),
    "utility": attrgetter("utility"),
    "balance": attrgetter("balance"),
    "score": attrgetter("score"),
    "balance_per_part": lambda one: (
        None if one.balance_per_part is None else float(one.balance_per_part)
    ),
    "drift_seconds": lambda one: None if one.delay is None else float(-one.delay),
    "reason": attrgetter("reason"),
    "points": attrgetter("points"),
    "before": lambda one: dict(one.before),
    "fair_share": RankedOrganization.fair_share_as_json,
    "value": lambda one: one.gain and one.gain.as_json(),
    "waiting_work": lambda one: one.waiting_work and one.waiting_work.as_json(),
    "union": lambda one: one.union and asdict(one.union),
}
"""Key under which a figure of an organization's rank stands in JSON -> what it is."""


def rank_organizations(
    standings: Sequence[StandingRow],
    waiting: Mapping[str, int],
    estimated: Estimated | None,
    window: LastWindow | None = None,
) -> dict[str, RankedOrganization]:
    """Returns every organization with its rank.

    Args:
        standings: of one cycle.
        waiting: organization -> its jobs that wait.
        estimated: what the cycle ranked by; None without an estimate.
        window: the last replayed one; None before the first.

    Returns:
        organization -> where it stands, the first to be served first.
    """
    order = sorted(standings, key=lambda row: -row.priority)
    usage = {row.organization: _usage(row) for row in order}
    return {
        row.organization: _ranked(row, rank, order, waiting, usage, estimated, window)
        for rank, row in enumerate(order, start=1)
    }


def _ranked(
    row: StandingRow,
    rank: int,
    order: Sequence[StandingRow],
    waiting: Mapping[str, int],
    usage: Mapping[str, tuple[bool, Fraction]],
    estimated: Estimated | None,
    window: LastWindow | None,
) -> RankedOrganization:
    lower = [name for name in usage if usage[name] < usage[row.organization]]
    return RankedOrganization(
        **asdict(row),
        rank=rank,
        organizations=len(order),
        delay=None if window is None else window.delay(row.organization),
        fair_share_rank=len(lower) + 1,
        before={
            other.organization: waiting.get(other.organization, 0) for other in order[: rank - 1]
        },
        before_by_fair_share={name: waiting.get(name, 0) for name in lower},
        gain=estimated.gains.get(row.organization) if estimated else None,
        waiting_work=estimated.waiting_work.get(row.organization) if estimated else None,
        union=_union_of(row, order),
    )


def _union_of(row: StandingRow, order: Sequence[StandingRow]) -> UnionRank | None:
    """Returns where the union of an organization stands, which its members' ranks tell."""
    heads = list(dict.fromkeys(each.head for each in order))
    members = [each for each in order if each.head == row.head]
    if len(members) == 1:
        return None
    delays = [each.balance_per_part for each in members if each.balance_per_part is not None]
    return UnionRank(
        parent=row.head,
        rank=heads.index(row.head) + 1,
        unions=len(heads),
        balance_per_part=float(sum(delays)) if delays else None,
        place=members.index(row) + 1,
        members=len(members),
    )


def _usage(row: StandingRow) -> tuple[bool, Fraction]:
    """Returns what fair share orders by; without a share Slurm's factor is the lowest there is."""
    return not row.processors, Fraction(row.parts, row.processors or 1)
