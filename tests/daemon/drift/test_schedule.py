"""The daemon replays on a schedule of its own, and never in the way of a cycle."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest

from shapleyprio.daemon.drift.live import LiveDrift
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.daemon import Daemon, DaemonParts
from shapleyprio.daemon.steering.metrics import Metrics
from tests.daemon.consortium import NAME, Cluster, config
from tests.daemon.steering.test_daemon import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapleyprio.config import Config
    from shapleyprio.store import Store


class Replays:
    """Takes until it is stopped; shows when it begins."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.stopped = threading.Event()
        self.withdrawn = threading.Event()
        self.shows_results = False

    def replay(self, config: Config) -> None:
        self.begun.set()
        self.stopped.wait()
        self.shows_results = True

    def withdraw(self, config: Config) -> None:
        self.shows_results = False
        self.withdrawn.set()

    def stop(self) -> None:
        self.stopped.set()


class Stage:
    """A daemon on a simulated cluster.

    Attributes:
        file: what reading the configuration gives.
    """

    def __init__(self, store: Store, file: Config) -> None:
        self.file = file
        self.replays = Replays()
        slurm = Cluster()
        lease = Lease(store.cluster(NAME), seconds=300)
        lease.take()
        self.daemon = Daemon(
            file,
            DaemonParts(
                read_config=lambda: self.file,
                make_cycles=lambda new: [Cycle(new, slurm, lease.store)],
                metrics=Metrics(NAME),
                site=Site(),
                lease=lease,
                drift=cast("LiveDrift", self.replays),
            ),
        )
        scheduler = self.daemon._timetable.scheduler
        scheduler.start(paused=True)
        scheduler.add_job(self.daemon._cycle_or_log, "interval", seconds=30, id="cycle")
        self.daemon._schedule_drift()

    def interval(self) -> timedelta | None:
        job = self.daemon._timetable.scheduler.get_job("drift")
        return None if job is None else cast("timedelta", job.trigger.interval)


@pytest.fixture
def stage(store: Store) -> Iterator[Stage]:
    stage = Stage(store, config())
    yield stage
    stage.replays.stop()
    stage.daemon._timetable.scheduler.shutdown()


def test_a_replay_does_not_delay_the_cycle(stage: Stage, store: Store) -> None:
    scheduler = stage.daemon._timetable.scheduler
    job = scheduler.get_job("drift")
    job.modify(next_run_time=job.next_run_time - timedelta(days=1))
    scheduler.resume()
    stage.replays.begun.wait()
    done = threading.Event()

    def cycle() -> None:
        stage.daemon._cycle_or_log()
        done.set()

    scheduler.add_job(cycle)
    assert done.wait(60)
    assert not stage.replays.stopped.is_set()
    with store.cluster(NAME).reading() as view:
        assert [row.outcome for row in view.history.cycles()] == ["ok"]


def test_replays_come_every_hour(stage: Stage) -> None:
    assert stage.interval() == timedelta(hours=1)


def test_a_new_configuration_moves_switches_off_and_on(stage: Stage) -> None:
    for interval, expected in (("10m", timedelta(minutes=10)), (0, None), ("1d", timedelta(1))):
        stage.file = config(drift={"interval": interval})
        stage.daemon._reload()
        assert stage.interval() == expected


def test_without_replays_no_result_is_shown_not_even_of_one_that_was_going_on(
    stage: Stage,
) -> None:
    scheduler = stage.daemon._timetable.scheduler
    scheduler.get_job("drift").modify(next_run_time=datetime.now(UTC))
    scheduler.resume()
    stage.replays.begun.wait()
    stage.file = config(drift={"interval": "off"})
    stage.daemon._reload()
    stage.replays.stop()
    assert stage.replays.withdrawn.wait(60)
    assert not stage.replays.shows_results


def test_a_new_configuration_with_the_same_interval_leaves_the_schedule(stage: Stage) -> None:
    before = stage.daemon._timetable.scheduler.get_job("drift").next_run_time
    stage.file = config(service={"poll_interval": "7s"})
    stage.daemon._reload()
    assert stage.daemon._timetable.scheduler.get_job("drift").next_run_time == before
