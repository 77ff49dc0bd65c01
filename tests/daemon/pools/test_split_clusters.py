"""Pools that split one cluster: what each has of it is as if it were a cluster of its own."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from shapleyprio.config.segments import segments_of, weights_of
from shapleyprio.daemon.checking.check_pool import check_pool
from shapleyprio.daemon.pushing import orders
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.lab.simulated import SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.findings import Severity
from shapleyprio.slurm.port import Malformed
from shapleyprio.store import Store
from tests.daemon.consortium import BIOLOGY, FIRST, LAST, NOW, PHYSICS, QUIET, config
from tests.store.examples import exception
from tests.store.servers import on_each_database

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shapleyprio.config import Config
    from shapleyprio.daemon.steering.report import CycleReport
    from shapleyprio.fairness.runs import JobRecord
    from shapleyprio.slurm.layout import Layout, Node
    from shapleyprio.slurm.port import PendingQueue

CPU_NODES = {"a1": 4, "b1": 4}
GPU_NODES = {"g1": 16, "g2": 16}
GPUS = 2
"""Of each GPU node; a job gets one for each 8 CPUs."""

CPU_OF = {"cpu": ["a1", "b1"]}
GPU_OF = {"gpu": ["g1", "g2"]}
MEMBERS = (
    {**PHYSICS, "partitions": [], "nodes": ["a1", "g1"]},
    {**BIOLOGY, "partitions": [], "nodes": ["b1", "g2"]},
)
CPU_POOL = {"name": "cpu", "clusters": ["c1"], "partitions": ["cpu"]}
GPU_POOL = {"name": "gpu", "clusters": ["c1"], "partitions": ["gpu"], "weight": "gres/gpu"}


class Cluster(SimulatedSlurm):
    """A cluster whose nodes g1 and g2 have GPUs.

    Attributes:
        asked: how often each question about the whole cluster was put.
    """

    def __init__(
        self, name: str, nodes: Mapping[str, int], partitions: Mapping[str, Sequence[str]]
    ) -> None:
        super().__init__(
            SimulatedSpec(
                cluster=name,
                nodes=nodes,
                partitions=partitions,
                accounts={"physics": None, "biology": None},
                settings=QUIET,
            ),
            now=NOW,
        )
        self.name = name
        self.asked: Counter[str] = Counter()

    def connect(self, configured: Config, cluster: str | None = None) -> Any:
        """The cluster as an adapter shows it to whom has that configuration."""
        return Counted(self, *weights_of(configured, cluster or self.name))

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        self.asked["records"] += 1
        return super().records(since, until)

    def pending(self) -> PendingQueue:
        self.asked["pending"] += 1
        return super().pending()

    def nodes(self) -> Mapping[str, Node]:
        self.asked["nodes"] += 1
        return {name: _with_gpus(node) for name, node in super().nodes().items()}

    def layout(self) -> Layout:
        self.asked["layout"] += 1
        found = super().layout()
        return replace(found, nodes={name: _with_gpus(node) for name, node in found.nodes.items()})


class Counted:
    """A simulated cluster whose records count CPUs, and in some partitions GPUs."""

    def __init__(self, cluster: Cluster, usual: str, of_partitions: Mapping[str, str]) -> None:
        self._cluster = cluster
        self._usual = usual
        self._of_partitions = of_partitions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        return map(self._counted, self._cluster.records(since, until))

    def records_of(self, job_ids: Sequence[int]) -> Iterator[JobRecord | Malformed]:
        return map(self._counted, self._cluster.records_of(job_ids))

    def _counted(self, record: JobRecord | Malformed) -> JobRecord | Malformed:
        assert not isinstance(record, Malformed)
        if self._of_partitions.get(record.partition, self._usual) == "cpus":
            return record
        return replace(record, processors=record.processors // 8)


def _with_gpus(node: Node) -> Node:
    return replace(node, tres={**node.tres, **({"gres/gpu": GPUS} if node.name > "g" else {})})


class Steered:
    """A cluster with a cycle for each of its ledgers, as the daemon has them."""

    def __init__(self, slurm: Cluster, store: Store, configured: Config) -> None:
        self.slurm = slurm
        self.store = store
        self.lease = Lease(store.cluster(slurm.cluster()), seconds=300)
        self.lease.take()
        self.configure(configured)

    def configure(self, configured: Config) -> None:
        """Makes the cycles, which remember nothing."""
        self.cycles = {}
        slurm = self.slurm.connect(configured)
        for segment in segments_of(configured, self.slurm.cluster()):
            own = segment.configured(configured)
            self.cycles[segment.ledger] = Cycle(
                own,
                slurm,
                self.lease.store.ledger(segment.ledger),
                clock=lambda: self.slurm.now,
            )

    def run(self) -> dict[str, CycleReport]:
        source = next(iter(self.cycles.values())).share()
        return {ledger: cycle.run(source=source) for ledger, cycle in self.cycles.items()}

    def wait(self, seconds: int) -> None:
        self.slurm.advance(self.slurm.now + seconds)

    def kept(self, ledger: str) -> Any:
        """All that counts of a ledger: entries, watermark, tenures, standings, runs without ids."""
        with self.store.cluster(ledger).reading() as view:
            watermark = view.ledger.watermark()
            assert watermark is not None
            runs = sorted(
                (run.begin, run.end or 0, run.account, tuple(run.processors.items()))
                for run, _ in view.runs.runs_alive_after(0)
            )
            standings = [replace(row, reason="") for row in view.history.latest_standings()]
            return view.ledger.entries(), watermark, list(view.ledger.tenures()), standings, runs

    def points(self, job_id: int) -> int | None:
        return next(job.site_factor for job in self.slurm.pending().jobs if job.job_id == job_id)


def split(*pools: Mapping[str, Any], **sections: Any) -> Config:
    return config(*MEMBERS, pool=list(pools or (CPU_POOL, GPU_POOL)), **sections)


def both(store: Store, configured: Config | None = None) -> Steered:
    slurm = Cluster("c1", {**CPU_NODES, **GPU_NODES}, {**CPU_OF, **GPU_OF})
    return Steered(slurm, store, configured or split())


def put_first(cluster: Steered, job: int, configured: Config) -> None:
    row = exception(0, cluster.slurm.now, label=str(job), organization="")
    segments = segments_of(configured, "c1")
    orders.put_first(cluster.store.cluster("c1"), cluster.slurm, segments, row)


@on_each_database
def test_two_pools_of_a_cluster_are_as_two_clusters(store: Store) -> None:
    cluster = both(store)
    alone = {
        "c1/cpu": Steered(Cluster("only-cpus", CPU_NODES, CPU_OF), store, config(*MEMBERS)),
        "c1/gpu": Steered(
            Cluster("only-gpus", GPU_NODES, GPU_OF),
            store,
            config(*MEMBERS, fairness={"weight": "gres/gpu"}),
        ),
    }
    parts = {"c1/cpu": "cpu", "c1/gpu": "gpu"}

    def submit(ledger: str, account: str, processors: int, seconds: int) -> None:
        for slurm, partition in (
            (cluster.slurm, parts[ledger]),
            (alone[ledger].slurm, parts[ledger]),
        ):
            slurm.submit(
                account, processors=processors, processing_time=seconds, partition=partition
            )

    def pass_time(seconds: int) -> None:
        for one in (cluster, *alone.values()):
            one.wait(seconds)
            one.run()

    pass_time(1)
    submit("c1/cpu", "biology", 8, 500)
    submit("c1/gpu", "physics", 32, 300)
    pass_time(100)
    for account in ("physics", "biology"):
        submit("c1/cpu", account, 4, 70)
        submit("c1/gpu", account, 16, 90)
    for _ in range(3):
        pass_time(240)
        for ledger, one in alone.items():
            name = one.slurm.cluster()
            assert cluster.kept(ledger) == one.kept(name)
    assert cluster.kept("c1/cpu")[0] != cluster.kept("c1/gpu")[0]


def test_a_jobs_priority_is_its_pools(store: Store) -> None:
    cluster = both(store)
    cluster.run()
    fill = {"cpu": ("biology", 8), "gpu": ("physics", 32)}
    for partition, (account, processors) in fill.items():
        cluster.slurm.submit(
            account, processors=processors, processing_time=10**5, partition=partition
        )
    cluster.wait(10)
    jobs = {
        (partition, account): cluster.slurm.submit(
            account, processors=1, processing_time=60, partition=partition
        )
        for partition in fill
        for account in ("physics", "biology")
    }
    cluster.wait(50)
    cluster.run()
    assert {where: cluster.points(job) for where, job in jobs.items()} == {
        ("cpu", "physics"): FIRST,  # biology fills physics' CPUs
        ("cpu", "biology"): LAST,
        ("gpu", "physics"): LAST,
        ("gpu", "biology"): FIRST,  # and physics biology's GPUs
    }


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
@pytest.mark.parametrize(("partition", "processors"), [("cpu", 8), ("gpu", 32)])
def test_a_job_that_goes_first_in_its_pool_is_not_put_back_by_the_other(
    store: Store, channel: str, partition: str, processors: int
) -> None:
    configured = split(push={"channel": channel})
    cluster = both(store, configured)

    def submit(account: str) -> int:
        return cluster.slurm.submit(
            account, processors=processors, processing_time=10**6, partition=partition
        )

    submit("biology")
    cluster.wait(0)
    jobs = [submit("physics") for _ in range(2)]
    cluster.run()
    put_first(cluster, jobs[1], configured)
    for _ in range(3):
        cluster.run()
        waiting = {job.job_id: job for job in cluster.slurm.pending().jobs}
        assert waiting[jobs[1]].priority > waiting[jobs[0]].priority
    orders.undo_first(store.cluster("c1"), str(jobs[1]), cluster.slurm.now, "bob")
    cluster.run()
    assert cluster.points(jobs[1]) == cluster.points(jobs[0])


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
@pytest.mark.parametrize("change", ["of partition", "to pools", "from pools"])
def test_a_job_goes_first_wherever_it_waits_after_a_change(
    store: Store, channel: str, change: str
) -> None:
    push = {"channel": channel}
    whole, pools = config(*MEMBERS, push=push), split(push=push)
    before, after = (whole, pools) if change == "to pools" else (pools, pools)
    if change == "from pools":
        after = whole
    cluster = both(store, before)
    for partition, processors in (("cpu", 8), ("gpu", 32)):
        cluster.slurm.submit(
            "biology", processors=processors, processing_time=10**6, partition=partition
        )
    cluster.wait(0)
    jobs = [cluster.slurm.submit("physics", processing_time=60, partition="gpu") for _ in range(2)]
    cluster.run()
    put_first(cluster, jobs[1], before)
    cluster.run()
    if change == "of partition":
        for job in jobs:  # as `scontrol update partition` does
            cluster.slurm._engine.waiting.jobs[job].partition = "cpu"
    else:
        cluster.configure(after)
    with pytest.raises(orders.OrderError, match=f"job {jobs[1]} goes first since"):
        put_first(cluster, jobs[1], after)
    for _ in range(3):
        cluster.run()
        waiting = {job.job_id: job for job in cluster.slurm.pending().jobs}
        assert waiting[jobs[1]].priority > waiting[jobs[0]].priority
    ledger = {"of partition": "c1/cpu", "to pools": "c1/gpu", "from pools": "c1"}[change]
    with store.cluster(ledger).reading() as view:
        assert [row.job_id for row in view.orders.exceptions()] == [jobs[1]]
    orders.undo_first(store.cluster("c1"), str(jobs[1]), cluster.slurm.now, "bob")
    cluster.run()
    assert cluster.points(jobs[1]) == cluster.points(jobs[0])
    with store.cluster(ledger).reading() as view:
        assert [row.ended_by for row in view.orders.exceptions(0)] == ["undone by bob"]


def test_an_array_that_waits_in_two_pools_goes_first_where_it_was_ordered(store: Store) -> None:
    cluster = both(store)
    for partition, processors in (("cpu", 8), ("gpu", 32)):
        cluster.slurm.submit(
            "biology", processors=processors, processing_time=10**6, partition=partition
        )
    cluster.wait(0)
    array = cluster.slurm.submit("physics", processing_time=60, partition="gpu", array=3)
    cluster.run()
    put_first(cluster, array, split())
    (task,), _ = cluster.slurm._engine.named(f"{array}_0")
    task.partition = "cpu"
    for _ in range(2):
        cluster.run()
        with store.cluster("c1/gpu").reading() as view:
            assert [row.job_id for row in view.orders.exceptions()] == [array]


def test_a_job_of_several_partitions_waits_in_the_pool_of_the_first(store: Store) -> None:
    cpu, gpu = segments_of(split(), "c1")
    assert (cpu.has("cpu,gpu"), gpu.has("cpu,gpu")) == (True, False)
    assert (cpu.has("gpu,cpu"), gpu.has("gpu,cpu")) == (False, True)
    cluster = both(store)
    cluster.run()
    for account, processors, partition in (("biology", 8, "cpu"), ("physics", 32, "gpu")):
        cluster.slurm.submit(
            account, processors=processors, processing_time=10**5, partition=partition
        )
    cluster.wait(10)
    job = cluster.slurm.submit("physics", processors=1, processing_time=60, partition="cpu")
    rival = cluster.slurm.submit("biology", processors=1, processing_time=60, partition="gpu")
    cluster.wait(50)
    cluster.run()
    assert (cluster.points(job), cluster.points(rival)) == (FIRST, FIRST)
    for one in (job, rival):  # as `scontrol update partition` does
        moved = cluster.slurm._engine.waiting.jobs[one]
        moved.partition = "gpu" if moved.partition == "cpu" else "cpu"
    cluster.run()
    assert (cluster.points(job), cluster.points(rival)) == (LAST, LAST)
    counts = roll_back(cluster.lease.store, cluster.slurm)
    assert counts.applied == 2
    assert (cluster.points(job), cluster.points(rival)) == (0, 0)


def test_the_rest_goes_on_with_the_clusters_own_ledger(store: Store) -> None:
    rest = {"name": "rest", "clusters": ["c1"]}
    cluster = both(store, split(rest, fairness={}))
    cluster.slurm.submit("biology", processors=8, processing_time=100, partition="cpu")
    cluster.wait(50)
    cluster.run()
    before = cluster.kept("c1")[0]
    assert before
    cluster.configure(split(rest, GPU_POOL))
    assert list(cluster.cycles) == ["c1", "c1/gpu"]
    cluster.run()
    assert cluster.kept("c1")[0] == before
    owned = {row.organization: row.processors for row in cluster.kept("c1")[3]}
    assert owned == {"physics": 4, "biology": 4}  # no CPUs of GPU nodes any more
    with store.cluster("c1/gpu").reading() as view:
        owned = {row.organization: row.processors for row in view.history.latest_standings()}
    assert owned == {"physics": GPUS, "biology": GPUS}


def test_the_past_of_a_cluster_counts_in_a_pool_of_its_own(store: Store) -> None:
    cluster = both(store, config(*MEMBERS))
    cluster.slurm.submit("biology", processors=8, processing_time=100, partition="cpu")
    cluster.wait(200)
    cluster.run()
    scores = [row.score for row in cluster.kept("c1")[3]]
    assert any(scores)
    cluster.configure(split({"name": "rest", "clusters": ["c1"]}, GPU_POOL))
    cluster.run()
    assert [row.score for row in cluster.kept("c1")[3]] == scores


def test_pools_of_two_clusters_add_what_each_has_of_both(store: Store) -> None:
    pools = [{**pool, "clusters": ["c1", "c2"]} for pool in (CPU_POOL, GPU_POOL)]
    sites = [
        Steered(
            Cluster(name, {**CPU_NODES, **GPU_NODES}, {**CPU_OF, **GPU_OF}), store, split(*pools)
        )
        for name in ("c1", "c2")
    ]
    for site in sites:
        site.run()
    sites[0].slurm.submit("physics", processors=32, processing_time=50, partition="gpu")
    for site in sites:
        site.wait(100)
        site.run()
    scores = [
        {row.organization: row.score for row in site.kept(f"{site.slurm.cluster()}/gpu")[3]}
        for site in sites
    ]
    assert scores[0] == scores[1] != {"physics": 0, "biology": 0}
    assert {row.score for row in sites[1].kept("c2/cpu")[3]} == {0}


@pytest.mark.parametrize(
    ("pools", "sections", "says"),
    [
        ([CPU_POOL, {**CPU_POOL, "name": "b"}], {}, "'cpu' of c1 is already in pool[1]"),
        (
            [{"name": "a", "clusters": ["c1"]}, {"name": "b", "clusters": ["c1"]}],
            {},
            "name the `partitions` of one",
        ),
        ([{"name": "a", "clusters": []}], {}, "names no cluster"),
        ([{"name": "a", "clusters": ["c1/gpu"]}], {}, "'c1/gpu' is not a ClusterName"),
        ([{"name": "a", "clusters": ["c1", "c1"]}], {}, "'c1' is listed twice; list it once"),
        ([{**CPU_POOL, "partitions": ["cpu", "cpu"]}], {}, "'cpu' is listed twice; list it once"),
        ([GPU_POOL], {"push": {"channel": "qos"}}, "gives one priority to all jobs of a QOS"),
        ([GPU_POOL], {"push": {"table": "/points"}}, "leave push.table out"),
        ([{**GPU_POOL, "name": "g" * 64}], {}, "64 characters together"),
    ],
)
def test_what_cannot_be_split_is_refused(
    pools: list[Mapping[str, Any]], sections: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        config(PHYSICS, BIOLOGY, pool=pools, **sections)


@pytest.mark.parametrize(
    ("pools", "found"),
    [
        ([CPU_POOL, GPU_POOL], {}),
        ([GPU_POOL], {"partitions cpu": Severity.WARNING}),
        (
            [CPU_POOL, {**GPU_POOL, "partitions": ["gpus"]}],
            {"pool gpu": Severity.ERROR, "partitions gpu": Severity.WARNING},
        ),
        (
            [CPU_POOL, {**CPU_POOL, "name": "all", "partitions": ["all"]}, GPU_POOL],
            {"pools cpu and all": Severity.ERROR},
        ),
        (
            [CPU_POOL, GPU_POOL, {"name": "rest", "clusters": ["c1"]}],
            {"pool rest": Severity.WARNING},
        ),
    ],
)
def test_check_finds_what_pools_have_of_a_cluster(
    pools: list[Mapping[str, Any]], found: dict[str, Severity]
) -> None:
    partitions = {**CPU_OF, **GPU_OF}
    if len(pools) == 3 and found.keys() != {"pool rest"}:
        partitions["all"] = ["a1", "b1"]
    slurm = Cluster("c1", {**CPU_NODES, **GPU_NODES}, partitions)
    configured = split(*pools)
    findings = {
        one.subject: one.severity
        for one in check_pool(configured, slurm.layout(), segments_of(configured, "c1"))
    }
    assert findings == found
