"""The cycle as a whole: what it records, and how it goes on after whatever went wrong."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event
from structlog.testing import capture_logs

from shapleyprio.daemon.accounting.accepted_clock import accept_clock
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.cluster_clock import AccountingError, ClockError
from shapleyprio.daemon.accounting.intake import CATCH_UP_SECONDS
from shapleyprio.daemon.accounting.known_layout import LAYOUT_SECONDS
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.steering.report import UnenforcedAccountsError
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.layout import Node, Partition
from shapleyprio.slurm.port import Controller, Malformed, SlurmUnavailableError
from shapleyprio.store import CycleRow, PushState, Store, StoreBusyError, StoreFullError
from tests.daemon.consortium import (
    BIOLOGY,
    FIRST,
    LAST,
    NAME,
    NOW,
    PHYSICS,
    Cluster,
    Service,
    config,
)
from tests.store.servers import held_by_another, url_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from shapleyprio.fairness.ledger import Standing
    from shapleyprio.fairness.runs import Run, RunKey
    from shapleyprio.store import CycleRow, Watermark

DAY = 86_400
HORIZON = 1000
HOUR = 3600
SHORT = {"horizon": "1d", "since": "2027-01-01"}


def last_cycle(service: Service) -> CycleRow:
    with service.store.cluster(NAME).reading() as view:
        row = view.history.last_cycle()
    assert row is not None
    return row


def watermark(service: Service) -> Watermark:
    with service.store.cluster(NAME).reading() as view:
        found = view.ledger.watermark()
    assert found is not None
    return found


def values_at(service: Service, t: int) -> dict[str, Standing]:
    """What the stored ledger says of a time after its last event."""
    horizon = service.config.fairness.horizon
    with service.store.cluster(NAME).reading() as view:
        folded_to = watermark(service).folded_to
        ledger = Ledger(horizon, folded_to=folded_to, entries=view.ledger.entries())
        if horizon is not None:
            crossing = view.runs.allocations_with_event_between(folded_to, t - horizon)
            ledger.fold(t - horizon, crossing)
    return ledger.standings(t, ["physics", "biology"])


# -- what it does


def test_worth_follows_from_what_ran_where(service: Service) -> None:
    service.slurm.fill("biology")
    service.slurm.wait(10)
    report = service.run()
    whole = 10 * 11 // 2  # of one processor that worked for ten seconds
    found = service.standings()
    assert report.t == NOW + 10
    assert (found["physics"].contribution, found["physics"].utility) == (8 * whole, 0)
    assert (found["biology"].contribution, found["biology"].utility) == (4 * whole, 12 * whole)
    assert (found["biology"].parts, found["biology"].running) == (120, 1)
    assert (found["physics"].processors, found["biology"].processors) == (8, 4)


@pytest.mark.parametrize("waiting", [("physics", "biology"), ("physics", "guest"), ("biology",)])
def test_a_cycle_shows_when_the_order_of_those_who_wait_turns(
    service: Service, waiting: tuple[str, ...]
) -> None:
    service.slurm.fill("physics", seconds=100)
    service.slurm.submit("biology", processors=12, processing_time=10**6)
    service.slurm.wait(220)
    for account in waiting:
        service.slurm.submit(account, processing_time=9)
    report = service.run()
    if "guest" in waiting or len(waiting) == 1:
        assert report.seconds_until_reorder is None
        return
    assert report.seconds_until_reorder is not None
    reorder = report.t + report.seconds_until_reorder
    before, after = (values_at(service, reorder - past) for past in (1, 0))
    assert before["physics"].balance < before["biology"].balance
    assert after["physics"].balance >= after["biology"].balance
    assert service.points() == {"physics": LAST, "biology": FIRST}
    service.slurm.wait(report.seconds_until_reorder)
    service.run()
    assert service.points() == {"physics": FIRST, "biology": LAST}


def test_a_turn_after_the_next_poll_is_its_business(service: Service) -> None:
    service.slurm.fill("physics", seconds=100)
    service.slurm.submit("biology", processors=12, processing_time=10**6)
    service.slurm.wait(110)
    for account in ("physics", "biology"):
        service.slurm.submit(account, processing_time=9)
    assert service.run().seconds_until_reorder is None
    service.restart(config(service={"poll_interval": "5m"}))
    assert service.run().seconds_until_reorder == 127


def test_a_dry_run_writes_nothing_into_slurm(service: Service) -> None:
    service.slurm.fill("guest")
    job = service.slurm.submit("physics", processing_time=9)
    report = service.run(dry_run=True)
    assert [(push.target, push.new) for push in report.plan.pushes] == [(str(job), FIRST)]
    assert service.slurm.writes == []
    assert service.slurm.job(job).site_factor == 0
    assert service.pushes(job) == []
    assert last_cycle(service).outcome == "dry_run"
    assert watermark(service).accounted_to == NOW


def test_where_accounts_are_not_enforced_a_cycle_accounts_and_writes_nothing(
    service: Service,
) -> None:
    service.slurm.layout_changes["enforces_accounts"] = False
    service.slurm.fill("guest")
    job = service.slurm.submit("physics", processing_time=9)
    with pytest.raises(UnenforcedAccountsError, match=r"allow_unenforced_accounts = true"):
        service.run()
    assert service.slurm.writes == []
    assert service.slurm.job(job).site_factor == 0
    assert last_cycle(service).outcome == "accounts_not_enforced"
    assert watermark(service).accounted_to == NOW
    assert [push.target for push in service.run(dry_run=True).plan.pushes] == [str(job)]
    service.restart(config(slurm={"allow_unenforced_accounts": True}))
    assert service.run().pushed.applied == 1


def test_jobs_of_accounts_that_accounting_does_not_know_are_nobodys_and_counted(
    service: Service,
) -> None:
    slurm = service.slurm
    slurm.layout_changes["accounts"] = {"physics": None, "biology": None}
    slurm.fill("biology")
    for account in ("guest", "physics", "guest"):
        slurm.submit(account, processing_time=9)
    with capture_logs() as logs:
        report = service.run()
        service.run()
        assert service.run().jobs.of_unknown_accounts == 2
    assert report.jobs.of_unknown_accounts == last_cycle(service).of_unknown_accounts == 2
    assert [push.organization for push in report.plan.pushes] == ["physics"]
    named = [entry for entry in logs if "unknown to Slurm" in entry["event"]]
    assert [(entry["jobs"], entry["accounts"]) for entry in named] == [(2, "guest")]


def test_what_the_configuration_names_and_slurm_lacks_is_said_once(store: Store) -> None:
    misspelt = PHYSICS | {"accounts": ["phsyics"], "nodes": ["a[1-2]", "q9"]}
    service = Service(Cluster(), store, config(misspelt, BIOLOGY))
    with capture_logs() as logs:
        service.run()
        service.slurm.wait(3600)
        service.run()
    named = [entry for entry in logs if "Slurm has no" in entry["event"]]
    assert [
        (entry["event"], entry["configured_for"], entry["did_you_mean"]) for entry in named
    ] == [
        ("Slurm has no account phsyics", "physics", "physics"),
        ("Slurm has no node q9", "physics", None),
    ]


def test_a_new_account_is_known_one_cycle_after_its_first_job(service: Service) -> None:
    slurm = service.slurm
    slurm.layout_changes["accounts"] = {"biology": None}
    slurm.fill("biology")
    service.run()
    del slurm.layout_changes["accounts"]
    job = slurm.submit("physics", processing_time=9)
    assert [service.run().jobs.of_unknown_accounts for _ in range(2)] == [1, 0]
    assert slurm.job(job).site_factor == FIRST


def test_what_was_written_is_put_back_where_accounts_are_no_longer_enforced(
    service: Service,
) -> None:
    service.slurm.fill("guest")
    job = service.slurm.submit("physics", processing_time=9)
    service.run()
    service.slurm.layout_changes["enforces_accounts"] = False
    service.restart()
    with pytest.raises(UnenforcedAccountsError):
        service.run()
    assert service.roll_back().applied == 1
    assert service.slurm.job(job).site_factor == 0


def test_a_cycle_shows_on_which_slurm_it_ran(service: Service) -> None:
    service.slurm.layout_changes["version"] = "24.11.5"
    service.run()
    assert read_status(service.store.cluster(NAME)).as_json()["slurm_version"] == "24.11.5"


def test_a_good_cycle_is_on_record(service: Service) -> None:
    service.slurm.fill("guest")
    service.slurm.submit("physics", processing_time=9)
    service.slurm.wait(5)
    service.run()
    row = last_cycle(service)
    assert (row.number, row.outcome, row.t, row.message) == (1, "ok", NOW + 5, "")
    assert (row.seen, row.kept, row.written, row.quarantined, row.refused) == (1, 1, 1, 0, 0)
    assert set(row.seconds) == {"account", "observe", "rank", "push"}


def test_what_steers_since_when_is_on_record(store: Store) -> None:
    slurm = Cluster()
    service = Service(slurm, store)
    service.run(dry_run=True)
    for rule, channel in (("directcontr", "nice"), ("shapley", "nice"), ("shapley", "qos")):
        slurm.wait(60)
        service.restart(config(fairness={"rule": rule}, push={"channel": channel}))
        service.run()
        service.run()
    slurm.wait(60)
    service.roll_back()
    with store.cluster(NAME).reading() as view:
        found = [
            (row.since - NOW, row.rule, row.chosen, row.channel) for row in view.history.steering()
        ]
    assert found == [
        (60, "directcontr", "directcontr", "nice"),
        (120, "directcontr", "shapley", "nice"),  # there is no estimate yet
        (180, "directcontr", "shapley", "qos"),
        (240, "", "", ""),
    ]


def test_a_failed_cycle_is_on_record(service: Service) -> None:
    service.run()
    service.slurm.take_down("slurmdbd")
    with pytest.raises(SlurmUnavailableError):
        service.run()
    row = last_cycle(service)
    assert (row.number, row.outcome) == (2, "slurm_unavailable")
    assert row.message == "slurmdbd does not answer"
    assert service.standings()["physics"].cycle == 1
    service.slurm.bring_up("slurmdbd")
    service.run()
    assert last_cycle(service).outcome == "ok"


def test_one_privilege_less_is_a_refusal_on_record(service: Service) -> None:
    service.slurm.fill("guest")
    service.slurm.submit("physics", processing_time=9)
    service.slurm.missing_privileges = {"site_factor": "AdminLevel"}
    with pytest.raises(Exception, match="AdminLevel"):
        service.run()
    assert last_cycle(service).outcome == "slurm_refused"


# -- the clock


def test_while_a_clock_catches_up_new_jobs_get_the_last_points(service: Service) -> None:
    slurm = service.slurm
    slurm.fill("biology")
    slurm.wait(HOUR)
    service.run()
    before = watermark(service)
    slurm.skew = -1000
    slurm.wait(30)
    waits = slurm.submit("physics", processing_time=9)
    slurm.windows.clear()
    with pytest.raises(ClockError, match=r"970 s behind.*get the points of cycle 1 meanwhile"):
        service.run()
    assert last_cycle(service).outcome == "clock_backwards"
    assert slurm.job(waits).site_factor == FIRST
    later = slurm.submit("physics", processing_time=9)
    service.restart()
    with pytest.raises(ClockError):
        service.run()
    after = watermark(service)
    assert after.accounted_to == before.accounted_to
    assert after.observed_until == slurm.now - 1000 - 31
    assert slurm.windows == []
    assert slurm.job(later).site_factor == FIRST
    with pytest.raises(ClockError):
        service.run()
    assert slurm.writes == []
    slurm.skew = 0
    service.run()
    assert watermark(service).accounted_to == slurm.now
    assert slurm.job(waits).site_factor == FIRST
    service.roll_back()
    assert {job.site_factor for job in slurm.jobs()} == {0}


def test_a_small_step_backwards_is_tolerated(service: Service) -> None:
    slurm = service.slurm
    slurm.fill("biology")
    slurm.wait(HOUR)
    service.run()
    before = service.standings()
    slurm.skew = -200
    report = service.run()
    assert report.t == slurm.now
    after = service.standings()
    assert {name: row.utility for name, row in after.items()} == {
        name: row.utility for name, row in before.items()
    }
    assert watermark(service).observed_until == slurm.now - 200


@pytest.mark.parametrize("ahead", [HOUR // 2, 2 * HOUR])
@pytest.mark.parametrize("cycles", [1, 3])
@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("prunes", [False, True])
def test_what_ran_before_a_clock_that_was_ahead_had_caught_up_counts(
    store: Store, ahead: int, cycles: int, stops: bool, prunes: bool
) -> None:
    slurm = Cluster()
    service = Service(
        slurm,
        store,
        config(
            service={"overlap": "1m"},
            fairness={"since": "2027-01-15T08:00:00Z", "horizon": f"{HORIZON}s"},
        ),
    )
    for _ in range(3):
        slurm.wait(30)
        service.run()
    slurm.submit("physics", processors=4, processing_time=600, partition="pb")
    slurm.skew = ahead
    for _ in range(cycles):
        slurm.wait(30)
        service.run()
    if prunes:
        service.cycle.prune()
    slurm.skew = 0
    slurm.submit("biology", processors=4, processing_time=600, partition="pb")
    slurm.wait(1300)
    if stops:
        slurm.wait(ahead)
        service.restart()
    with suppress(ClockError):
        service.run()
    slurm.wait(HOUR * 2)
    t = service.run().t
    worth = Counter({"physics": 0, "biology": 0})
    for record in slurm.records(NOW, t):
        assert not isinstance(record, Malformed)
        if record.start is not None and record.end is not None:
            parts = range(record.start, record.end)
            worth[record.account] += 4 * sum(min(t - part, HORIZON) for part in parts)
    assert min(worth.values()) > 0
    assert {name: row.utility for name, row in values_at(service, t).items()} == worth


class Stamped(Cluster):
    """Its records have the times that its wrong clock showed.

    Attributes:
        was_ahead: from when to when it was wrong, and by how many seconds.
    """

    was_ahead = (0, 0, 0)

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        self.windows.append((since, until))
        stamped = map(self._stamped, super().records(0, 2**40))
        return (one for one in stamped if (one.end or until) >= since)

    def records_of(self, job_ids: Sequence[int]) -> Iterator[JobRecord | Malformed]:
        return map(self._stamped, super().records_of(job_ids))

    def _stamped(self, record: JobRecord | Malformed) -> JobRecord:
        assert isinstance(record, JobRecord)
        return replace(record, start=self._shown(record.start), end=self._shown(record.end))

    def _shown(self, second: int | None) -> int | None:
        since, until, ahead = self.was_ahead
        return second if second is None or not since <= second < until else second + ahead


@pytest.mark.parametrize("prunes", [False, True])
@pytest.mark.parametrize("horizon", [HORIZON, DAY])
def test_after_the_clock_is_accepted_the_ledger_goes_on_and_is_exact(
    store: Store, horizon: int, prunes: bool
) -> None:
    slurm = Stamped()
    fairness = {"since": "2027-01-15T08:00:00Z", "horizon": f"{horizon}s"}
    service = Service(slurm, store, config(service={"overlap": "1m"}, fairness=fairness))
    shared = store.cluster(NAME)
    slurm.submit("physics", processors=4, processing_time=200, partition="pb")
    for _ in range(4):
        slurm.wait(900)
        service.run()
    slurm.submit("physics", processors=2, processing_time=20, partition="pb")
    slurm.submit("physics", processors=1, processing_time=9000, partition="pb")
    slurm.wait(10)
    slurm.submit("biology", processors=4, processing_time=30, partition="pa")
    slurm.skew = 2 * HOUR
    slurm.was_ahead = (slurm.now, slurm.now + 60, slurm.skew)
    slurm.wait(50)
    service.run()
    ended_ahead = values_at(service, slurm.now + 2 * HOUR)
    assert ended_ahead["biology"].utility > 0
    if prunes:
        service.cycle.prune()
    slurm.wait(10)
    slurm.skew = 0
    slurm.submit("biology", processors=3, processing_time=500, partition="pa")
    with pytest.raises(ClockError):
        service.run()
    if prunes:
        service.cycle.prune()
    accepted = accept_clock(shared, slurm.controller(), overlap=60, user="ann")
    assert (accepted.at, accepted.ahead) == (slurm.now, 2)
    assert accepted.before == slurm.now - 10 + 2 * HOUR
    with pytest.raises(AccountingError, match="nothing to accept"):
        accept_clock(shared, slurm.controller(), overlap=60, user="ann")
    assert service.run().t == slurm.now
    assert_worth_is_that_of_the_records(service)
    for _ in range(30):
        slurm.wait(600)
        service.run()
        assert_worth_is_that_of_the_records(service)
        if prunes:
            service.cycle.prune()


def assert_worth_is_that_of_the_records(service: Service) -> None:
    """By the controller's clock; what its records say of times ahead has not happened yet."""
    slurm, t = service.slurm, service.slurm.now
    horizon = service.config.fairness.horizon
    assert horizon is not None
    worth = Counter({"physics": 0, "biology": 0})
    for record in slurm.records(0, t):
        assert isinstance(record, JobRecord)
        if record.start is None:
            continue
        parts = range(record.start, min(record.end or t, t))
        worth[record.account] += record.processors * sum(min(t - part, horizon) for part in parts)
    assert {name: row.utility for name, row in values_at(service, t).items()} == worth


def test_a_clock_is_not_accepted_if_a_node_changed_hands_ahead_of_it(service: Service) -> None:
    slurm = service.slurm
    service.run()
    slurm.wait(60)
    slurm.skew = 2 * HOUR
    service.restart(config(PHYSICS | {"partitions": []}, BIOLOGY | {"nodes": ["a[1-2]"]}))
    service.run()
    slurm.skew = 0
    before = watermark(service)
    with pytest.raises(AccountingError, match="a node or an account changed hands at"):
        accept_clock(service.store.cluster(NAME), slurm.controller(), overlap=60, user="ann")
    assert watermark(service) == before


class Late(Cluster):
    """Its controller does not know what accounting has not written yet.

    Attributes:
        boot: of the machine that asks it.
    """

    boot = "simulated"

    def controller(self) -> Controller:
        answer = super().controller()
        seen = replace(answer.seen, boot=self.boot)
        return replace(answer, accounting_backlog=0, seen=seen)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_late_record_of_before_the_clock_went_ahead_counts(store: Store, restarts: bool) -> None:
    slurm = Late(accounting_delay=20)
    service = Service(slurm, store, config(service={"overlap": "1m"}))
    service.run()
    slurm.submit("physics", processing_time=2)
    slurm.wait(3)
    slurm.skew = 2 * HOUR
    service.run()
    began = slurm.now
    slurm.windows.clear()
    while slurm.now < began + 130:
        slurm.wait(10)
        if restarts:
            service.restart()
        service.run()
    assert service.standings()["physics"].utility > 0
    lengths = Counter(until - since for since, until in slurm.windows)
    assert lengths == {70: 12, 60 + 3 + 2 * HOUR + 70: 1}


def test_another_head_node_reads_again_once_what_a_clock_ahead_may_hide(store: Store) -> None:
    slurm = Late()
    service = Service(slurm, store, config(service={"overlap": "1m"}))
    service.run()
    slurm.wait(30)
    slurm.skew = 2 * HOUR
    service.run()
    slurm.wait(61)
    service.run()
    slurm.submit("physics", processors=4, processing_time=60)
    slurm.wait(2 * HOUR)
    slurm.skew = 0
    slurm.submit("biology", processors=4, processing_time=60)
    slurm.wait(100)
    slurm.boot = "another"
    slurm.windows.clear()
    for _ in range(4):
        service.restart()
        service.run()
        slurm.wait(30)
    assert {row.utility > 0 for row in service.standings().values()} == {True}
    assert [until - since for since, until in slurm.windows] == [2 * HOUR + 160, 90, 90, 250]


def test_no_transaction_is_open_while_slurm_answers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = Cluster()
    service = Service(slurm, store)
    asked: set[str] = set()
    gone = False

    def question(name: str) -> Callable[..., Any]:
        answer = getattr(slurm, name)

        def asked_while_another_cluster_writes(*arguments: Any) -> Any:
            asked.add(name)
            with store.cluster("another").transaction() as rows:
                rows.history.save_cycle(CycleRow(number=1, started=0, finished=0, outcome="ok"))
            return [] if gone and name.startswith("records") else answer(*arguments)

        return asked_while_another_cluster_writes

    questions = {"controller", "records", "records_of", "layout", "pending", "nodes", "write"}
    for name in questions:
        monkeypatch.setattr(slurm, name, question(name))
    whole = slurm.layout()
    slurm.layout_changes = {
        "nodes": {name: node for name, node in whole.nodes.items() if name != "b1"},
        "partitions": {name: part for name, part in whole.partitions.items() if name != "pb"},
    }
    slurm.fill("physics", seconds=DAY)
    slurm.submit("biology", processing_time=9)
    service.run()
    slurm.layout_changes = {}
    slurm.wait(10)
    service.run()
    gone = True
    slurm.wait(10)
    assert service.run().tally.withdrawn == 1
    service.cycle.prune()
    assert asked == questions


# -- how far it has come


@pytest.mark.parametrize(("busy", "days"), [(9, [1, 3]), (2, [1, 2, 3])])
def test_days_are_caught_up_one_by_one_unless_they_are_quiet(
    store: Store, monkeypatch: pytest.MonkeyPatch, busy: int, days: list[int]
) -> None:
    monkeypatch.setattr("shapleyprio.daemon.accounting.intake.QUIET_RECORDS", busy)
    slurm = Cluster()
    service = Service(slurm, store, config(service={"overlap": "1h"}))
    service.run()
    for _ in range(9):
        slurm.submit("physics", processors=4, processing_time=HOUR, partition="pb")
        slurm.wait(0)
        slurm.wait(DAY // 3)
    slurm.windows.clear()
    service.run()
    begins = [0, *days[:-1]]
    assert slurm.windows == [
        (NOW + begin * DAY - HOUR, NOW + end * CATCH_UP_SECONDS)
        for begin, end in zip(begins, days, strict=True)
    ]
    assert watermark(service).observed_until == NOW + 3 * DAY
    parts = 9 * 4 * HOUR
    assert service.standings()["physics"].parts == parts


def test_a_catch_up_that_breaks_off_goes_on_where_it_was(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = service.slurm
    service.run()
    slurm.wait(4 * DAY)
    asked = slurm.records

    def twice(since: int, until: int) -> Iterator[object]:
        if until > NOW + 2 * DAY:
            raise SlurmUnavailableError("slurmdbd went away")
        return asked(since, until)

    with monkeypatch.context() as patch:
        patch.setattr(slurm, "records", twice)
        with pytest.raises(SlurmUnavailableError):
            service.run()
    assert watermark(service).observed_until == NOW + DAY
    slurm.windows.clear()
    service.run()
    assert [until for _, until in slurm.windows] == [NOW + 2 * DAY, NOW + 4 * DAY]


def test_the_watermark_stays_while_records_are_on_their_way(store: Store) -> None:
    slurm = Cluster(accounting_delay=50)
    service = Service(slurm, store)
    service.run()
    slurm.fill("physics", seconds=20)
    slurm.wait(40)
    report = service.run()
    assert watermark(service).observed_until == NOW
    assert report.accounted.lag_seconds == 40
    slurm.wait(60)
    report = service.run()
    assert watermark(service).observed_until == NOW + 100
    assert report.accounted.lag_seconds == 0
    assert service.standings()["physics"].parts == 12 * 20


# -- the cluster changes


def test_the_layout_is_read_anew_from_time_to_time(service: Service) -> None:
    slurm = service.slurm
    slurm.fill("guest")
    job = slurm.submit("guest", processing_time=9)
    service.run()
    nodes = {"pa": ("a1",), "pb": ("b1", "a2")}
    slurm.layout_changes["partitions"] = {
        name: Partition(name=name, nodes=names, allow_accounts=(), priority_job_factor=1)
        for name, names in nodes.items()
    }
    slurm.wait(LAYOUT_SECONDS - 1)
    service.run()
    assert service.standings()["biology"].processors == 4
    slurm.wait(1)
    service.run()
    assert service.standings()["biology"].processors == 8
    assert slurm.job(job).site_factor == 0


def capacities_of(service: Service) -> list[tuple[str, int, int]]:
    with service.store.cluster(NAME).reading() as view:
        return [
            (row.organization, row.since, sum(row.processors.values()))
            for row in view.observed.capacities()
        ]


def test_capacities_follow_the_owners_of_nodes_from_the_opening_on(service: Service) -> None:
    slurm = service.slurm
    nodes = {"pa": ("a1",), "pb": ("b1", "a2")}

    def capacities() -> list[tuple[str, int, int]]:
        return capacities_of(service)

    service.run()
    opened = watermark(service).opened
    assert opened < NOW
    first = [("biology", opened, 4), ("physics", opened, 8)]
    assert capacities() == first
    slurm.layout_changes["partitions"] = {
        name: Partition(name=name, nodes=names, allow_accounts=(), priority_job_factor=1)
        for name, names in nodes.items()
    }
    slurm.wait(LAYOUT_SECONDS)
    changed = service.run().t
    assert capacities() == [*first, ("biology", changed, 8), ("physics", changed, 4)]
    service.restart(config(PHYSICS))
    slurm.wait(1)
    left = service.run().t
    assert capacities()[4:] == [("biology", left, 0)]


def test_the_layout_is_kept_as_it_was_when_it_was_read(service: Service) -> None:
    slurm = service.slurm
    service.run()
    opened, first = watermark(service).opened, slurm.layout()
    changed = {**first.partitions, "pb": replace(first.partitions["pb"], nodes=("b1", "a2"))}
    slurm.layout_changes["partitions"] = changed
    slurm.layout_changes["accounts"] = {**first.accounts, "lab": "physics"}
    slurm.wait(LAYOUT_SECONDS)
    later = service.run().t
    with service.store.cluster(NAME).reading() as view:
        nodes = [
            (row.name, row.since, row.processors, row.partitions)
            for row in view.observed.node_rows()
        ]
        accounts = [(row.name, row.since, row.parent) for row in view.observed.account_rows()]
    assert nodes == [
        ("a1", opened, 4, ("all", "pa")),
        ("a2", opened, 4, ("all", "pa")),
        ("a2", later, 4, ("all", "pa", "pb")),
        ("b1", opened, 4, ("all", "pb")),
    ]
    assert ("lab", later, "physics") in accounts
    assert ("physics", opened, None) in accounts


def test_a_closed_node_brings_what_its_jobs_hold_from_the_cycle_that_sees_it(
    service: Service,
) -> None:
    slurm = service.slurm
    for seconds in (100, 200):
        slurm.submit("guest", partition="pa", processing_time=seconds)
    slurm.advance(slurm.now)
    service.run()
    first = capacities_of(service)
    slurm.drain("a1")
    waits = slurm.submit("physics", partition="pa", processors=8, processing_time=10)
    for _ in range(12):
        slurm.wait(20)
        service.run()
        assert service.standings()["physics"].processors == 8  # it is its node still
    assert capacities_of(service)[len(first) :] == [
        ("physics", NOW + 20, 6),
        ("physics", NOW + 100, 5),
        ("physics", NOW + 200, 4),
    ]
    slurm.cancel(waits)
    slurm.undrain("a1")
    slurm.wait(5)
    back = service.run().t
    slurm.wait(30)
    service.run()
    assert capacities_of(service)[len(first) + 3 :] == [("physics", back, 8)]


def test_a_node_that_was_closed_at_the_first_cycle_counts_until_then(service: Service) -> None:
    service.slurm.drain("b1")
    first = service.run().t
    opened = watermark(service).opened
    assert capacities_of(service) == [
        ("biology", opened, 4),
        ("physics", opened, 8),
        ("biology", first, 0),
    ]


def test_the_ledger_does_not_mind_whether_a_node_is_closed(store: Store) -> None:
    found = []
    for name, closed in (("c1", False), ("c2", True)):
        slurm = Cluster(name)
        service = Service(slurm, store, name=name)
        slurm.submit("biology", partition="pa", processors=8, processing_time=300)
        slurm.advance(slurm.now)
        service.run()
        if closed:
            slurm.drain("a1")
        for _ in range(4):
            slurm.wait(100)
            service.run()
        with store.cluster(name).reading() as view:
            found.append(
                [(row.contribution, row.utility) for row in view.history.latest_standings()]
            )
    assert found[0] == found[1]
    assert any(contribution for contribution, _ in found[0])


def test_capacities_that_others_replaced_go_with_the_runs_of_their_time(store: Store) -> None:
    slurm = Cluster()
    service = Service(slurm, store, config(fairness={"horizon": "1d"}))
    service.run()
    slurm.drain("a1")
    slurm.wait(60)
    service.run()
    slurm.undrain("a1")
    slurm.wait(60)
    back = service.run().t
    service.cycle.prune()
    assert len(capacities_of(service)) == 4
    slurm.wait(3 * 86_400)
    service.run()
    service.cycle.prune()
    opened = watermark(service).opened
    assert capacities_of(service) == [("biology", opened, 4), ("physics", back, 8)]


def test_whose_a_new_node_is_is_asked_in_the_next_cycle(service: Service) -> None:
    slurm = service.slurm
    service.run()
    slurm.wait(30)
    slurm.layout_changes["nodes"] = {**slurm.nodes(), "b2": Node(name="b2", tres={"cpu": 16})}
    slurm.layout_changes["partitions"] = {
        name: Partition(name=name, nodes=names, allow_accounts=(), priority_job_factor=1)
        for name, names in {
            "pa": ("a1", "a2"), "pb": ("b1", "b2"), "all": ("a1", "a2", "b1", "b2")
        }.items()
    }  # fmt: skip
    service.run()
    slurm.wait(30)
    asked = service.run().t
    assert capacities_of(service)[2:] == [("biology", asked, 20)]


def test_what_a_node_earned_stays_where_it_was(store: Store) -> None:
    slurm = Cluster()
    service = Service(slurm, store)
    slurm.fill("biology")
    slurm.wait(100)
    service.run()
    assert service.standings()["physics"].contribution == 8 * 5050
    service.restart(config(PHYSICS | {"partitions": []}, BIOLOGY | {"nodes": ["a[1-2]"]}))
    service.run()
    assert service.standings()["physics"].contribution == 8 * 5050
    slurm.wait(100)
    service.run()
    whole, second_half = 200 * 201 // 2, 100 * 101 // 2
    assert service.standings()["physics"].contribution == 8 * (whole - second_half)
    assert service.standings()["biology"].contribution == 4 * whole + 8 * second_half


def test_a_node_that_was_never_heard_of_makes_it_ask_for_the_layout(service: Service) -> None:
    slurm = service.slurm
    whole = slurm.layout()
    slurm.layout_changes = {
        "nodes": {name: node for name, node in whole.nodes.items() if name != "b1"},
        "partitions": {name: part for name, part in whole.partitions.items() if name != "pb"},
    }
    service.run()
    slurm.layout_changes = {}
    slurm.submit("physics", processors=4, processing_time=HOUR, partition="pb")
    slurm.wait(0)
    slurm.wait(10)
    service.run()
    assert service.standings()["biology"].contribution == 4 * 55


# -- pruning


@pytest.mark.parametrize("later", [0, 1, HOUR, 3 * DAY])
def test_pruning_changes_no_value_by_a_single_unit(store: Store, later: int) -> None:
    slurm = Cluster()
    service = Service(slurm, store, config(fairness=SHORT))
    for turn in range(30):
        account = ("physics", "biology", "guest")[turn % 3]
        slurm.submit(account, processors=1 + turn % 12, processing_time=3 * HOUR + 7 * turn)
        slurm.wait(0)
        slurm.wait(2 * HOUR)
        service.run()
    t = slurm.now + later
    before = values_at(service, t)
    runs = service.store.sizes()["run"]
    pruned = service.cycle.prune()
    assert 0 < pruned < runs
    assert service.store.sizes()["run"] == runs - pruned
    assert values_at(service, t) == before
    slurm.wait(HOUR)
    service.run()
    assert service.cycle.prune() >= 0


def test_what_a_large_prune_has_done_stays_done(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.scope.PRUNED_AT_ONCE", 3)
    slurm = Cluster()
    service = Service(slurm, store, config(fairness=SHORT))
    for _ in range(10):
        slurm.submit("physics", processing_time=HOUR)
        slurm.wait(0)
        slurm.wait(HOUR + 1)
    service.run()
    slurm.wait(5 * DAY)
    service.run()
    before = values_at(service, slurm.now)
    left = []
    while service.cycle.prune(until=0):
        left.append(service.store.sizes()["run"])
        service.restart()
        service.run()
        assert values_at(service, slurm.now) == before
    assert left == [7, 4, 1, 0]


def test_runs_are_kept_for_reports_beyond_the_horizon(store: Store) -> None:
    slurm = Cluster()
    keeping = {"keep_runs": "10d"}
    service = Service(slurm, store, config(fairness=SHORT, service=keeping))
    slurm.fill("physics", seconds=HOUR)
    slurm.wait(HOUR)
    service.run()
    for days, pruned in ((3, 0), (6, 0), (2, 1)):
        slurm.wait(days * DAY)
        service.run()
        before = values_at(service, slurm.now)
        assert service.cycle.prune() == pruned
        assert values_at(service, slurm.now) == before


def test_what_will_be_read_again_is_not_pruned(store: Store) -> None:
    slurm = Cluster()
    service = Service(slurm, store, config(fairness=SHORT, service={"overlap": "3d"}))
    slurm.fill("physics", seconds=HOUR)
    slurm.wait(HOUR)
    service.run()
    slurm.wait(2 * DAY)
    service.run()
    before = values_at(service, slurm.now)
    assert service.cycle.prune() == 0
    report = service.run()
    assert (report.tally.kept, report.tally.late) == (0, 0)
    assert values_at(service, slurm.now) == before
    slurm.wait(2 * DAY)
    service.run()
    assert service.cycle.prune() == 1


# -- lines that cannot be read


def test_lines_that_cannot_be_read_are_quarantined_and_shown(service: Service) -> None:
    service.slurm.fill("guest")
    service.run()
    job = service.slurm.submit("physics", processing_time=9)
    service.slurm.malformed = [
        Malformed("sacct", "1|garbage", "2 fields instead of 14"),
        Malformed("squeue", "nonsense", "1 field instead of 12"),
    ]
    report = service.run()
    assert report.tally.quarantined == 2
    assert (last_cycle(service).quarantined, last_cycle(service).refused) == (2, 0)
    assert service.slurm.job(job).site_factor == FIRST
    service.run()
    status = read_status(service.store.cluster(NAME))
    assert status.quarantined_count == 2
    assert {line.line.text: line.times for line in status.quarantined} == {
        "1|garbage": 2,
        "nonsense": 2,
    }


# -- the store


def test_a_store_that_somebody_holds_fails_the_cycle_and_the_next_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    slurm = Cluster()
    slurm.fill("guest")
    job = slurm.submit("physics", processing_time=9)
    with Store.open(url_of(store)) as impatient:
        service = Service(slurm, impatient)
        with held_by_another(store), pytest.raises(StoreBusyError):
            service.run()
        assert slurm.job(job).site_factor == 0
        service.run()
        assert slurm.job(job).site_factor == FIRST
        assert last_cycle(service).outcome == "ok"


def test_a_store_that_is_taken_while_slurm_writes_is_made_good(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    slurm = Cluster()
    slurm.fill("guest")
    job = slurm.submit("physics", processing_time=9)
    with Store.open(url_of(store)) as impatient, ExitStack() as other:
        service = Service(slurm, impatient)
        slurm.after_write = lambda: other.enter_context(held_by_another(store))
        with pytest.raises(StoreBusyError):
            service.run()
        other.close()
        assert service.pushes(job)[0].state is PushState.PLANNED
        service.run()
        assert service.pushes(job)[0].state is PushState.APPLIED
        assert slurm.writes == []


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_full_disk_loses_nothing(service: Service) -> None:
    slurm = service.slurm
    slurm.fill("biology")
    slurm.wait(10)
    service.run()
    before = watermark(service)
    service.store.close()

    def limit(connection: sqlite3.Connection, _: object) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(service.store._engine, "connect", limit)
    for _ in range(2000):
        slurm.submit("physics", processing_time=9)
    with pytest.raises(StoreFullError):
        service.run()
    assert slurm.writes == []
    service.store.close()
    event.remove(service.store._engine, "connect", limit)
    slurm.wait(20)
    service.run()
    assert watermark(service).accounted_to == before.accounted_to + 20
    assert {job.site_factor for job in slurm.jobs()} == {FIRST}


def test_ties_go_to_the_one_listed_first(store: Store) -> None:
    slurm = Cluster()
    service = Service(slurm, store, config(BIOLOGY, PHYSICS))
    service.run()
    assert service.points() == {"biology": FIRST, "physics": LAST}


@pytest.mark.parametrize("fails", ["slurm", "store"])
def test_slurm_is_asked_again_for_the_processors_of_a_run_if_no_answer_was_stored(
    service: Service, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    job = service.slurm.submit("physics", processors=9, processing_time=10**6)
    service.slurm.wait(5)
    asked: list[int] = []
    answer, count = service.slurm.processors_of, OpenLedger.count

    def asks(runs: Sequence[Run]) -> Mapping[RunKey, Mapping[str, int]]:
        asked.append(len(runs))
        if fails == "slurm" and len(asked) == 1:
            raise SlurmUnavailableError("slurmctld is down")
        return answer(runs)

    def counts(opened: OpenLedger, held: Mapping[RunKey, Mapping[str, int]]) -> None:
        count(opened, held)
        if fails == "store" and len(asked) == 1:
            raise StoreFullError("the disk is full")

    monkeypatch.setattr(service.slurm, "processors_of", asks)
    monkeypatch.setattr(OpenLedger, "count", counts)
    with pytest.raises(SlurmUnavailableError if fails == "slurm" else StoreFullError):
        service.run()
    service.run()
    service.run()
    assert asked == [1, 1], "an answer that is stored is asked for once"
    with service.store.cluster(NAME).reading() as view:
        (run,) = [run for run, _ in view.runs.all_runs()]
    assert (run.key.job_id, run.counted) == (job, True)
    assert run.processors == {"a1": 4, "a2": 4, "b1": 1}
