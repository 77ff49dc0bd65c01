"""The ranks of organizations by the rule, and those that Slurm's fair share would give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, TypedDict

from shapleyprio.common.wording import HOUR
from shapleyprio.daemon.answering.mutual_gain import Estimated, MutualGain
from shapleyprio.daemon.answering.waiting_work import OrganizationWaitingWork
from shapleyprio.daemon.drift.figures import LastWindow
from shapleyprio.store import StandingRow


class RankJson(TypedDict):
    """The keys under which an organization's rank stands in JSON."""

    organization: str
    rank: int
    organizations: int
    contribution: int
    utility: int
    balance: int
    score: int
    balance_per_part: float | None
    drift_seconds: float | None
    reason: str
    points: int
    before: dict[str, int]
    fair_share: dict[str, Any]
    value: dict[str, Any] | None
    waiting_work: dict[str, Any] | None
    union: dict[str, Any] | None


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
class RankedOrganization:
    """An organization among the others.

    Attributes:
        organization: its name.
        rank: by the ranking rule, 1 is served first.
        organizations: how many there are.
        contribution, utility, balance: φ (or φ̃), ψ and their difference in part-seconds.
        score: by which the rule orders the organizations; under directcontr the balance.
        balance_per_part: balance / parts completed by all, in seconds: owed if positive; None if
            no parts are known of.
        delay: seconds by which it was late in the last replayed window (ahead, if negative); None
            if that is not known.
        reason: why it has that rank, in a few words of the ranking rule.
        points: priority points that its jobs get.
        processors: owned.
        used: processor-seconds of its jobs, no older than the horizon.
        fair_share_rank: its rank by usage for each processor owned, the least first, as Slurm's
            fair share has it with the processors as shares; of equal usage it is the same.
        before: organization with a better rank -> its jobs that wait.
        before_by_fair_share: the same by usage for each processor owned.
        gain: what it is worth to the others; None where no estimate was made.
        waiting_work: that it brings into the newest estimate; None likewise.
        union: that it stands in; None if it stands alone.
    """

    organization: str
    rank: int
    organizations: int
    contribution: int
    utility: int
    balance: int
    score: int
    balance_per_part: Fraction | None
    delay: Fraction | None
    reason: str
    points: int
    processors: int
    used: int
    fair_share_rank: int
    before: Mapping[str, int]
    before_by_fair_share: Mapping[str, int]
    gain: MutualGain | None
    waiting_work: OrganizationWaitingWork | None
    union: UnionRank | None

    @property
    def used_each(self) -> Fraction | None:
        """Seconds that its jobs used of each processor it owns; None if it owns none."""
        return Fraction(self.used, self.processors) if self.processors else None

    def as_json(self) -> RankJson:
        """Returns a value for json.dumps."""
        each, delayed = self.used_each, self.balance_per_part
        return {
            "organization": self.organization,
            "rank": self.rank,
            "organizations": self.organizations,
            "contribution": self.contribution,
            "utility": self.utility,
            "balance": self.balance,
            "score": self.score,
            "balance_per_part": None if delayed is None else float(delayed),
            "drift_seconds": None if self.delay is None else float(-self.delay),
            "reason": self.reason,
            "points": self.points,
            "before": dict(self.before),
            "fair_share": {
                "rank": self.fair_share_rank,
                "processors": self.processors,
                "used_processor_seconds": self.used,
                "used_hours_each": None if each is None else float(each / HOUR),
                "before": dict(self.before_by_fair_share),
            },
            "value": None if self.gain is None else self.gain.as_json(),
            "waiting_work": None if self.waiting_work is None else self.waiting_work.as_json(),
            "union": None if self.union is None else asdict(self.union),
        }


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
        organization=row.organization,
        rank=rank,
        organizations=len(order),
        contribution=row.contribution,
        utility=row.utility,
        balance=row.balance,
        score=row.score,
        balance_per_part=row.balance_per_part,
        delay=None if window is None else window.delay(row.organization),
        reason=row.reason,
        points=row.priority,
        processors=row.processors,
        used=row.parts,
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
