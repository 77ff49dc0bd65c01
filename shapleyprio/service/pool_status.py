"""What a cluster's pool looked like to it after its last cycle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from shapleyprio.fairness.pool import PartState, PoolPart, Stay, parts_of
from shapleyprio.store import View
from shapleyprio.wording import clock_time, duration, duration_in_words, listed, names_shown


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """A pool, as one of its clusters has it.

    Attributes:
        stay: of the cluster.
        t: second at which its ledger stands.
        parts: what the other clusters add, by name; of a cluster's stays the newest comes first.
        strangers: organizations of other clusters that are none here.
        horizon: of the cluster in seconds; None for never.
        other_horizons: clusters of the pool that have another one -> theirs.
    """

    stay: Stay
    t: int
    parts: tuple[PoolPart, ...]
    strangers: tuple[str, ...]
    horizon: int | None = None
    other_horizons: Mapping[str, int | None] = field(default_factory=dict)

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
            f"Pool {self.stay.pool}{whose}: scores are balances here since "
            f"{clock_time(self.stay.since)}{with_others}."
        ]
        found += [sentence for part in self.parts if (sentence := self._trouble_of(part))]
        if self.strangers:
            found.append(
                "Other clusters of the pool have organizations that are none here: "
                f"{names_shown(self.strangers)}."
            )
        if self.other_horizons:
            found.append(f"{horizons_in_words(self.other_horizons, self.horizon)}.")
        return found

    def _trouble_of(self, part: PoolPart) -> str:
        name = part.cluster
        at = "" if part.t is None else clock_time(part.t)
        return {
            PartState.CURRENT: "",
            PartState.STALE: f"{name} is stale: its last cycle was at {at}, and its "
            "balances count as they stood then.",
            PartState.LEFT: f"{name} has left the pool: its balances count as they stood at {at}.",
            PartState.UNKNOWN: f"{name} has had no cycle in the pool yet.",
            PartState.OTHER_WEIGHT: f"{name} counts other processors (fairness.weight), and so "
            "does not count here.",
        }[part.state]


def pool_status(view: View, t: int, organizations: Collection[str]) -> PoolStatus | None:
    """Reads the pool of a cluster; None if it is in none.

    Args:
        view: of the cluster.
        t: second of its last standings.
        organizations: that it ranks.
    """
    stay, watermark = view.stay(), view.watermark()
    if stay is None or watermark is None:
        return None
    parts = parts_of(
        view.pool_balances(stay.pool), stay, cluster=view.cluster, t=t, weight=watermark.weight
    )
    theirs = {name for part in parts for name in part.balances}
    return PoolStatus(
        stay=stay,
        t=t,
        parts=tuple(parts),
        strangers=tuple(sorted(theirs - set(organizations))),
        horizon=watermark.horizon,
        other_horizons=other_horizons(view, stay.clusters, watermark.horizon),
    )


def other_horizons(
    view: View, clusters: Collection[str], horizon: int | None
) -> Mapping[str, int | None]:
    """Returns clusters that have another `fairness.horizon` -> theirs; None is never."""
    return {name: own for name, own in view.horizons(clusters).items() if own != horizon}


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
