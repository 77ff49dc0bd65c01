"""The cluster as a cycle found it: who waits, who runs, and what organizations bring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.daemon.ranking.demand import Counted
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.slurm.channels import Claims
from shapleyprio.slurm.port import Node, PendingJob
from shapleyprio.store import Transaction


def note_capacities(
    transaction: Transaction, observation: Observation, organizations: Collection[str], opened: int
) -> None:
    """Stores how many processors each organization brings, where that has changed.

    The first cycle cannot know since when a closed node has been closed: until then all nodes count
    as open since the opening.

    Args:
        transaction: of the store.
        observation: the cluster as it is.
        organizations: their names.
        opened: second at which the ledger was opened.
    """
    if not transaction.capacities():
        owned = observation.owned_processors()
        transaction.observe_capacities({name: owned.get(name, 0) for name in organizations}, opened)
    usable = observation.usable_processors()
    transaction.observe_capacities(
        {name: usable.get(name, 0) for name in organizations}, observation.t
    )


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The cluster as a cycle found it.

    Attributes:
        pending: jobs that wait.
        running: organization -> jobs that run.
        nodes: the cluster's nodes.
        tres: name under which a node offers its processors.
        tenures: who holds which node, account and partition.
        t: second for which all this counts.
        stranded: jobs that wait and are in no pool any more, of which nothing else counts.
    """

    pending: Sequence[PendingJob]
    running: Mapping[str, int]
    nodes: Collection[Node]
    tres: str
    tenures: Tenures
    t: int
    stranded: Sequence[PendingJob] = ()

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Partitions whose jobs count for nobody."""
        return self.tenures.left_out_partitions(self.t)

    def organization_of(self, job: PendingJob) -> str:
        """Returns for whom a waiting job counts, NOBODY among them."""
        return self._claims.of(job)

    def holders(self, *others: str) -> dict[str, str]:
        """Returns the accounts of the jobs that wait -> organization, NOBODY among them.

        Args:
            others: more accounts.
        """
        accounts = {account for account, _ in self._waiting}.union(others)
        return {name: self.tenures.holder("account", name, self.t) for name in accounts}

    def waiting_jobs(self) -> Mapping[str, int]:
        """Returns organization -> its jobs that wait."""
        found: Counter[str] = Counter()
        for (account, partition), jobs in self._waiting.items():
            found[self._claims.of_jobs_in(account, partition)] += jobs
        return found

    @cached_property
    def _waiting(self) -> Mapping[tuple[str, str], int]:
        """Account and partition -> the jobs that wait there."""
        return Counter(map(attrgetter("account", "partition"), self.pending))

    @cached_property
    def _claims(self) -> Claims:
        return Claims(self.holders(), left_out_partitions=self.left_out)

    def counting_jobs(self, counting: Mapping[int, Counted]) -> list[WaitingJob]:
        """Returns the waiting jobs that an estimate takes in.

        Slurm's list says of waiting jobs how many CPUs they ask for, and of nothing else.

        Args:
            counting: job id -> what counts of it.
        """
        if self.tres != "cpu":
            return []
        return [
            WaitingJob(
                job_id=job.job_id,
                organization=self._claims.of(job),
                account=job.account,
                user=job.user,
                release=found.since,
                limit=job.limit,
                tasks=found.tasks,
                processors=found.tasks * job.processors,
            )
            for job in self.pending
            if (found := counting.get(job.job_id)) is not None
        ]

    def owned_processors(self) -> Mapping[str, int]:
        """Returns organization -> processors of its nodes, be they up or down."""
        return self._by_owner(lambda node: node.tres.get(self.tres, 0))

    def usable_processors(self) -> Mapping[str, int]:
        """Returns organization -> processors of its nodes that are there for work."""
        return self._by_owner(lambda node: node.usable(self.tres))

    def _by_owner(self, processors: Callable[[Node], int]) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for node in self.nodes:
            found[self.tenures.holder("node", node.name, self.t)] += processors(node)
        return found
