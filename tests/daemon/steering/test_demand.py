"""Which pending jobs count in an estimate, and since when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.ranking.demand import Counted, Demand, Rooms, Scene
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.layout import Node, Partition
from shapleyprio.store import KeptBack
from tests.daemon.consortium import NAME, NOW, Cluster, config
from tests.daemon.estimation.listening import Listening
from tests.daemon.pushing.test_urgency import waiting
from tests.store.examples import placed_run

if TYPE_CHECKING:
    from shapleyprio.daemon.estimation.messages import WaitingJob
    from shapleyprio.store import Store

SHAPLEY = {"rule": "shapley"}
JOB_CHANNELS = [name for name, channel in CHANNELS.items() if channel.per_job]


@dataclass
class Daemon:
    """Cycles, and what estimates would rest on."""

    slurm: Cluster
    store: Store
    channel: str = "site_factor"
    _listening: Listening = field(default_factory=Listening)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forgets what was only in memory."""
        self.cycle = Cycle(
            config(fairness=SHAPLEY, push={"channel": self.channel}),
            self.slurm,
            self.store.cluster(NAME),
            clock=lambda: self.slurm.now,
            estimates=self._listening,
        )

    def run(self) -> dict[int, WaitingJob]:
        """Job id -> what counts, after a cycle."""
        self.cycle.run()
        return {job.job_id: job for job in self._listening.waiting}

    def since(self, job_id: int) -> int | None:
        """Seconds after the beginning since which a job counts, after a cycle."""
        found = self.run().get(job_id)
        return None if found is None else found.release - NOW

    def releases(self) -> dict[str, tuple[int, int]]:
        """Label of a run -> seconds from which it could have started, and at which it did."""
        with self.store.cluster(NAME).reading() as view:
            return {
                run.label: (run.release - NOW, run.key.start - NOW)
                for run, _ in view.runs.all_runs()
            }


@pytest.fixture
def slurm() -> Cluster:
    return Cluster()


@pytest.fixture
def daemon(slurm: Cluster, store: Store) -> Daemon:
    return Daemon(slurm, store)


def occupy(slurm: Cluster, partition: str, account: str, processors: int | None = None) -> int:
    """Lets a job run for long on all of a partition, or on so many processors."""
    wide = {"pa": 8, "pb": 4}[partition] if processors is None else processors
    job = slurm.submit(account, processing_time=10**6, processors=wide, partition=partition)
    slurm.advance(slurm.now)
    return job


def test_a_job_counts_since_it_is_eligible(daemon: Daemon, slurm: Cluster) -> None:
    slurm.fill("biology")
    slurm.wait(10)
    job = slurm.submit("physics", processing_time=60)
    slurm.wait(50)
    assert daemon.since(job) == 10
    slurm.hold(job)
    assert daemon.since(job) is None
    slurm.wait(100)
    slurm.release(job)
    assert daemon.since(job) == 160
    later = slurm.submit("physics", processing_time=60, begin=slurm.now + 90)
    assert daemon.since(later) is None
    slurm.wait(200)
    assert daemon.since(later) == 250


def test_a_job_beyond_a_limit_counts_since_the_first_cycle_after_it(
    daemon: Daemon, slurm: Cluster
) -> None:
    slurm.set_most_jobs("physics", 1)
    occupy(slurm, "pa", "biology")
    first = occupy(slurm, "pb", "physics")
    job = slurm.submit("physics", processing_time=60, processors=2, partition="pb")
    slurm.wait(100)
    assert slurm.job(job).reason == "AssocGrpJobsLimit"
    assert daemon.since(job) is None
    slurm.wait(100)
    daemon.restart()
    assert daemon.since(job) is None
    slurm.wait(100)
    slurm.set_most_jobs("physics", None)
    assert slurm.job(job).waits_for_its_turn
    assert daemon.since(job) == 300
    slurm.wait(50)
    daemon.restart()
    assert daemon.since(job) == 300  # it is on record
    slurm.cancel(first)
    slurm.wait(20)
    daemon.run()
    assert daemon.releases()[str(job)] == (300, 350)


def test_what_starts_as_soon_as_a_limit_lets_it_could_not_start_before(
    daemon: Daemon, slurm: Cluster
) -> None:
    array = slurm.submit("physics", processing_time=100, array=4, at_once=1)
    slurm.wait(50)
    assert array not in daemon.run()
    slurm.wait(200)
    daemon.run()
    daemon.restart()
    slurm.wait(250)
    daemon.run()
    began = {f"{array}_{task}": (100 * task, 100 * task) for task in range(4)}
    assert daemon.releases() == began


def test_an_array_counts_with_as_many_tasks_as_may_run_beside_those_that_run(
    daemon: Daemon, slurm: Cluster
) -> None:
    blocks = slurm.submit("biology", processing_time=10**6, processors=11)
    slurm.wait(10)
    array = slurm.submit("physics", processing_time=1000, array=50, at_once=3)
    free = slurm.submit("physics", processing_time=1000, array=50)
    slurm.wait(10)
    found = daemon.run()
    assert (found[array].tasks, found[array].processors) == (2, 2)  # one of them runs
    assert (found[free].tasks, found[free].processors) == (50, 50)
    slurm.cancel(blocks)
    slurm.wait(10)
    assert array not in daemon.run()


def test_a_job_wider_than_its_partition_counts_once_that_is_wide_enough(
    daemon: Daemon, slurm: Cluster
) -> None:
    slurm.fill("biology")
    job = slurm.submit("physics", processing_time=60, processors=8, partition="pa")
    narrow = slurm.submit("physics", processing_time=60, processors=4, partition="pa")
    slurm.wait(10)
    slurm.drain("a1")
    found = daemon.run()
    assert (job in found, narrow in found) == (False, True)
    slurm.wait(100)
    slurm.undrain("a1")
    found = daemon.run()
    assert (found[job].release, found[narrow].release) == (NOW + 110, NOW)


def putting_off(slurm: Cluster, daemon: Daemon, *, nice: int) -> tuple[int, int]:
    """Physics' job of 10 s waits; its next one starts before; returns both."""
    occupy(slurm, "pa", "biology", 4)
    blocks = occupy(slurm, "pa", "biology", 4)
    slurm.wait(10)
    earlier = slurm.submit("physics", processing_time=60, processors=8, partition="pa", nice=nice)
    slurm.wait(100)
    assert daemon.since(earlier) == 10
    later = slurm.submit("physics", processing_time=10**6, processors=4, partition="pa", nice=10)
    slurm.wait(10)
    daemon.run()  # from now on both have the same points
    slurm.cancel(blocks)
    return earlier, later


@pytest.mark.parametrize("channel", JOB_CHANNELS)
def test_a_job_that_its_own_organization_puts_off_counts_since_the_other_started(
    slurm: Cluster, store: Store, channel: str
) -> None:
    daemon = Daemon(slurm, store, channel)
    put_off, later = putting_off(slurm, daemon, nice=500)
    others = slurm.submit("biology", processing_time=60, processors=4, partition="pa")
    slurm.wait(10)
    found = daemon.run()
    assert later not in found
    assert (found[put_off].release, found[others].release) == (NOW + 130, NOW + 120)
    daemon.restart()
    slurm.wait(10)
    assert daemon.since(put_off) == 130  # it is on record


@pytest.mark.parametrize(
    ("priority", "since", "counts_since"),
    [
        (60, 20, 500),
        (40, 20, 10),  # backfilled: Slurm lets it go first only where it keeps nobody waiting
        (50, 20, 10),
        (60, 5, 10),  # it has waited longer
        (0, 20, 10),  # it was held when it was last seen
    ],
)
def test_only_a_later_job_of_higher_priority_puts_one_off(
    priority: int, since: int, counts_since: int
) -> None:
    first = replace(waiting(1, 50), eligible=10)
    later = waiting(2, priority)
    scene = Scene(
        t=500,
        rooms=rooms(pa=("a1", "a2")),
        organization_of=lambda account, _: account,
        own_priority=attrgetter("priority"),
        started=[placed_run(2, 450, release=since)[0]],
        running_tasks=lambda _: {},
    )
    found = Demand([first, later]).after([first], {}, scene)
    assert found.counting() == {1: Counted(counts_since, 1, "pa")}
    put_off = KeptBack(job_id=1, counts_since=500, kept_since=None)
    assert found.news == ([put_off] if counts_since == 500 else [])


NODES = {name: Node(name=name, tres={"cpu": 4}) for name in ("a1", "a2", "b1", "c1", "d1")}


def rooms(**partitions: tuple[str, ...]) -> Rooms:
    found = {
        name: Partition(name=name, nodes=nodes, allow_accounts=(), priority_job_factor=1)
        for name, nodes in partitions.items()
    }
    closed = {"d1": Node(name="d1", tres={"cpu": 4}, closed=True)}
    return Rooms(found, {**NODES, **closed})


def test_partitions_with_nodes_in_common_are_one_room() -> None:
    found = rooms(pa=("a1", "a2"), pb=("b1",), pc=("c1",), both=("a2", "b1"), pd=("d1",), none=())
    assert found.of("pa") == found.of("pb") == found.of("both") == found.of("pa,pb")
    assert len({found.of(name) for name in ("pa", "pc", "pd", "none", "unheard of")}) == 5
    assert found.of("pa,pc") == found.of("pa") | found.of("pc")


def test_a_partition_is_as_wide_as_its_nodes_that_are_not_closed() -> None:
    found = rooms(pa=("a1", "a2", "d1", "gone"), pb=("b1",), pd=("d1",))
    assert [found.width(name) for name in ("pa", "pb", "pa,pb", "pd")] == [8, 4, 8, 0]
    assert found.width("pb,just added") == inf
