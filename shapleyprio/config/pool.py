"""The keys of a pool in the configuration file, and which of them contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shapleyprio.config.section import ConfigSection, key
from shapleyprio.config.toml import Path
from shapleyprio.config.values import (
    LONGEST_LEDGER_NAME,
    OptionalWeight,
    OrganizationName,
    SlurmNames,
)
from shapleyprio.fairness.pool import ledger_of
from shapleyprio.slurm.channels import CHANNELS


class Pool(ConfigSection):
    """[[pool]]."""

    name: OrganizationName = key(
        ...,
        "Name of the pool, the same at all its clusters. Under another name it starts from zero.",
        "all",
    )
    clusters: SlurmNames = key(
        ...,
        "ClusterNames of its clusters. One that is added counts from its first cycle in the pool; "
        "what a removed one earned in the pool still counts.",
        ["c1", "c2"],
    )
    partitions: SlurmNames = key(
        (),
        "Partitions of each cluster whose jobs and nodes it has. Without this key it has all that "
        "no other pool names.",
        ["gpu"],
    )
    weight: OptionalWeight = key(
        None,
        "Unit of a processor in this pool. fairness.weight if left out.",
        "gres/gpu",
    )


def misnamed(pools: tuple[Pool, ...]) -> Iterator[tuple[Path, str]]:
    """Yields pools that name no cluster, what can be none, or the same twice."""
    for index, pool in enumerate(pools):
        if not pool.clusters:
            yield (
                ("pool", index, "clusters"),
                "names no cluster; write the ClusterNames of those in the pool",
            )
        for cluster in pool.clusters:
            if "/" in cluster:
                yield (
                    ("pool", index, "clusters"),
                    f"{cluster!r} is not a ClusterName; to take a part of a cluster, name its "
                    "`partitions`",
                )
        for place, names in (("clusters", pool.clusters), ("partitions", pool.partitions)):
            for name, times in Counter(names).items():
                if times > 1:
                    yield ("pool", index, place), f"{name!r} is listed twice; list it once"


def split_twice(pools: tuple[Pool, ...]) -> Iterator[tuple[Path, str]]:
    """Yields what several pools have of one cluster: what is left over, or a partition."""
    first: dict[tuple[str, str], int] = {}
    for index, pool in enumerate(pools):
        for cluster in pool.clusters:
            for partition in pool.partitions or ("",):
                other = first.setdefault((cluster, partition), index)
                if other != index and partition:
                    yield (
                        ("pool", index, "partitions"),
                        f"{partition!r} of {cluster} is already in pool[{other + 1}]; "
                        "leave it to one of them",
                    )
                elif other != index:
                    yield (
                        ("pool", index, "clusters"),
                        f"{cluster!r} is already taken by pool[{other + 1}]; "
                        "leave it to one of them, or name the `partitions` of one",
                    )
            if pool.partitions and len(ledger_of(cluster, pool.name)) > LONGEST_LEDGER_NAME:
                yield (
                    ("pool", index, "name"),
                    f"is too long with that of {cluster} before it: "
                    f"{LONGEST_LEDGER_NAME} characters together with a slash",
                )


def alike_in_pools(
    pools: tuple[Pool, ...], channel: str, *, table: bool
) -> Iterator[tuple[Path, str]]:
    """Yields why the jobs of an account cannot have other points in each pool.

    Args:
        pools: of the configuration.
        channel: name of the one that is written to.
        table: whether new jobs have their points from a table.
    """
    for index, pool in enumerate(pools):
        if pool.partitions and not CHANNELS[channel].per_job:
            yield (
                ("pool", index, "partitions"),
                f'splits a cluster, but push.channel is "{channel}", which gives one priority to '
                f'all jobs of a {CHANNELS[channel].carrier}; set push.channel to "site_factor"',
            )
        elif pool.partitions and table:
            yield (
                ("pool", index, "partitions"),
                "splits a cluster, but push.table gives all new jobs of an account the same "
                "points; leave push.table out",
            )
