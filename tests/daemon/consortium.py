"""Two organizations on a simulated cluster that can be made to lie, to change and to die."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shapleyprio.config import Config
from shapleyprio.daemon.checking.check import check
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.lab.simulated import DEFAULT_SETTINGS, SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.layout import Layout, Node, PrioritySettings
from shapleyprio.slurm.port import Controller, Malformed, PendingJob, PendingQueue, unchecked
from shapleyprio.store import EstimateRow, ManagedValue, Push, Store, WaitingWork

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from shapleyprio.daemon.pushing.push import PushCounts
    from shapleyprio.daemon.steering.report import CycleReport
    from shapleyprio.fairness.runs import JobRecord
    from shapleyprio.slurm.findings import Finding
    from shapleyprio.store import StandingRow

NOW = 1_800_000_000
NAME = "c1"
QUIET = replace(DEFAULT_SETTINGS, weights={"Age": 0, "QOS": 0})
FIRST, LAST = 200_000, 100_000
"""Points of the first and the last of two organizations where no other factor counts."""

PHYSICS = {"name": "physics", "accounts": ["physics"], "partitions": ["pa"], "qos": "phys"}
BIOLOGY = {"name": "biology", "accounts": ["biology"], "partitions": ["pb"], "qos": "bio"}


class Crash(Exception):  # noqa: N818  # the daemon's death, not an error it could handle
    """The daemon dies."""


def config(*organizations: Mapping[str, Any], **sections: Any) -> Config:
    """A configuration of physics and biology, or of these organizations; it keeps no old runs."""
    sections = {**sections, "service": {"keep_runs": "1s", **sections.get("service", {})}}
    return Config.model_validate(
        {"organization": organizations or (PHYSICS, BIOLOGY), **by_directcontr(sections)}
    )


def by_directcontr(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The sections, with the rule whose scores can be computed by hand unless they name one."""
    return {**sections, "fairness": {"rule": "directcontr", **sections.get("fairness", {})}}


class Cluster(SimulatedSlurm):
    """Physics owns a1 and a2 (4 processors each), biology b1 (4); guests belong to nobody.

    Attributes:
        skew: by how many seconds the controller's clock is wrong.
        layout_changes: attributes of the layout that are other than the simulation knows.
        partitions: what jobs that wait name, where the simulation knows a single partition.
        names: job -> its name, where that is another than the simulation has.
        deaf: whether writes are taken and not done.
        before_write, after_write: happens once, at the next write.
        windows: what accounting was asked for.
        writes: what was written.
        queues_read: how many times the whole queue was.
        values_read: jobs at which it was read what stands there, time by time.
    """

    def __init__(
        self,
        name: str = NAME,
        *,
        settings: PrioritySettings = QUIET,
        qos: Mapping[str, int] | None = None,
        accounts: Mapping[str, str | None] | None = None,
        accounting_delay: int = 0,
    ) -> None:
        super().__init__(
            SimulatedSpec(
                cluster=name,
                nodes={"a1": 4, "a2": 4, "b1": 4},
                partitions={"pa": ["a1", "a2"], "pb": ["b1"], "all": ["a1", "a2", "b1"]},
                accounts={"physics": None, "biology": None, "guest": None, **(accounts or {})},
                qos=qos,
                settings=settings,
            ),
            now=NOW,
            accounting_delay=accounting_delay,
        )
        self.skew = 0
        self.layout_changes: dict[str, Any] = {}
        self.deaf = False
        self.unreadable: set[int] = set()
        self.partitions: dict[int, str] = {}
        self.names: dict[int, str] = {}
        self.before_write: Callable[[], object] | None = None
        self.after_write: Callable[[], object] | None = None
        self.windows: list[tuple[int, int]] = []
        self.writes: list[tuple[str, dict[str, int]]] = []
        self.queues_read = 0
        self.values_read: list[set[int]] = []

    # -- what users do

    def fill(self, account: str, seconds: int = 10**6) -> int:
        """Occupies the whole cluster, so that what is submitted next waits."""
        job_id = self.submit(account, processors=12, processing_time=seconds)
        self.advance(self.now)
        return job_id

    def wait(self, seconds: int) -> None:
        """Lets time pass."""
        self.advance(self.now + seconds)

    def job(self, job_id: int) -> PendingJob:
        """A job that waits."""
        return next(job for job in self.jobs() if job.job_id == job_id)

    def jobs(self) -> list[PendingJob]:
        """All jobs that wait."""
        return list(super().pending().jobs)

    # -- the port

    def controller(self) -> Controller:
        answer = super().controller()
        return replace(answer, time=answer.time + self.skew)

    def layout(self) -> Layout:
        return replace(super().layout(), **self.layout_changes)

    def nodes(self) -> Mapping[str, Node]:
        nodes: Mapping[str, Node] = self.layout_changes.get("nodes", super().nodes())
        return nodes

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        self.windows.append((since, until))
        return super().records(since, until)

    def pending(self) -> PendingQueue:
        self.queues_read += 1
        queue = super().pending()
        readable = [
            replace(
                job,
                partition=self.partitions.get(job.job_id, job.partition),
                label=self.names.get(job.job_id, job.label),
                target=self.names.get(job.job_id, job.target),
            )
            for job in queue.jobs
            if job.job_id not in self.unreadable
        ]
        lost = [Malformed("squeue", str(job_id), "cut off") for job_id in self.unreadable]
        return PendingQueue(readable, [*queue.malformed, *lost])

    def values_of(self, channel: str, job_ids: Collection[int]) -> Mapping[int, int | None]:
        self.values_read.append(set(job_ids))
        return super().values_of(channel, job_ids)

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        _once(self, "before_write")
        self.writes.append((channel, dict(values)))
        numbers = {name: str(job_id) for job_id, name in self.names.items() if "+" in name}
        named = {numbers.get(target, target): value for target, value in values.items()}
        refused = {} if self.deaf else super().write(channel, named, check)
        _once(self, "after_write")
        return refused

    def die(self, moment: str) -> None:
        """Lets the daemon die at its next write: `before_write` or `after_write`."""

        def crash() -> None:
            raise Crash

        setattr(self, moment, crash)


def _once(cluster: Cluster, hook: str) -> None:
    action = getattr(cluster, hook)
    setattr(cluster, hook, None)
    if action is not None:
        action()


@dataclass
class Service:
    """The daemon on that cluster, without its schedule."""

    slurm: Cluster
    store: Store
    config: Config = field(default_factory=config)
    name: str = NAME

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, config: Config | None = None) -> None:
        """Forgets what was only in memory."""
        self.config = config or self.config
        self.cycle = Cycle(
            self.config, self.slurm, self.store.cluster(self.name), clock=lambda: self.slurm.now
        )

    def run(self, *, dry_run: bool = False) -> CycleReport:
        """One cycle; what is written in it alone stays in `slurm.writes`."""
        self.slurm.writes.clear()
        return self.cycle.run(dry_run=dry_run)

    def roll_back(self) -> PushCounts:
        return roll_back(self.store.cluster(self.name), self.slurm)

    def standings(self) -> dict[str, StandingRow]:
        """Organization -> what the last cycle found."""
        with self.store.cluster(self.name).reading() as view:
            return {row.organization: row for row in view.history.latest_standings()}

    def findings(self, configured: Config) -> dict[str, Finding]:
        """Subject -> what `shapleyprio check` finds with another configuration."""
        return {one.subject: one for one in check(configured, self.slurm, self.slurm.now)}

    def points(self) -> dict[str, int]:
        """Organization -> what the last cycle gave it."""
        return {name: row.priority for name, row in self.standings().items()}

    def pushes(self, job_id: int | str) -> list[Push]:
        """What was written to a job or QOS, the oldest first."""
        with self.store.cluster(self.name).reading() as view:
            return view.pushes.latest(key=str(job_id))[::-1]

    def managed_value(self, channel: str, job_id: int | str) -> ManagedValue | None:
        with self.store.cluster(self.name).reading() as view:
            return view.pushes.managed_values(channel).get(str(job_id))


def estimate(t: int, organization: str = "physics") -> EstimateRow:
    """What an estimate may find of an organization."""
    numbers = ("value", "rate", "acceleration", "error", "utility", "alone", "without", "parts")
    return EstimateRow(
        t=t,
        organization=organization,
        begin=0,
        denominator=1,
        coalitions=4,
        **dict.fromkeys(numbers, 0),
    )


def brings(user: str, jobs: int, hours: int, *, account: str = "physics") -> WaitingWork:
    """What a user of the organization of the same name as the account brings into an estimate."""
    return WaitingWork(
        organization=account,
        account=account,
        user=user,
        jobs=jobs,
        processor_seconds=hours * 3600,
    )


def rank_by_estimate(store: Store, *waiting: WaitingWork) -> None:
    """Lets the last cycle have ranked by an estimate with that waiting work, the most first."""
    with store.cluster(NAME).transaction() as rows:
        last = rows.history.last_cycle()
        assert last is not None
        rows.estimates.save_estimate(
            [estimate(last.t, name) for name in ("physics", "biology")], waiting
        )
        rows.history.save_cycle(replace(last, estimated_at=last.t, rule="shapley"))
