"""The cluster as a cycle found it: who waits, who runs, and what organizations bring."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.daemon.ranking.demand import Counted, CountingJobs
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.rule import Contributions, OrganizationState, Situation
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.slurm.channels import Claims
from shapleyprio.slurm.layout import Layout, Node
from shapleyprio.slurm.port import PendingJob, PendingQueue
from shapleyprio.store import Observations


def note_capacities(
    observed: Observations, observation: Observation, organizations: Collection[str], opened: int
) -> None:
    """Stores how many processors each organization brings to which partitions, where it changed.

    The first cycle cannot know since when a closed node has been closed: until then all nodes count
    as open since the opening.

    Args:
        observed: in the store.
        observation: the cluster as it is.
        organizations: their names.
        opened: second at which the ledger was opened.
    """
    if not observed.capacities():
        owned = observation.in_partitions(lambda node: node.tres.get(observation.tres, 0))
        observed.observe_capacities({name: owned.get(name, {}) for name in organizations}, opened)
    usable = observation.in_partitions(lambda node: node.usable(observation.tres))
    observed.observe_capacities(
        {name: usable.get(name, {}) for name in organizations}, observation.t
    )


def note_layout(
    observed: Observations, layout: Layout, tres: str, second: int, opened: int
) -> None:
    """Stores which nodes and accounts are other than before.

    Args:
        observed: in the store.
        layout: of the cluster, as Slurm has it.
        tres: name under which a node offers its processors.
        second: from which it is so.
        opened: second at which the ledger was opened.
    """
    partitions_of = layout.partitions_of_nodes()
    nodes = {
        name: (node.tres.get(tres, 0), partitions_of.get(name, ()))
        for name, node in layout.nodes.items()
    }
    observed.observe_layout(nodes, layout.accounts, second, opened=opened)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The cluster as a cycle found it.

    Attributes:
        pending: jobs that wait.
        running: organization -> jobs that run.
        nodes: the cluster's nodes.
        partitions_of: node -> names of its partitions, sorted; none that is in none.
        tres: name under which a node offers its processors.
        tenures: who holds which node, account and partition.
        t: second for which all this counts.
        queue: all jobs of the cluster that wait, as it was read.
        at_work: organizations and the runs that hold processors for them; empty without guarantees.
    """

    pending: Sequence[PendingJob]
    running: Mapping[str, int]
    nodes: Collection[Node]
    partitions_of: Mapping[str, tuple[str, ...]]
    tres: str
    tenures: Tenures
    t: int
    queue: PendingQueue = field(default_factory=PendingQueue)
    at_work: Sequence[tuple[str, Run]] = ()

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Partitions whose jobs do not count."""
        return self.tenures.left_out("partition", self.t)

    def organization_of_jobs_in(self, account: str, partitions: str) -> str:
        """Returns for whom an account's pending jobs count, NOBODY among them.

        Args:
            account: theirs.
            partitions: in which they may start, as Slurm lists them.
        """
        return self._claims.of_jobs_in(account, partitions)

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
        """Returns the pending jobs that an estimate takes in.

        Slurm's list says of pending jobs how many CPUs they ask for, and of nothing else.

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
                partition=found.partition,
            )
            for job in self.pending
            if (found := counting.get(job.job_id)) is not None
        ]

    def situation(
        self,
        organizations: Iterable[str],
        ledger: Ledger,
        places: Mapping[tuple[str, str], CountingJobs],
        estimated: Contributions | None,
    ) -> Situation:
        """Returns what a rule may use.

        Args:
            organizations: in the order of the configuration.
            ledger: that stands at t.
            places: account and partitions -> what counts of the pending jobs there.
            estimated: contributions, if the rule asks for them and there are any.
        """
        owned, waiting = self.owned_processors(), self._waiting_work(places)
        states = []
        for name in organizations:
            processors, release = waiting.get(name, (0, None))
            states.append(
                OrganizationState(
                    name=name, processors=owned.get(name, 0), waiting=processors, release=release
                )
            )
        return Situation(
            t=self.t,
            free=sum(
                max(node.usable(self.tres) - node.allocated.get(self.tres, 0), 0)
                for node in self.nodes
            ),
            organizations=tuple(states),
            estimated=estimated,
        ).counted_by(ledger)

    def _waiting_work(
        self, places: Mapping[tuple[str, str], CountingJobs]
    ) -> dict[str, tuple[int, int]]:
        """Returns organization -> processors that its pending jobs ask for, and since when."""
        found: dict[str, tuple[int, int]] = {}
        for place, (_, more, first) in places.items():
            name = self._claims.of_jobs_in(*place)
            processors, since = found.get(name, (0, first))
            found[name] = processors + more, min(since, first)
        return found

    def owned_processors(self) -> Mapping[str, int]:
        """Returns organization -> processors of its nodes, be they up or down."""
        found: Counter[str] = Counter()
        for node in self.nodes:
            found[self.owner(node)] += node.tres.get(self.tres, 0)
        return found

    def in_partitions(
        self, processors: Callable[[Node], int]
    ) -> Mapping[str, Mapping[tuple[str, ...], int]]:
        """Returns organization -> its nodes' processors, by partitions as in `CapacityRow`.

        Args:
            processors: returns those of a node that count.
        """
        found: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        for node in self.nodes:
            count, names = processors(node), self.partitions_of.get(node.name)
            if count and names:
                found[self.owner(node)][names] += count
        return {name: dict(counts) for name, counts in found.items()}

    def owner(self, node: Node) -> str:
        """Returns to which organization a node belongs."""
        return self.tenures.holder("node", node.name, self.t)
