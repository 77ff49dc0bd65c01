"""The daemon takes over other pools: nothing is lost, and no points stay where no pool is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psutil
import pytest
from structlog.testing import capture_logs

from shapleyprio.daemon.pushing.lease import Lease, LeaseHeldError
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.daemon.steering import composition
from shapleyprio.daemon.steering.daemon import Daemon, DaemonParts
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.lab.testbed.processes import wait_until
from shapleyprio.slurm.port import SlurmUnavailableError
from shapleyprio.store import Store
from tests.daemon.consortium import FIRST, LAST
from tests.daemon.pools.test_split_clusters import (
    CPU_NODES,
    CPU_OF,
    CPU_POOL,
    GPU_NODES,
    Cluster,
    split,
)
from tests.daemon.steering.test_daemon import Site
from tests.leases import take_away
from tests.store.servers import url_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shapleyprio.config import Config
    from shapleyprio.fairness.runs import JobRecord
    from shapleyprio.slurm.port import Malformed
    from shapleyprio.slurm.remembering import Source

PATIENCE_SECONDS = 120.0
"""For so long a cycle waits for an estimate."""

SIZES = {"cpu": 8, "old": 16, "fast": 16}
"""Processors of each partition."""

PARTITIONS = {**CPU_OF, "old": ["g1"], "fast": ["g2"]}
GPUS = {"name": "gpu", "clusters": ["c1"], "partitions": ["old", "fast"], "weight": "gres/gpu"}
OLD_GPUS = {**GPUS, "partitions": ["old"]}
FAST_GPUS = {**GPUS, "name": "fast", "partitions": ["fast"]}
BOTH = {FIRST, LAST}


class Changing:
    """A daemon whose schedule stands still, on a cluster where jobs wait in each partition."""

    def __init__(
        self, url: str, store: Store, monkeypatch: pytest.MonkeyPatch, **sections: Any
    ) -> None:
        self.store = store
        self.sections = sections
        self.slurm = Cluster("c1", {**CPU_NODES, **GPU_NODES}, PARTITIONS)
        monkeypatch.setattr(composition, "connect", self.slurm.connect)
        self.file = split(CPU_POOL, GPUS, **sections)
        self.lease = Lease(store.cluster("c1"), seconds=300)
        self.lease.take()
        metrics = Metrics("c1/cpu")
        self.registry = metrics.registry
        cycles = composition.CycleMaker(
            self.file,
            self.lease.store,
            None,
            metrics,
            url,
            PATIENCE_SECONDS,
            forecasts=False,
        )
        self.stop_estimators = cycles.stop
        self.daemon = Daemon(
            self.file,
            DaemonParts(
                read_config=lambda: self.file,
                make_cycles=lambda config: cycles.make(config, quiet=False),
                metrics=metrics,
                site=Site(),
                lease=self.lease,
            ),
        )
        scheduler = self.daemon._timetable.scheduler
        scheduler.start(paused=True)
        scheduler.add_job(self.daemon._cycle_or_log, "interval", seconds=30, id="cycle")
        self.slurm.submit("physics", processors=8, processing_time=100, partition="fast")
        self.waiting: dict[str, list[int]] = {}
        for partition in PARTITIONS:
            self.slurm.submit("biology", processors=1, processing_time=10**6, partition=partition)
            self.waiting[partition] = [
                self.slurm.submit(
                    account, processors=SIZES[partition], processing_time=60, partition=partition
                )
                for account in ("physics", "biology")
            ]

    def estimators(self) -> dict[str, int]:
        """Ledger -> process that estimates for it."""
        found = {}
        for process in psutil.Process().children():
            try:
                words = process.cmdline()
            except psutil.NoSuchProcess:  # it has just ended
                continue
            if "shapleyprio.daemon.estimation" in words:
                found[words[words.index("shapleyprio.daemon.estimation") + 1]] = process.pid
        return found

    def is_estimated(self, ledger: str) -> bool:
        """Whether metrics show an estimate."""
        name = "shapleyprio_estimate_timestamp_seconds"
        return self.registry.get_sample_value(name, {"cluster": ledger}) is not None

    def cycle(self) -> None:
        self.slurm.advance(self.slurm.now + 30)
        self.daemon._cycle_or_log()

    def change(self, *pools: Mapping[str, Any]) -> None:
        """Other pools in the file, SIGHUP, and a cycle."""
        self.file = split(*pools, **self.sections) if pools else split_no_more()
        self.daemon._reload()
        self.cycle()

    def points(self, partition: str) -> set[int | None]:
        found = {job.job_id: job.site_factor for job in self.slurm.pending().jobs}
        return {found[job] for job in self.waiting[partition]}

    def cycles(self, ledger: str) -> list[str]:
        """Outcomes, the oldest first."""
        with self.store.cluster(ledger).reading() as view:
            return [row.outcome for row in view.history.cycles(limit=100)][::-1]

    def parts(self, ledger: str) -> int:
        """Processor-seconds of what physics has executed and ended."""
        with self.store.cluster(ledger).reading() as view:
            return sum(
                (run.end - run.begin) * sum(run.processors.values())
                for run, _ in view.runs.runs_alive_after(0)
                if run.account == "physics" and run.end is not None
            )


def split_no_more() -> Config:
    return split().model_copy(update={"pools": ()})


@pytest.fixture
def changing(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Changing]:
    changing = Changing(url_of(store), store, monkeypatch)
    yield changing
    changing.daemon._timetable.scheduler.shutdown()


def test_pools_come_move_and_go_while_the_daemon_runs(changing: Changing) -> None:
    changing.cycle()
    assert [changing.points(name) for name in PARTITIONS] == [BOTH, BOTH, BOTH]

    changing.change(CPU_POOL, OLD_GPUS, FAST_GPUS)  # one more pool, to which a partition moves
    assert changing.store.clusters() == ["c1/cpu", "c1/fast", "c1/gpu"]
    assert [changing.points(name) for name in PARTITIONS] == [BOTH, BOTH, BOTH]
    assert changing.cycles("c1/gpu") == ["ok", "ok"]

    changing.change(CPU_POOL, OLD_GPUS)  # it goes, and its partition is in no pool
    assert [changing.points(name) for name in PARTITIONS] == [BOTH, BOTH, {0}]
    assert changing.cycles("c1/fast") == ["ok"]  # its history stays
    changing.cycle()
    changing.cycle()

    changing.change(CPU_POOL, OLD_GPUS, FAST_GPUS)  # it comes back, and catches up
    assert [changing.points(name) for name in PARTITIONS] == [BOTH, BOTH, BOTH]
    assert changing.cycles("c1/fast") == ["ok", "ok"]
    assert changing.parts("c1/fast") == 100  # a GPU, until after the pool had gone

    changing.change()  # no pools any more
    assert changing.cycles("c1") == ["ok"]
    assert [changing.points(name) for name in PARTITIONS] == [BOTH, BOTH, BOTH]
    assert changing.parts("c1") == 8 * 100
    roll_back(changing.lease.store, changing.slurm)
    assert [changing.points(name) for name in PARTITIONS] == [{0}, {0}, {0}]


def test_what_others_have_set_at_a_job_of_no_pool_stays(changing: Changing) -> None:
    changing.cycle()
    job = changing.waiting["fast"][0]
    changing.slurm.write("site_factor", {str(job): 7})
    changing.change(CPU_POOL, OLD_GPUS)
    found = {one.job_id: one.site_factor for one in changing.slurm.pending().jobs}
    assert [found[one] for one in changing.waiting["fast"]] == [7, 0]


def test_slurm_is_asked_once_in_a_cycle_however_many_pools_there_are(changing: Changing) -> None:
    changing.change(CPU_POOL, OLD_GPUS, FAST_GPUS)
    for _ in range(2):
        changing.slurm.asked.clear()
        changing.cycle()
        assert changing.slurm.asked == {"records": 1, "pending": 1, "nodes": 1}
    changing.slurm.asked.clear()
    changing.daemon._prune()
    assert changing.slurm.asked == {"pending": 1}


def test_a_pool_whose_accounting_fails_stops_no_other_and_catches_up(changing: Changing) -> None:
    changing.cycle()
    records = changing.slurm.records

    def fail_once(since: int, until: int) -> Iterator[JobRecord | Malformed]:
        changing.slurm.records = records  # type: ignore[method-assign]
        yield from list(records(since, until))[:1]
        raise SlurmUnavailableError("slurmdbd has gone away")

    for behind, other in (("c1/cpu", "c1/gpu"), ("c1/gpu", "c1/cpu")):
        changing.slurm.records = fail_once  # type: ignore[method-assign]
        changing.slurm.asked.clear()
        if behind == "c1/gpu":
            changing.daemon._cycles.each = changing.daemon._cycles.each[::-1]
        changing.cycle()
        assert changing.cycles(behind)[-1] == "slurm_unavailable"
        assert changing.cycles(other)[-1] == "ok"
        assert changing.slurm.asked["records"] == 2  # the other one asked for itself

        changing.slurm.asked.clear()
        changing.cycle()
        assert changing.cycles(behind)[-1] == changing.cycles(other)[-1] == "ok"
        assert changing.slurm.asked["records"] == 1  # what is behind asks first, and for more
    changing.cycle()
    changing.cycle()
    assert changing.parts("c1/gpu") == 100


def test_what_keeps_one_pool_from_being_pruned_keeps_no_other(changing: Changing) -> None:
    changing.cycle()
    first, second = changing.daemon._cycles.each

    def fail(source: Source | None = None, *, until: float = 0) -> int:
        raise SlurmUnavailableError(f"nobody answers {source}")

    first.prune = fail  # type: ignore[method-assign]
    with capture_logs() as logs:
        changing.daemon._prune()
    said = [(line["event"], line["ledger"]) for line in logs]
    assert said == [("pruning failed", first.ledger), ("pruned", second.ledger)]


def test_a_pool_that_goes_takes_its_estimator_along(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing = Changing(url_of(store), store, monkeypatch, fairness={"rule": "shapley"})
    try:
        changing.cycle()
        before = changing.estimators()
        assert before.keys() == {"c1/cpu", "c1/gpu"}
        assert changing.is_estimated("c1/gpu")

        changing.change(CPU_POOL)
        assert changing.estimators() == {"c1/cpu": before["c1/cpu"]}
        assert not changing.is_estimated("c1/gpu")

        changing.change(CPU_POOL, GPUS)
        changing.cycle()
        assert changing.estimators().keys() == {"c1/cpu", "c1/gpu"}
        assert changing.estimators()["c1/cpu"] == before["c1/cpu"]
        assert changing.is_estimated("c1/gpu")
    finally:
        changing.stop_estimators()
        changing.daemon._timetable.scheduler.shutdown()


def test_estimators_end_while_another_daemon_steers_and_begin_anew_with_the_lease(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing = Changing(url_of(store), store, monkeypatch, fairness={"rule": "shapley"})
    daemon = changing.daemon
    try:
        changing.cycle()
        before = changing.estimators()
        assert before.keys() == {"c1/cpu", "c1/gpu"}

        daemon._rest()  # still leads
        assert changing.estimators() == before

        with store.cluster("c1").transaction() as transaction:
            take_away(transaction, ttl=1)
        with pytest.raises(LeaseHeldError) as lost, changing.lease.store.transaction():
            pytest.fail("it may not write")
        daemon._stand_by(lost.value)
        daemon._timetable.scheduler.resume()
        wait_until(lambda: not changing.estimators(), real_seconds=60, what="estimators to end")
        assert not changing.is_estimated("c1/cpu")

        daemon._timetable.scheduler.pause()
        wait_until(changing.lease.try_to_take, real_seconds=60, what="the lease again")
        changing.cycle()
        after = changing.estimators()
        assert after.keys() == before.keys()
        assert not set(after.values()) & set(before.values())
        assert changing.is_estimated("c1/cpu")
    finally:
        changing.stop_estimators()
        daemon._timetable.scheduler.shutdown()
