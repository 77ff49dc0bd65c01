"""The findings and actions of one cycle, for the store, the metrics and people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from time import monotonic
from typing import Self

from shapleyprio.estimation.messages import WaitingJob
from shapleyprio.fairness.ledger import Standing
from shapleyprio.fairness.pool import PoolPart
from shapleyprio.fairness.rule import Ranking
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.service.demand import Counted
from shapleyprio.service.following import Foreign
from shapleyprio.service.push import PushCounts
from shapleyprio.service.tally import Tally
from shapleyprio.slurm.channels import Claims
from shapleyprio.slurm.port import AdapterInUse, Node, PendingJob
from shapleyprio.store import NewPush, StandingRow, UserAfterEnd
from shapleyprio.wording import delay


@dataclass(frozen=True, slots=True)
class Opening:
    """A ledger is opened, and who holds what has been so always.

    Attributes:
        since: first second that counts.
        accounts, nodes: organization, NOBODY among them -> how many it holds.
    """

    since: int
    accounts: Mapping[str, int]
    nodes: Mapping[str, int]

    @classmethod
    def of(cls, since: int, tenures: Tenures) -> Self:
        """Makes the opening of a ledger that knows these tenures so far."""
        held = list(tenures)
        return cls(
            since,
            accounts=Counter(tenure.organization for tenure in held if tenure.kind == "account"),
            nodes=Counter(tenure.organization for tenure in held if tenure.kind == "node"),
        )


@dataclass(slots=True)
class CycleReport:
    """What one cycle found and did.

    Attributes:
        number: of the cycle.
        t: second at which the ledger stands.
        tally: what became of the accounting records.
        started: runs that were not known before.
        standings: one row for each organization, in the order of the configuration.
        planned: the writes that were made, or in a dry run would be, the most urgent first.
        postponed: how many more are left to the next cycle.
        at_submission: what new jobs had got from the table of points, for the record.
        missed: jobs, first seen, to which the table should have given points and did not.
        table_written: second of the table of points that it wrote; None if it wrote none.
        pushed: what became of them.
        of_unknown_accounts: waiting jobs under accounts that accounting does not know.
        after_end: organization -> processor-seconds that its runs are found to have gone on after
            their ends.
        users_after_end: whose runs that ended within a day went on most.
        touched: how many waiting jobs were touched so that they follow.
        foreign: what others have set where we write.
        seconds_until_reorder: seconds from t until the order of organizations that wait changes,
            if nothing starts or ends; None if not before the next poll.
        lag_seconds: age of the newest second up to which accounting is known to be complete.
        seconds: phase -> how long it took.
        slurm_version: the release of Slurm.
        adapter: through which Slurm was spoken to.
        rule: name of the rule that ranked the organizations.
        estimated_at: second for which the contributions that it ranked by were estimated; None
            if they are the ledger's.
        pool: what the other clusters of the pool add to the scores.
        conflicts: how often a transaction was done anew, for the database had undone it.
    """

    number: int
    t: int = 0
    tally: Tally = field(default_factory=Tally)
    started: list[Run] = field(default_factory=list)
    standings: Sequence[StandingRow] = ()
    planned: Sequence[NewPush] = ()
    postponed: int = 0
    at_submission: Sequence[NewPush] = ()
    missed: int = 0
    table_written: int | None = None
    pushed: PushCounts = field(default_factory=PushCounts)
    of_unknown_accounts: int = 0
    after_end: Mapping[str, int] = field(default_factory=dict)
    users_after_end: Sequence[UserAfterEnd] = ()
    touched: int = 0
    foreign: Foreign = field(default_factory=Foreign)
    seconds_until_reorder: int | None = None
    lag_seconds: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    slurm_version: str = ""
    adapter: AdapterInUse | None = None
    rule: str = ""
    estimated_at: int | None = None
    pool: Sequence[PoolPart] = ()
    conflicts: int = 0


class StopWatch:
    """Notes in a report how long the phases of a cycle took."""

    def __init__(self, report: CycleReport) -> None:
        self._report = report
        self._last = monotonic()

    def lap(self, phase: str) -> None:
        """Ends the phase and begins the next."""
        now = monotonic()
        self._report.seconds[phase] = now - self._last
        self._last = now


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


def standing_rows(
    cycle: int,
    standings: Mapping[str, Standing],
    ranking: Ranking,
    points: Mapping[str, int],
    observation: Observation,
    all_parts: int,
) -> list[StandingRow]:
    """Returns one row for each organization, in the order of the standings.

    Args:
        cycle: its number.
        standings: organization -> what it gave and got.
        ranking: of the same organizations.
        points: organization -> priority points.
        observation: the cluster.
        all_parts: of all jobs, whoever's, completed by then, of any age.
    """
    waiting, owned = observation.waiting_jobs(), observation.owned_processors()
    scores = ranking.scores
    return [
        StandingRow(
            cycle=cycle,
            organization=name,
            t=observation.t,
            contribution=ranking.contributions[name],
            utility=standing.utility,
            score=scores[name],
            priority=points[name],
            pending=waiting.get(name, 0),
            running=observation.running.get(name, 0),
            processors=owned.get(name, 0),
            parts=standing.parts,
            reason=ranking.reasons[name],
            all_parts=all_parts,
        )
        for name, standing in standings.items()
    ]


def explanations(rows: Iterable[StandingRow], ranking: Ranking) -> dict[str, str]:
    """Returns organization -> its rank and why it has it, in words for the record of writes.

    Args:
        rows: one for each organization.
        ranking: of the same organizations. Where its scores are not the balances, its own words
            say why.
    """
    order = ranking.order
    ranks = {name: rank for rank, name in enumerate(order, start=1)}
    return {
        row.organization: f"rank {ranks[row.organization]} of {len(order)}, {_why(row)}"
        for row in rows
    }


def _why(row: StandingRow) -> str:
    if row.score != row.balance:
        return row.reason
    return f"served {delay(row.balance_per_part or 0)}"
