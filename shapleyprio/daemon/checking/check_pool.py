"""Checks that the pools of the configuration mean this cluster, and what they have of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import combinations

from shapleyprio.common.wording import listed
from shapleyprio.config import Config
from shapleyprio.config.membership import host_list_of
from shapleyprio.config.segments import Segment
from shapleyprio.daemon.answering.pool_status import horizons_in_words, other_horizons
from shapleyprio.fairness.pool import Stay
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout
from shapleyprio.store import Store, StoreError


def check_pool(config: Config, layout: Layout, segments: Sequence[Segment]) -> Iterator[Finding]:
    """Yields findings about the pools.

    Args:
        config: the configuration.
        layout: the cluster.
        segments: what the pools have of it.
    """
    if config.pools and segments[0].pool is None:
        yield _in_none(config, layout.cluster)
    for segment in segments:
        yield from _in_store(config, segment)
    split = [segment for segment in segments if not segment.is_whole]
    if not split:
        return
    yield from _partitions(split, layout)
    for one, other in combinations(split, 2):
        yield from _counted_twice(config, one, other, layout)


def _in_none(config: Config, cluster: str) -> Finding:
    named = [name for pool in config.pools for name in pool.clusters]
    near = get_close_matches(cluster, named, n=1)
    meant = f"; is {near[0]!r} this one?" if near else ""
    return Finding(
        Severity.WARNING,
        "pool",
        f"this cluster, {cluster!r}, is in no pool: it goes by its own balances alone{meant}",
        "add its ClusterName to the `clusters` of a [[pool]], unless intended",
    )


def _in_store(config: Config, segment: Segment) -> Iterator[Finding]:
    """Yields what differs from the pool as other clusters, or another head node, have it.

    As far as the store can be read.
    """
    subject = "pool" if segment.is_whole else f"pool {segment.name}"
    ours = config.fairness.horizon
    others = set(segment.together) - {segment.ledger}
    try:
        store = Store.open_existing(config.store.url)
        if store is None:
            return
        with store, store.cluster(segment.ledger).reading() as view:
            stays = view.pools.stays()
            horizons = other_horizons(view.pools, others, ours) if others else {}
    except StoreError:
        return
    remedy = "name the same `clusters` at all clusters of the pool, and reload their daemons"
    for severity, message in _differences(segment, stays):
        yield Finding(severity, subject, message, remedy)
    if horizons:
        yield Finding(
            Severity.WARNING,
            subject,
            horizons_in_words(horizons, ours),
            "set the same fairness.horizon at all clusters of the pool",
        )


def _differences(segment: Segment, stays: Mapping[str, Stay]) -> Iterator[tuple[Severity, str]]:
    """Yields where the pool is another one here than in the last cycles of its clusters."""
    own = stays.get(segment.ledger)
    if segment.pool is None:
        if own is not None:
            yield (
                Severity.NOTICE,
                f"the last cycle was in pool {own.pool!r}, which the configuration lacks: the "
                "cluster leaves it with the next one",
            )
        return
    alike = {name: stay for name, stay in stays.items() if stay.pool == segment.pool.name}
    unnamed = sorted(alike.keys() - set(segment.together))
    if unnamed:
        strange = [name for name in segment.together if name not in alike]
        meant = [
            f"; does {name!r} mean {near!r}?"
            for name in strange
            for near in get_close_matches(name, unnamed, n=1)
        ]
        yield (
            Severity.WARNING,
            f"{listed(unnamed)} had its last cycle in this pool, but `clusters` here does not name "
            f"it: what that found counts here as it stood{''.join(meant[:1])}",
        )
    unaware = [
        name
        for name in segment.together
        if name in alike and name != segment.ledger and segment.ledger not in alike[name].clusters
    ]
    if unaware:
        yield (
            Severity.WARNING,
            f"`clusters` at {listed(unaware)} does not name this cluster: what it finds from now "
            "on does not count there",
        )
    if own is not None and (own.pool, set(own.clusters)) != (
        segment.pool.name,
        set(segment.together),
    ):
        yield (
            Severity.NOTICE,
            f"the last cycle of this cluster was in pool {own.pool!r} of {listed(own.clusters)}: "
            "the next one is in another (both head nodes need the same configuration)",
        )


def _partitions(split: Sequence[Segment], layout: Layout) -> Iterator[Finding]:
    for segment in split:
        assert segment.pool is not None, "what is split is split by pools"
        here = segment.layout(layout).partitions
        missing = [name for name in segment.pool.partitions if name not in layout.partitions]
        near = [
            found for name in missing for found in get_close_matches(name, layout.partitions, n=1)
        ]
        # a partition may be there at another cluster of the pool
        if missing and (not here or len(segment.pool.clusters) == 1):
            yield Finding(
                Severity.ERROR,
                f"pool {segment.name}",
                f"Slurm has no partition {listed(missing)}",
                f"did you mean {near[0]!r}?"
                if near
                else "correct the name; `scontrol show partition` lists them",
            )
        elif not here:
            yield Finding(
                Severity.WARNING,
                f"pool {segment.name}",
                "has no partition of this cluster: other pools name all of them",
                "leave this pool out, or some of their `partitions`",
            )
    nowhere = [name for name in layout.partitions if not any(one.has(name) for one in split)]
    if nowhere:
        yield Finding(
            Severity.WARNING,
            f"partitions {listed(nowhere)}",
            "are in no pool: their jobs get no priority and do not count",
            "add them to the `partitions` of a pool, or add a [[pool]] of this cluster without "
            "`partitions`, which has all that are left",
        )


def _counted_twice(
    config: Config, one: Segment, other: Segment, layout: Layout
) -> Iterator[Finding]:
    """Yields nodes of two pools that count the same processors."""
    weight = one.configured(config).fairness.weight
    shared = sorted(one.layout(layout).nodes.keys() & other.layout(layout).nodes.keys())
    if shared and weight == other.configured(config).fairness.weight:
        yield Finding(
            Severity.ERROR,
            f"pools {one.name} and {other.name}",
            f"both count the {weight} of nodes {host_list_of(shared)}: an organization would lend "
            "the same processors in both",
            "give one of them another `weight`, or put their partitions into one pool",
        )
