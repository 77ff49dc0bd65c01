"""The daemon keeps going: what fails in a cycle, and what a new configuration changes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from shapleyprio.common.errors import ConfigError
from shapleyprio.config import Config
from shapleyprio.daemon.answering.changes import Change, read_changes
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.pushing.lease import Lease, LeaseHeldError
from shapleyprio.daemon.ranking.ranking import Ranked
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.daemon import Daemon, DaemonParts
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.slurm.port import AdapterInUse, PendingQueue, SlurmUnavailableError
from shapleyprio.store import CycleRow, DriftRow, ExceptionRow, Journal, PauseRow, Store
from tests.daemon.consortium import BIOLOGY, FIRST, LAST, NAME, NOW, PHYSICS, Cluster, config
from tests.leases import nobody_steers, take_away
from tests.store.servers import held_by_another, url_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

A_MOMENT = timedelta(minutes=2)


@dataclass
class Site:
    """Serves nothing."""

    config: Config | None = None

    def open(self, config: Config) -> None:
        self.config = config

    def renew(self, config: Config) -> None:
        self.config = config

    def close(self) -> None:
        self.config = None


@dataclass
class Stage:
    """A daemon whose schedule stands still.

    Attributes:
        file: what reading the configuration gives, or raises.
    """

    slurm: Cluster
    store: Store
    file: Config | Exception = field(default_factory=config)

    def __post_init__(self) -> None:
        self.metrics = Metrics(NAME)
        self.site = Site()
        assert isinstance(self.file, Config)
        self.lease = Lease(self.store.cluster(NAME), seconds=300)
        self.lease.take()
        self.daemon = Daemon(
            self.file,
            DaemonParts(
                read_config=self.read,
                make_cycles=lambda new: [Cycle(new, self.slurm, self.lease.store)],
                metrics=self.metrics,
                site=self.site,
                lease=self.lease,
            ),
        )
        scheduler = self.daemon._timetable.scheduler
        scheduler.start(paused=True)
        scheduler.add_job(self.daemon._cycle_or_log, "interval", seconds=30, id="cycle")

    def read(self) -> Config:
        if isinstance(self.file, Exception):
            raise self.file
        return self.file

    def cycles(self, outcome: str) -> float:
        text = generate_latest(self.metrics.registry).decode()
        name = f'shapleyprio_cycles_total{{cluster="{NAME}",outcome="{outcome}"}} '
        return next((float(line[len(name) :]) for line in text.splitlines() if name in line), 0)

    def interval(self) -> timedelta:
        job = self.daemon._timetable.scheduler.get_job("cycle")
        interval: timedelta = job.trigger.interval
        return interval

    def next_cycle(self) -> datetime:
        due: datetime = self.daemon._timetable.scheduler.get_job("cycle").next_run_time
        return due


@pytest.fixture
def stage(slurm: Cluster, store: Store) -> Iterator[Stage]:
    slurm.fill("guest")
    slurm.submit("physics", processing_time=9)
    stage = Stage(slurm, store)
    yield stage
    if stage.daemon._timetable.scheduler.running:
        stage.daemon._timetable.scheduler.shutdown()


def logged(stage: Stage, action: str) -> list[Mapping[str, object]]:
    with capture_logs() as lines:
        getattr(stage.daemon, action)()
    return [{key: line[key] for key in line if key != "seconds"} for line in lines]


# -- cycles


def test_a_good_cycle_is_logged_and_counted(stage: Stage) -> None:
    slurm, line = logged(stage, "_cycle_or_log")
    assert (slurm["event"], slurm["version"]) == ("Slurm", "26.05.0")
    assert (line["event"], line["number"], line["written"]) == ("cycle", 1, 1)
    assert stage.cycles("ok") == 1


def test_an_adapter_that_stands_in_for_another_is_logged_once_and_recorded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = AdapterInUse(name="command_line", instead_of="pyslurm", why="it is for another Slurm")
    monkeypatch.setattr(stage.slurm, "adapter", lambda: used)
    _, line, _ = logged(stage, "_cycle_or_log")
    assert (line["log_level"], line["adapter"], line["why"]) == ("warning", used.name, used.why)
    assert [line["event"] for line in logged(stage, "_cycle_or_log")] == ["cycle"]
    assert read_status(stage.store.cluster(NAME)).as_json()["adapter"] == "command_line"


def test_the_next_cycle_comes_when_the_order_turns(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.file = config(service={"poll_interval": "1h"})
    stage.daemon._reload()
    stage.daemon._timetable.scheduler.reschedule_job("cycle", trigger="interval", hours=1)
    now = stage.next_cycle() - timedelta(hours=1)
    for reorder, seconds in ((None, 3600), (9000, 3600), (1440, 1441), (2400, 1441), (1, 360)):
        report = CycleReport(number=1, ranked=Ranked(seconds_until_reorder=reorder))
        monkeypatch.setattr(stage.daemon._cycles, "_run_one", lambda *_, found=report: found)
        stage.daemon._cycle_or_log()
        assert abs(stage.next_cycle() - now - timedelta(seconds=seconds)) < A_MOMENT


@pytest.fixture
def due_at_a_poll(stage: Stage) -> Callable[[], bool]:
    """Polls, and returns whether a cycle is due then."""

    def poll() -> bool:
        stage.daemon._timetable.scheduler.reschedule_job("cycle", trigger="interval", hours=1)
        stage.daemon._poll_new_jobs()
        return stage.next_cycle() - datetime.now(UTC) < A_MOMENT

    return poll


def test_a_cycle_comes_at_once_for_new_jobs_and_another_at_the_next_poll(
    stage: Stage, due_at_a_poll: Callable[[], bool]
) -> None:
    poll = due_at_a_poll
    assert [poll(), poll()] == [False, False]  # what was there before is the first cycle's
    stage.slurm.submit("biology", processing_time=9)
    assert [poll(), poll(), poll()] == [True, True, False]
    stage.slurm.submit("biology", processing_time=9)
    stage.slurm.take_down("slurmctld")
    assert not poll()
    stage.slurm.bring_up("slurmctld")
    assert poll()


def test_a_cycle_comes_at_once_for_a_job_that_came_while_the_first_one_ran(
    stage: Stage, due_at_a_poll: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_queue = stage.slurm.pending
    came: list[int] = []

    def read_queue_before_a_job_comes() -> PendingQueue:
        queue = read_queue()
        if not came:
            came.append(stage.slurm.submit("biology", processing_time=9))
        return queue

    monkeypatch.setattr(stage.slurm, "pending", read_queue_before_a_job_comes)
    stage.daemon._cycle_or_log()
    assert came
    assert stage.slurm.job(came[0]).site_factor == 0
    assert [due_at_a_poll() for _ in range(3)] == [True, True, False]


def test_a_cycle_comes_at_once_for_what_others_change_and_not_for_what_it_wrote(
    stage: Stage, due_at_a_poll: Callable[[], bool]
) -> None:
    poll = due_at_a_poll
    occupying = stage.slurm.submit("physics", processing_time=9_000, processors=4)
    stage.slurm.advance(stage.slurm.now)
    job = stage.slurm.submit("biology", processing_time=9)
    assert [poll(), poll()] == [False, False]
    changes: list[Callable[[], None]] = [
        lambda: stage.slurm.set_account(job, "physics"),
        lambda: stage.slurm.set_nice(job, 5),
        lambda: stage.slurm.hold(job),
        lambda: stage.slurm.release(job),
    ]
    for change in changes:
        change()
        assert [poll(), poll(), poll()] == [True, True, False]
    stage.slurm.write("site_factor", {str(job): 7})
    stage.slurm.cancel(occupying)
    assert not poll()


@pytest.mark.parametrize("during", ["_run_one", "_read_config"])
def test_who_stops_during_a_change_of_the_schedule_does_not_wait_forever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, during: str
) -> None:
    begun, stopping = Event(), Event()

    def slow(*_: object) -> CycleReport | Config:
        begun.set()
        assert stopping.wait(30)
        time.sleep(0.2)  # so that the scheduler waits for us when we want to change it
        report = CycleReport(number=1, ranked=Ranked(seconds_until_reorder=5))
        return report if during == "_run_one" else config(service={"poll_interval": "9s"})

    def stop() -> None:
        stopping.set()
        stage.daemon._timetable.end(lambda: True)

    owner = stage.daemon._cycles if during == "_run_one" else stage.daemon
    monkeypatch.setattr(owner, during, slow)
    work = stage.daemon._cycle_or_log if during == "_run_one" else stage.daemon._reload
    stage.daemon._timetable.scheduler.add_job(work)
    stage.daemon._timetable.scheduler.resume()
    assert begun.wait(30)
    ending = Thread(target=stop, daemon=True)
    ending.start()
    ending.join(60)
    assert not ending.is_alive()


def test_a_qos_has_its_priority_without_us(stage: Stage) -> None:
    stage.file = config(push={"channel": "qos"})
    stage.daemon._reload()
    stage.slurm.take_down("slurmctld")  # would be noticed
    assert stage.daemon._cycles.each[0].activity() is None


def test_the_new_job_poll_follows_the_configuration(stage: Stage) -> None:
    def interval() -> timedelta | None:
        job = stage.daemon._timetable.scheduler.get_job("new_job_poll")
        return None if job is None else job.trigger.interval

    for new, seconds in (("9s", 9), ("off", None), ("7s", 7)):
        stage.file = config(service={"new_jobs_interval": new})
        stage.daemon._reload()
        assert interval() == (None if seconds is None else timedelta(seconds=seconds))


def test_a_failing_cycle_is_logged_and_counted_and_the_next_goes_on(stage: Stage) -> None:
    stage.slurm.take_down("slurmctld")
    (line,) = logged(stage, "_cycle_or_log")
    assert (line["log_level"], line["outcome"]) == ("error", "slurm_unavailable")
    assert line["why"] == "slurmctld does not answer"
    stage.slurm.bring_up("slurmctld")
    stage.daemon._cycle_or_log()
    assert stage.cycles("slurm_unavailable") == 1
    assert stage.cycles("ok") == 1


def test_even_a_defect_does_not_end_the_daemon(stage: Stage) -> None:
    stage.slurm.layout_changes = {"no such attribute": 1}
    (line,) = logged(stage, "_cycle_or_log")
    assert (line["outcome"], type(line["exc_info"])) == ("defect", TypeError)
    stage.slurm.layout_changes = {}
    stage.daemon._cycle_or_log()
    assert stage.cycles("defect") == 1
    assert stage.cycles("ok") == 1


def test_a_cycle_that_failed_to_a_busy_store_is_logged(
    stage: Stage, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.lease.release()
    stage.store.close()
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    with Store.open(url_of(stage.store)) as impatient:
        other = Stage(slurm, impatient)
        with held_by_another(stage.store):
            *_, line = logged(other, "_cycle_or_log")
        other.daemon._timetable.scheduler.shutdown()
    assert line["outcome"] == "store_failed"
    assert str(line["why"]).startswith(f"store {impatient.name}: ")


def test_who_loses_the_lease_writes_nothing(stage: Stage) -> None:
    with stage.store.cluster(NAME).transaction() as transaction:
        take_away(transaction)
    (line,) = logged(stage, "_cycle_or_log")
    assert line["event"] == "cycle given up"
    assert "process 1 on elsewhere steers cluster c1" in str(line["why"])
    assert stage.slurm.writes == []
    assert logged(stage, "_cycle_or_log") == logged(stage, "_prune") == []  # it is another's to do


def test_a_daemon_leads_until_it_loses_the_lease(stage: Stage) -> None:
    def leads() -> bool:
        text = generate_latest(stage.metrics.registry).decode()
        (line,) = (line for line in text.splitlines() if line.startswith("shapleyprio_leader{"))
        return line.endswith(" 1.0")

    stage.daemon._cycle_or_log()
    assert leads()
    with stage.store.cluster(NAME).transaction() as transaction:
        take_away(transaction)
    with pytest.raises(LeaseHeldError) as lost, stage.lease.store.transaction():
        pytest.fail("it may not write")
    stage.daemon._stand_by(lost.value)
    assert not leads()
    assert stage.cycles("lease_lost") == 1


def test_who_has_lost_the_lease_shows_nothing_that_it_found_before(stage: Stage) -> None:
    stage.daemon._cycle_or_log()
    rows = [
        DriftRow(
            t=1, organization="physics", schedule=schedule, begin=0, reference="ref", utility=1,
            fair=1, parts=1,
        )
        for schedule in ("recorded", "alone")
    ]  # fmt: skip
    stage.metrics.publish_drifts(rows, {}, seconds=1.5)
    stage.metrics.publish_changes([Change(at=1, kind="upgrade", what="Slurm 1 to 2")])
    assert stage.metrics.found.keys() > {"unfairness_seconds", "change_timestamp_seconds"}
    with stage.store.cluster(NAME).transaction() as transaction:
        take_away(transaction)
    with pytest.raises(LeaseHeldError), stage.lease.store.transaction():
        pytest.fail("it may not write")
    stage.daemon._rest()
    assert stage.metrics.found == {}


def test_who_leads_anew_remembers_nothing_of_before(stage: Stage) -> None:
    stage.daemon._cycle_or_log()
    before = stage.daemon._cycles.each[0]
    stage.daemon._cycle_or_log()
    assert stage.daemon._cycles.each[0] is before
    stage.daemon._lead()
    assert stage.next_cycle() - datetime.now(UTC) < A_MOMENT
    stage.daemon._cycle_or_log()
    assert stage.daemon._cycles.each[0] is not before


def test_one_cycle_gives_the_lease_back_even_if_it_fails(stage: Stage) -> None:
    stage.lease.release()
    stage.slurm.take_down("slurmctld")
    with pytest.raises(SlurmUnavailableError):
        stage.daemon.run_once()
    assert nobody_steers(stage.store.cluster(NAME))


def test_one_cycle_prunes_as_a_daemon_does(stage: Stage) -> None:
    stage.lease.release()
    ago = CycleRow(number=1, started=NOW - 10**8, finished=NOW - 10**8, outcome="ok")
    with stage.store.cluster(NAME).transaction() as transaction:
        transaction.history.save_cycle(ago)
    stage.daemon.run_once()
    with stage.store.cluster(NAME).reading() as view:
        assert [row.number for row in view.history.cycles()] == [2]


def test_a_long_pruning_lets_due_cycles_go_first(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = stage.daemon._timetable.scheduler
    scheduler.add_job(stage.daemon._prune, "interval", seconds=3600, id="prune")
    due = scheduler.get_job("prune").next_run_time
    stage.daemon._prune()
    assert scheduler.get_job("prune").next_run_time == due
    monkeypatch.setattr("shapleyprio.daemon.steering.daemon.PRUNING_SECONDS", 0.0)
    stage.daemon._prune()
    assert scheduler.get_job("prune").next_run_time - datetime.now(UTC) < A_MOMENT


def test_pruning_fails_quietly(stage: Stage) -> None:
    stage.daemon._cycle_or_log()
    assert logged(stage, "_prune") == [{"event": "pruned", "runs": 0, "log_level": "info"}]
    stage.slurm.take_down("slurmctld")
    (line,) = logged(stage, "_prune")
    assert (line["event"], line["log_level"]) == ("pruning failed", "error")


# -- a new configuration


def test_a_good_configuration_is_taken_over_as_a_whole(stage: Stage) -> None:
    stage.daemon._cycle_or_log()
    assert stage.slurm.job(2).site_factor == FIRST
    stage.file = config(BIOLOGY, PHYSICS, service={"poll_interval": "7s"})
    (line,) = logged(stage, "_reload")
    assert line["event"] == "configuration reloaded"
    assert stage.interval() == timedelta(seconds=7)
    assert stage.next_cycle() <= datetime.now(UTC), "explain would mix old and new until then"
    stage.daemon._cycle_or_log()
    assert stage.slurm.job(2).site_factor == LAST


def test_what_was_so_before_a_reload_is_not_logged_as_news_after_it(stage: Stage) -> None:
    stage.daemon._cycle_or_log()
    row = ExceptionRow(
        job_id=2,
        since=NOW,
        label="2",
        organization="physics",
        user="ann",
        reason="a deadline",
        before_all=False,
    )
    with stage.store.cluster(NAME).transaction() as rows:
        rows.orders.begin_exception(row)
    stage.slurm.fix_priority(2, 9_000_000)
    by_hand = "somebody else has set priorities; they are left as they are"
    assert events(stage) == {"cycle", "a job goes first by an exception", by_hand}
    stage.daemon._reload()
    assert events(stage) == {"cycle"}
    with stage.store.cluster(NAME).transaction() as rows:
        rows.orders.begin_pause(PauseRow(since=NOW, user="ann", reason="a demo", keep=True))
    assert events(stage) == {"cycle", "steering is paused"}
    stage.daemon._reload()
    assert events(stage) == {"cycle"}


def events(stage: Stage) -> set[object]:
    return {line["event"] for line in logged(stage, "_cycle_or_log")}


def changes(stage: Stage) -> list[tuple[str, str]]:
    with stage.store.cluster(NAME).reading() as view:
        return [(one.kind, one.what) for one in read_changes(view, 0, 10**9)]


def test_what_a_start_or_a_reload_changed_and_what_was_refused_is_on_record(stage: Stage) -> None:
    stage.daemon._cycle_or_log()
    stage.daemon._cycle_or_log()
    stage.file = config(service={"poll_interval": "7s"})
    stage.daemon._reload()
    stage.daemon._cycle_or_log()
    stage.file = ConfigError(["push.channel: no"])
    stage.daemon._reload()
    first, *others = [one for one in changes(stage) if one[0] == "configuration"]
    assert first[1].startswith("first configuration on record, shapleyprio ")
    polls = "service.poll_interval: not set \u2192 7s"
    refused = "a configuration was refused, the one before stays: push.channel: no"
    assert others == [("configuration", polls), ("configuration", refused)]
    assert f'what="{polls}"' in generate_latest(stage.metrics.registry).decode()


def test_a_standby_puts_no_configuration_on_record_until_it_leads(stage: Stage) -> None:
    with stage.store.cluster(NAME).transaction() as rows:
        take_away(rows)
    files: tuple[Config | Exception, ...] = (config(), ConfigError(["push.channel: no"]))
    for file in files:
        stage.file = file
        stage.daemon._reload()
        stage.daemon._cycle_or_log()
    assert changes(stage) == []


def test_the_next_lease_is_as_long_as_the_new_configuration_has_it(stage: Stage) -> None:
    stage.file = config(service={"lease": "1m"})
    stage.daemon._reload()
    assert stage.lease.seconds == 60


@pytest.mark.parametrize(
    "refusal", [ConfigError(["push.channel: no"]), SlurmUnavailableError("slurmctld is away")]
)
def test_a_bad_configuration_changes_nothing(stage: Stage, refusal: Exception) -> None:
    stage.file = refusal
    (line,) = logged(stage, "_reload")
    assert line["event"] == "the new configuration is refused, the old one stays"
    assert line["why"] == str(refusal)
    assert stage.interval() == timedelta(seconds=30)
    stage.daemon._cycle_or_log()
    assert stage.slurm.job(2).site_factor == FIRST


def test_what_is_served_follows_the_configuration(stage: Stage) -> None:
    stage.file = config(metrics={"address": "127.0.0.1:1"})
    stage.daemon._reload()
    assert stage.site.config is stage.file


def test_what_takes_effect_at_the_next_start_only_is_said(stage: Stage) -> None:
    stage.file = config(
        store={"url": "sqlite:////elsewhere.db"},
        metrics={"address": "127.0.0.1:1"},
        service={"log_level": "debug", "log_format": "json"},
    )
    *warnings, last = logged(stage, "_reload")
    assert [line["key"] for line in warnings] == [
        *("store.url", "metrics.address", "service.log_level", "service.log_format")
    ]
    assert last["event"] == "configuration reloaded"


def test_a_cycle_that_fails_for_its_store_goes_on_by_the_journal(
    stage: Stage, tmp_path: Path
) -> None:
    with Journal.open(tmp_path / "journal", create=True) as journal:
        stage.daemon._cycles.each = [
            Cycle(stage.daemon._config, stage.slurm, stage.lease.store, journal=journal)
        ]
        stage.daemon._cycle_or_log()
        with held_by_another(stage.store):
            job = stage.slurm.submit("physics", processing_time=9)
            lines = logged(stage, "_cycle_or_log")
        assert journal is not None
        assert [push.key for push in journal.pushes(NAME)] == [str(job)]
    assert stage.slurm.job(job).site_factor == FIRST
    found = [line.get("outcome", line.get("jobs")) for line in lines]
    assert [one for one in found if one is not None] == [
        "store_failed",  # cannot be recorded
        1,
        "store_failed",
    ]
    name, state = "shapleyprio_pushes_total", "without_store"
    labels = {"cluster": NAME, "state": state}
    assert stage.metrics.registry.get_sample_value(name, labels) == 1
