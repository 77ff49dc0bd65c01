"""Observes a cluster: who waits, who runs, what organizations bring, and what of it is new."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import structlog

from shapleyprio.common.wording import names_shown
from shapleyprio.config import Config
from shapleyprio.config.segments import Segment
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.known_layout import KnownLayout
from shapleyprio.daemon.pushing.managed import KnownValues
from shapleyprio.daemon.ranking.demand import CountingJobs, Demand, Rooms, Scene
from shapleyprio.daemon.ranking.observation import Observation, note_capacities, note_layout
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import NOBODY, Tenures
from shapleyprio.slurm.channels import Channel
from shapleyprio.slurm.layout import Layout
from shapleyprio.slurm.port import PendingJob
from shapleyprio.slurm.remembering import Source
from shapleyprio.store import ClusterStore, PendingJobs, Transaction, Wait

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsFound:
    """What a cycle found out about jobs, in numbers.

    Attributes:
        waits: how long those waited that have started and count for an organization.
        pending_jobs: the jobs that could start and wait.
        of_unknown_accounts: pending jobs under accounts that accounting does not know.
        quarantined: lines about pending jobs that could not be read.
    """

    waits: Sequence[Wait] = ()
    pending_jobs: Sequence[PendingJobs] = ()
    of_unknown_accounts: int = 0
    quarantined: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The cluster as a cycle found it, and which of its jobs count.

    Attributes:
        observation: who waits and who runs.
        demand: which of the jobs that wait count.
        jobs: numbers for people.
    """

    observation: Observation
    demand: Demand
    jobs: JobsFound


class ClusterObserver:
    """Observes a cluster, or what a ledger has of it, from cycle to cycle.

    Args:
        config: the organizations, and what counts.
        store: of the ledger, which gets what is new.
        known: the layout of the cluster.
        segment: what the ledger has of the cluster.
        channel: that carries the priorities.
        managed: what we did there.
    """

    def __init__(
        self,
        config: Config,
        store: ClusterStore,
        known: KnownLayout,
        segment: Segment,
        channel: Channel,
        managed: KnownValues,
    ) -> None:
        self._names = [organization.name for organization in config.organizations]
        self._tres = config.fairness.tres
        self._has_guarantees = bool(config.guarantees)
        self._store = store
        self._known = known
        self._segment = segment
        self._channel = channel
        self._managed = managed
        self._demand = Demand()
        self._noted: Layout | None = None
        self._unknown_accounts: frozenset[str] = frozenset()

    def observe(
        self, source: Source, opened: OpenLedger, started: Collection[Run], t: int
    ) -> Observed:
        """Observes the cluster, and stores what is other than before.

        Args:
            source: of jobs and nodes.
            opened: the ledger, as this cycle has accounted.
            started: runs that were not known before.
            t: second at which the ledger stands.

        Raises:
            SlurmError: Slurm is away or refuses.
            StoreError: nothing of it is stored.
        """
        in_slurm = source.pending()
        queue = self._segment.queue(in_slurm)
        in_cluster = source.nodes()
        self._known.note_nodes(in_cluster.keys())  # the next cycle finds out whose new ones are
        layout = self._known.layout
        nodes = self._segment.nodes(in_cluster, layout)
        of_unknown_accounts = self._count_unknown_accounts([job.account for job in queue.jobs])

        def note(transaction: Transaction) -> tuple[Observation, Demand]:
            transaction.observed.quarantine(queue.malformed, t, more=queue.more_malformed)
            observation = Observation(
                pending=queue.jobs,
                running=opened.runs.running(transaction.runs),
                nodes=nodes.values(),
                partitions_of=layout.partitions_of_nodes(),
                tres=self._tres,
                tenures=opened.tenures,
                t=t,
                queue=in_slurm,
                at_work=opened.runs.at_work(transaction.runs) if self._has_guarantees else (),
            )
            since = opened.watermark.opened
            note_capacities(transaction.observed, observation, self._names, since)
            if layout is not self._noted:  # as long as it is not reread, it is the same
                note_layout(transaction.observed, layout, self._tres, t, since)
            scene = Scene(
                t=t,
                rooms=Rooms(layout.partitions, nodes),
                organization_of=cache(observation.organization_of_jobs_in),
                own_priority=self._own_priority(transaction),
                started=started,
                running_tasks=lambda arrays: opened.runs.running_tasks(transaction.runs, arrays),
            )
            demand = self._demand.after(queue.jobs, transaction.observed.kept_back(), scene)
            transaction.observed.save_kept_back(demand.news)
            return observation, demand

        observation, self._demand = self._store.transact(note)
        self._noted = layout
        return Observed(
            observation=observation,
            demand=self._demand,
            jobs=JobsFound(
                waits=waits_of(started, opened.tenures),
                pending_jobs=pending_jobs_of(observation, self._demand.places),
                of_unknown_accounts=of_unknown_accounts,
                quarantined=len(queue.malformed) + queue.more_malformed,
            ),
        )

    def _own_priority(self, transaction: Transaction) -> Callable[[PendingJob], int]:
        """Returns what says which priority a pending job has without our points."""
        managed = self._managed.read(transaction)

        def own_priority(job: PendingJob) -> int:
            found = managed.get(self._channel.key_of(job))
            return self._channel.own_priority(job, None if found is None else found.asked)

        return own_priority

    def _count_unknown_accounts(self, accounts: Sequence[str]) -> int:
        """Counts jobs whose accounts are no organization's, for accounting does not know them.

        One that has just been added is known in the next cycle.
        """
        found = self._known.layout.of_unknown_accounts(accounts)
        jobs = sum(found.values())
        if found.keys() - self._unknown_accounts:
            self._known.forget()
        if found and found.keys() != self._unknown_accounts:
            log.warning(
                "pending jobs of accounts unknown to Slurm's accounting have no organization",
                jobs=jobs,
                accounts=names_shown(found),
            )
        self._unknown_accounts = frozenset(found)
        return jobs


def waits_of(runs: Iterable[Run], tenures: Tenures) -> list[Wait]:
    """Returns how long runs had waited, those left out that count for no organization."""
    found = []
    for run in runs:
        start = run.key.start
        organization = tenures.holder("account", run.account, start)
        if organization != NOBODY and not tenures.is_left_out("partition", run.partition, start):
            found.append(Wait(organization, run.partition, start - run.release))
    return found


def pending_jobs_of(
    observation: Observation, places: Mapping[tuple[str, str], CountingJobs]
) -> list[PendingJobs]:
    """Returns the jobs that could start and wait, by organization and partition.

    Args:
        observation: the cluster as it is.
        places: account and partitions -> the jobs there; held ones, for example, do not count.
    """
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for (account, partitions), (more, _, first) in places.items():
        organization = observation.organization_of_jobs_in(account, partitions)
        for partition in partitions.split(","):
            if organization != NOBODY and partition not in observation.left_out:
                jobs, since = found.get((organization, partition), (0, first))
                found[organization, partition] = (jobs + more, min(since, first))
    return [
        PendingJobs(organization=organization, partition=partition, jobs=jobs, since=since)
        for (organization, partition), (jobs, since) in sorted(found.items())
    ]
