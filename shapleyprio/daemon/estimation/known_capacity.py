"""The processors of a cluster's past: who brought how many to which partitions since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shapleyprio.replay.coalitions.game import Ints
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.partitions import ANY
from shapleyprio.store import CapacityRow

NOWHERE = -1
"""Stands for a partition in which no organization has had any processors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCapacity:
    """Processors of nodes, and the bays into which partitions cut these.

    Nodes that were in exactly the same partitions are a bay, also where this was so at different
    times. Those in the fewest partitions come first, as in a replay.

    Attributes:
        bays: names of the partitions that each has.
        since: int64[changes], seconds at which processors change, the first is the begin.
        owned: int64[changes, bays, k], processors of each organization from that second on.
    """

    bays: tuple[tuple[str, ...], ...]
    since: Ints
    owned: Ints

    @property
    def partitions(self) -> tuple[str, ...]:
        """Names of all partitions, and first the one of jobs whose partition is not known."""
        return (ANY, *sorted({name for names in self.bays for name in names}))

    def places_of(self, names: Iterable[str]) -> Ints:
        """Returns where partitions stand among those here, NOWHERE for one that is not."""
        place = {name: number for number, name in enumerate(self.partitions)}
        return np.array([place.get(name, NOWHERE) for name in names], dtype=np.int64)

    def bays_for(self, partition: Ints, *, always: bool = False) -> Bays | None:
        """Returns which processors each job may have; None if all have all.

        Args:
            partition: int64[jobs], as `places_of` has it.
            always: None is not returned.
        """
        partitions = self.partitions
        reach = np.array([[p == ANY or p in names for names in self.bays] for p in partitions])
        if reach.all() and not always:
            return None
        return Bays(
            partitions=partitions,
            reach=reach,
            owned=self.owned[-1],
            partition=partition.astype(np.int32),
        )


def known_capacity(
    rows: Iterable[CapacityRow], organizations: Sequence[str], begin: int, t: int
) -> KnownCapacity:
    """Returns the capacity of organizations from a first to a last second.

    Args:
        rows: of the cluster.
        organizations: names, in the order of the game.
        begin: the first one, in seconds since the epoch.
        t: the last one.
    """
    now: dict[str, Mapping[tuple[str, ...], int]] = {}
    levels = {begin: now}
    for row in sorted(rows, key=lambda row: row.since):
        if row.organization in organizations and row.since <= t:
            now = now | {row.organization: row.processors}
            levels[max(row.since, begin)] = now
    found = {names for level in levels.values() for held in level.values() for names in held}
    bays = tuple(sorted(found, key=lambda names: (len(names), names))) or ((),)
    nothing: Mapping[tuple[str, ...], int] = {}
    owned = [
        [[level.get(name, nothing).get(names, 0) for name in organizations] for names in bays]
        for level in levels.values()
    ]
    return KnownCapacity(
        bays=bays,
        since=np.array(list(levels), dtype=np.int64),
        owned=np.array(owned, dtype=np.int64).reshape(len(levels), len(bays), -1),
    )
