"""Pools: what a rule calls additive, such as balances, added over several clusters.

The Shapley value is additive: the value of the sum of two games is the sum of their values
(SPAA 2013, section 3). Each cluster is a game of its own, for its jobs run on its processors alone,
so what an organization is owed in a pool is the sum of what it is owed at each cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.tenure import Allocation
from shapleyprio.fairness.worth import NOTHING, Trajectory


def ledger_of(cluster: str, pool: str = "") -> str:
    """Names a ledger: that of a whole cluster, or that of the partitions which a pool has of it.

    >>> ledger_of("c1"), ledger_of("c1", "gpu")
    ('c1', 'c1/gpu')
    """
    return f"{cluster}/{pool}" if pool else cluster


def cluster_behind(ledger: str) -> str:
    """Returns the name of the cluster of a ledger; Slurm allows no slash in it.

    >>> cluster_behind("c1/gpu")
    'c1'
    """
    return ledger.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """Time during which a cluster is in a pool; it lasts.

    Attributes:
        pool: its name.
        since: second from which on what is executed on the cluster counts in the pool.
        clusters: that are in the pool, this one among them.
        stale_after: age in seconds from which what another cluster has found is stale.
        consortium: its name, empty without one.
    """

    pool: str
    since: int
    clusters: tuple[str, ...]
    stale_after: int
    consortium: str = ""


class StayLedger(Ledger):
    """A cluster's ledger that also keeps apart what was executed before its stay in a pool.

    Attributes:
        earlier: what was executed before the stay, with the same horizon and fold; None for a
            cluster in no pool.
    """

    earlier: Ledger | None = None

    def begin_stay(self, since: int, *, with_all: bool = False) -> None:
        """Keeps apart from now on what was executed by then; no event may be later.

        Args:
            since: its first second.
            with_all: whether nothing was executed before, for it is when the ledger was opened.
        """
        self.earlier = Ledger(
            self.horizon,
            folded_to=self.folded_to,
            entries={} if with_all else deepcopy(self.entries),
            until=since,
        )
        self.earlier.changed |= self.earlier.entries.keys()

    def add(self, allocations: Iterable[Allocation]) -> None:
        """Counts allocations in."""
        placed = tuple(allocations)
        super().add(placed)
        if self.earlier is not None:
            self.earlier.add(placed)

    def subtract(self, allocations: Iterable[Allocation]) -> None:
        """Undoes `add` of the same allocations."""
        placed = tuple(allocations)
        super().subtract(placed)
        if self.earlier is not None:
            self.earlier.subtract(placed)

    def cross(self, allocation: Allocation, to: int) -> None:
        """Moves the events of one allocation that lie between the fold and the time `to`."""
        super().cross(allocation, to)
        if self.earlier is not None:
            self.earlier.cross(allocation, to)

    def fold(self, to: int, crossing: Iterable[Allocation]) -> None:
        """Moves the fold; see `Ledger.fold`."""
        super().fold(to, crossing)
        if self.earlier is not None:
            self.earlier.folded_to = to


class PartState(StrEnum):
    """How the balances of a cluster count in its pool."""

    CURRENT = "current"
    STALE = "stale"
    LEFT = "left"
    UNKNOWN = "unknown"
    OTHER_WEIGHT = "other_weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBalances:
    """The balances of organizations at one cluster, as of its last cycle.

    Attributes:
        cluster: its name.
        since: second from which on its work counts, by its clock.
        t: second at which its ledger stood then.
        weight: what counts as a processor.
        all_parts: of all jobs, whoever's, completed from `since` to t, of any age.
        balances: organization -> contribution minus utility in part-seconds, at t and later.
    """

    cluster: str
    since: int
    t: int
    weight: str
    all_parts: int
    balances: Mapping[str, Trajectory]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPart:
    """What one cluster adds to its pool.

    Attributes:
        cluster: its name.
        since: second from which on its work counts; None if it has found nothing yet.
        t: second at which its ledger stood in its last cycle; None without one.
        state: whether and how it counts.
        balances: organization -> what it adds, at the second of the ranking and later.
        all_parts: of all jobs, completed there meanwhile, of any age; 0 if it adds nothing.
    """

    cluster: str
    since: int | None
    t: int | None
    state: PartState
    balances: Mapping[str, Trajectory]
    all_parts: int = 0


def parts_of(
    found: Iterable[ClusterBalances], stay: Stay, *, cluster: str, t: int, weight: str
) -> list[PoolPart]:
    """Returns what all stays but the present one of a cluster add to its pool, by name.

    Of a cluster's stays the newest comes first.

    What is current follows its trajectory to t. What is further from t than the bound is stale and
    stays where it stood, so that an outage gives and takes nothing; so does that of a stay that
    has ended. A cluster that counts other processors adds nothing.

    Args:
        found: balances of clusters in the pool, in each of their stays.
        stay: the present one.
        cluster: to which it belongs.
        t: second at which its ledger stands.
        weight: what counts as a processor in the pool.
    """
    rows = sorted(found, key=lambda one: (one.cluster, -one.since))
    known = {cluster, *(one.cluster for one in rows)}
    parts = [
        PoolPart(cluster=name, since=None, t=None, state=PartState.UNKNOWN, balances={})
        for name in stay.clusters
        if name not in known
    ]
    last = ""
    for one in rows:
        before, last = last, one.cluster
        if (one.cluster, one.since) == (cluster, stay.since):
            continue
        if one.weight != weight:
            state = PartState.OTHER_WEIGHT
        elif one.cluster not in stay.clusters or one.cluster in {before, cluster}:
            state = PartState.LEFT
        elif abs(t - one.t) > stay.stale_after:
            state = PartState.STALE
        else:
            state = PartState.CURRENT
        parts.append(
            PoolPart(
                cluster=one.cluster,
                since=one.since,
                t=one.t,
                state=state,
                balances=_counted(one.balances, state, max(t - one.t, 0)),
                all_parts=0 if state is PartState.OTHER_WEIGHT else one.all_parts,
            )
        )
    return sorted(parts, key=lambda part: part.cluster)


def elsewhere(
    parts: Iterable[PoolPart], earlier: Mapping[str, Trajectory], organizations: Iterable[str]
) -> dict[str, Trajectory]:
    """Returns organization -> what its pool adds to what it has at a cluster.

    Args:
        parts: what the other clusters add. Organizations are the same if their names are.
        earlier: what of it stems from before the cluster's stay, and does not count.
        organizations: of the cluster.
    """
    sums = {name: -earlier.get(name, NOTHING) for name in organizations}
    for part in parts:
        for name in sums.keys() & part.balances.keys():
            sums[name] += part.balances[name]
    return sums


def _counted(
    balances: Mapping[str, Trajectory], state: PartState, seconds: int
) -> Mapping[str, Trajectory]:
    if state is PartState.OTHER_WEIGHT:
        return {}
    if state is PartState.CURRENT:
        return {name: path.later(seconds) for name, path in balances.items()}
    return {name: path.standing_still() for name, path in balances.items()}
