"""What a cluster's pool looked like to it after its last cycle."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from shapleyprio.common.wording import clock_time, duration, duration_in_words, listed, names_shown
from shapleyprio.fairness.pool import PartState, PoolPart, Stay, parts_of
from shapleyprio.fairness.rules import RULES
from shapleyprio.store import PoolsView, StandingRow, View


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """A pool, as one of its clusters has it.

    Attributes:
        stay: of the cluster.
        t: second at which its ledger stands.
        parts: what the other clusters add, by name; of a cluster's stays the newest comes first.
        scores: organization -> the sum of its balances, by which the cluster ranked.
        all_parts: completed by all jobs in all stays that count, of any age.
        strangers: organizations of other clusters that are none here.
        horizon: of the cluster in seconds; None for never.
        other_horizons: clusters of the pool that have another one -> theirs.
    """

    stay: Stay
    t: int
    parts: tuple[PoolPart, ...]
    scores: Mapping[str, int]
    all_parts: int
    strangers: tuple[str, ...]
    horizon: int | None = None
    other_horizons: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def spans_others(self) -> bool:
        """Whether other clusters, or other stays of this one, belong to it."""
        return bool(self.parts)

    def balance_per_part(self, organization: str) -> Fraction | None:
        """Returns its balance in the whole pool in seconds, spread over all parts; None without."""
        return Fraction(self.scores[organization], self.all_parts) if self.all_parts else None

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "name": self.stay.pool,
            "consortium": self.stay.consortium or None,
            "since": self.stay.since,
            "stale_after": self.stay.stale_after,
            "clusters": [
                {
                    "cluster": part.cluster,
                    "since": part.since,
                    "t": part.t,
                    "state": part.state.value,
                    "balances": {name: path.after(0) for name, path in part.balances.items()},
                }
                for part in self.parts
            ],
            "balances_per_part": {
                name: None if (each := self.balance_per_part(name)) is None else float(each)
                for name in self.scores
            },
            "strangers": list(self.strangers),
            "other_horizons": dict(self.other_horizons),
        }

    def sentences(self) -> list[str]:
        """Says which clusters count, and how; what is not as it should be stands by itself."""
        whose = f" of {self.stay.consortium}" if self.stay.consortium else ""
        current = [
            f"{part.cluster} ({duration(max(self.t - (part.t or 0), 0))} before)"
            for part in self.parts
            if part.state is PartState.CURRENT
        ]
        with_others = f" and those at {', '.join(current)}" if current else ""
        found = [
            f"Pool {self.stay.pool}{whose}: ranks are by the sum of balances here since "
            f"{clock_time(self.stay.since)}{with_others}."
        ]
        found += self.troubles()
        if self.strangers:
            found.append(
                "Other clusters of the pool have organizations that do not exist here: "
                f"{names_shown(self.strangers)}."
            )
        if self.other_horizons:
            found.append(f"{horizons_in_words(self.other_horizons, self.horizon)}.")
        return found

    def troubles(self) -> list[str]:
        """Says which clusters do not count as of now, and how they do."""
        return [sentence for part in self.parts if (sentence := self._trouble_of(part))]

    def _trouble_of(self, part: PoolPart) -> str:
        name = part.cluster
        at = "" if part.t is None else clock_time(part.t)
        return {
            PartState.CURRENT: "",
            PartState.STALE: f"{name} is stale: its last cycle was at {at}, and its "
            "balances count as they stood then.",
            PartState.LEFT: f"An earlier stay of {name} in the pool counts as it stood at {at}."
            if name in self.stay.clusters
            else f"By the configuration here {name} has left the pool: its balances count as "
            f"they stood at {at}.",
            PartState.UNKNOWN: f"{name} has had no cycle in the pool yet.",
            PartState.OTHER_WEIGHT: f"{name} counts other processors (fairness.weight), and so "
            "does not count here.",
        }[part.state]


def pool_status(view: View, standings: Sequence[StandingRow]) -> PoolStatus | None:
    """Reads the pool of a cluster.

    None if it is in none or has no standings, or its rule does not rank by balances.

    Args:
        view: of the cluster.
        standings: its last ones.
    """
    stay, watermark = view.pools.stay(), view.ledger.watermark()
    if stay is None or watermark is None or not standings:
        return None
    cycle = view.history.cycle(standings[0].cycle)
    rule = None if cycle is None else RULES.get(cycle.rule)
    if rule is not None and not rule.by_balance:
        return None
    t = standings[0].t
    found = view.pools.pool_balances(stay.pool)
    parts = parts_of(found, stay, cluster=view.cluster, t=t, weight=watermark.weight)
    ours = (
        one.all_parts for one in found if (one.cluster, one.since) == (view.cluster, stay.since)
    )
    scores = {row.organization: row.score for row in standings}
    others = {part.cluster for part in parts if part.balances and part.state is not PartState.LEFT}
    return PoolStatus(
        stay=stay,
        t=t,
        parts=tuple(parts),
        scores=scores,
        all_parts=sum(ours) + sum(part.all_parts for part in parts),
        strangers=tuple(sorted(view.pools.organizations(others) - scores.keys())),
        horizon=watermark.horizon,
        other_horizons=other_horizons(view.pools, stay.clusters, watermark.horizon),
    )


def other_horizons(
    pools: PoolsView, clusters: Collection[str], horizon: int | None
) -> Mapping[str, int | None]:
    """Returns clusters that have another `fairness.horizon` -> theirs; None is never."""
    return {name: own for name, own in pools.horizons(clusters).items() if own != horizon}


def horizons_in_words(others: Mapping[str, int | None], horizon: int | None) -> str:
    """Says which clusters of a pool have another horizon; without a full stop.

    >>> horizons_in_words({"c2": 864_000}, None)
    'fairness.horizon is 10 days at c2, and unlimited here: a sum of such balances means little'
    """
    theirs = [f"{_horizon(own)} at {name}" for name, own in sorted(others.items())]
    return (
        f"fairness.horizon is {listed(theirs)}, and {_horizon(horizon)} here: a sum of such "
        "balances means little"
    )


def _horizon(seconds: int | None) -> str:
    return "unlimited" if seconds is None else duration_in_words(seconds)
