"""What a pool has of a cluster: its partitions, their nodes and jobs, and a ledger for them alone.

A cluster in no pool, or in one pool with all its partitions, is one segment under its own name. The
segments of a cluster share nothing but Slurm: what happens in one is as if the others were another
cluster. A job belongs to one segment alone, that of the partition in which it runs, and while it
waits in several, that of the first of them in Slurm's list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shapleyprio.config.consortium import Pool
from shapleyprio.config.model import Config
from shapleyprio.fairness.pool import cluster_behind, ledger_of
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.layout import Layout, Node
from shapleyprio.slurm.port import Malformed, PendingJob, PendingQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """What one pool has of one cluster.

    Attributes:
        ledger: the name under which the store has it.
        pool: None for a cluster in no pool.
        elsewhere: partitions that are other segments'.
        puts_back: whether it looks after jobs of partitions that are in no pool; one segment does.
    """

    ledger: str
    pool: Pool | None = None
    elsewhere: frozenset[str] = field(default_factory=frozenset)
    puts_back: bool = False

    @property
    def name(self) -> str:
        """The pool's name; empty where there is none."""
        return "" if self.pool is None else self.pool.name

    @property
    def together(self) -> tuple[str, ...]:
        """Names of the ledgers that its pool has of all clusters, this one among them."""
        if self.pool is None:
            return (self.ledger,)
        name = self.pool.name if self.pool.partitions else ""
        return tuple(ledger_of(cluster, name) for cluster in self.pool.clusters)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its cluster."""
        return not self.elsewhere and not (self.pool and self.pool.partitions)

    def has(self, partitions: str) -> bool:
        """Returns whether a job is one of the segment's.

        Args:
            partitions: of the job, as Slurm lists them.
        """
        first = partitions.partition(",")[0]
        if self.pool is not None and self.pool.partitions:
            return first in self.pool.partitions
        return first not in self.elsewhere

    def configured(self, config: Config) -> Config:
        """Returns the configuration with the pool's weight as that of all."""
        if self.pool is None or self.pool.weight is None:
            return config
        fairness = config.fairness.model_copy(update={"weight": self.pool.weight})
        return config.model_copy(update={"fairness": fairness})

    def layout(self, layout: Layout) -> Layout:
        """Returns the cluster's layout with the segment's partitions and their nodes alone."""
        if self.is_whole:
            return layout
        partitions = {name: one for name, one in layout.partitions.items() if self.has(name)}
        others = layout.partitions.keys() - partitions.keys()
        ours = {node for one in partitions.values() for node in one.nodes}
        if self.pool is None or not self.pool.partitions:  # nodes in no partition are there as well
            theirs = {node for name in others for node in layout.partitions[name].nodes}
            ours |= layout.nodes.keys() - theirs
        nodes = {name: node for name, node in layout.nodes.items() if name in ours}
        return replace(layout, partitions=partitions, nodes=nodes)

    def nodes(self, nodes: Mapping[str, Node], layout: Layout) -> Mapping[str, Node]:
        """Returns those nodes that are the segment's.

        Args:
            nodes: of the cluster, as they are now.
            layout: of the segment, as it was read last.
        """
        if self.is_whole:
            return nodes
        return {name: node for name, node in nodes.items() if name in layout.nodes}

    def records(self, records: Iterable[JobRecord | Malformed]) -> Iterator[JobRecord | Malformed]:
        """Yields the records of the segment's jobs, and lines that may be of any."""
        if self.is_whole:
            return iter(records)
        return (
            record
            for record in records
            if isinstance(record, Malformed) or self.has(record.partition)
        )

    def queue(self, queue: PendingQueue) -> PendingQueue:
        """Returns the segment's jobs that wait, and lines that may be of any."""
        if self.is_whole:
            return queue
        return replace(queue, jobs=[job for job in queue.jobs if self.has(job.partition)])

    def stranded(self, queue: PendingQueue) -> Sequence[PendingJob]:
        """Returns the jobs of no pool that wait, if the segment looks after them.

        A pool that they were in may have been taken out of the configuration.
        """
        if not self.puts_back:
            return ()
        return [
            job
            for job in queue.jobs
            if not self.has(job.partition) and job.partition.partition(",")[0] not in self.elsewhere
        ]


def segments_of(config: Config, cluster: str) -> tuple[Segment, ...]:
    """Returns the segments of a cluster, in the order of the configuration's pools."""
    pools = [pool for pool in config.pools if cluster in pool.clusters]
    if not pools:
        return (Segment(ledger=cluster),)
    has_rest = any(not pool.partitions for pool in pools)
    return tuple(
        Segment(
            ledger=ledger_of(cluster, pool.name if pool.partitions else ""),
            pool=pool,
            elsewhere=frozenset(
                name for other in pools if other is not pool for name in other.partitions
            ),
            puts_back=pool is pools[0] and not has_rest,
        )
        for pool in pools
    )


def weights_of(config: Config, cluster: str) -> tuple[str, Mapping[str, str]]:
    """Returns what counts as a processor on a cluster, and partition -> what does so there."""
    usual = config.fairness.weight
    of_partitions: dict[str, str] = {}
    for segment in segments_of(config, cluster):
        weight = segment.configured(config).fairness.weight
        if segment.pool is not None and segment.pool.partitions:
            of_partitions |= dict.fromkeys(segment.pool.partitions, weight)
        else:
            usual = weight
    return usual, of_partitions


def segment_of(config: Config, ledger: str) -> Segment:
    """Returns the segment with that ledger; one that no pool has is a whole cluster."""
    found = (one for one in segments_of(config, cluster_behind(ledger)) if one.ledger == ledger)
    return next(found, Segment(ledger=ledger))
