"""Exceptions: a job goes before all, or its organization's, and what was found comes back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.cli.offline.in_force import read_in_force
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.answering.explain import explain_job
from shapleyprio.daemon.pushing import orders
from shapleyprio.lab.simulated import SimulatedSlurm
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import PendingQueue
from shapleyprio.store import ExceptionRow, Store
from tests.daemon.consortium import NAME, QUIET, Cluster, Service, config
from tests.daemon.pushing.test_pausing import pause, resume
from tests.store.examples import exception

if TYPE_CHECKING:
    from collections.abc import Sequence

QOS = {"physics": "phys", "biology": "bio", "guest": "normal"}
WEIGHTS = {"Age": 1000, "QOS": 1, "Assoc": 1}
SETTINGS = replace(
    QUIET,
    weights=WEIGHTS,
    flags=frozenset({"NO_NORMAL_QOS", "NO_NORMAL_ASSOC"}),
    max_age_seconds=100_000,
)
BEFORE = ("physics", "physics", "biology", "biology", "guest")
"""Whose jobs 2 to 6 are."""


@pytest.fixture(params=sorted(CHANNELS))
def waiting(request: pytest.FixtureRequest, store: Store) -> Service:
    """Jobs of everybody wait in the order of their age, and one cycle has run, by each channel."""
    slurm = Cluster(settings=SETTINGS, qos={"normal": 0, "phys": 0, "bio": 0})
    slurm.fill("guest")
    for account in BEFORE:
        slurm.submit(account, qos=QOS[account], processors=12, processing_time=9)
        slurm.wait(1000)
    service = Service(slurm, store, config(push={"channel": request.param}))
    service.run()
    slurm.wait(SETTINGS.calc_period_seconds)
    service.run()
    return service


def put_first(
    service: Service, job: int | str, *, before_all: bool = False, until: int | None = None
) -> ExceptionRow:
    as_ordered = {"label": str(job), "organization": "", "before_all": before_all, "until": until}
    row = exception(0, service.slurm.now, **as_ordered)
    segments = segments_of(service.config, NAME)
    first, *_ = orders.put_first(service.store.cluster(NAME), service.slurm, segments, row)
    return first


def undo(service: Service, job: int | str) -> None:
    orders.undo_first(service.store.cluster(NAME), str(job), service.slurm.now, "bob")


def order(service: Service) -> list[int]:
    """The waiting jobs as Slurm takes them."""
    jobs = sorted(service.slurm.jobs(), key=lambda job: (-job.priority, job.submit, job.job_id))
    return [job.job_id for job in jobs]


def found(service: Service) -> dict[str, object]:
    """All that carries priorities."""
    jobs = {job.job_id: (job.nice, job.site_factor) for job in service.slurm.jobs()}
    return {
        "jobs": jobs,
        "qos": service.slurm.qos_priorities(),
        "accounts": service.slurm.account_priorities(),
    }


def exceptions(service: Service, since: int | None = None) -> Sequence[ExceptionRow]:
    with service.store.cluster(NAME).reading() as view:
        return view.orders.exceptions(since)


def cycles(service: Service, number: int) -> list[int]:
    """Runs cycles; returns how many writes each made."""
    writes = []
    for _ in range(number):
        service.slurm.wait(10)
        service.run()
        writes.append(sum(len(values) for _, values in service.slurm.writes))
    return writes


def test_it_goes_before_its_own_organization_and_no_other(waiting: Service) -> None:
    before, usual = order(waiting), found(waiting)
    assert put_first(waiting, 5).organization == "biology"
    assert cycles(waiting, 3) == [1, 0, 0]
    moved = [job for job in before if job != 5]
    moved.insert(moved.index(4), 5)
    assert order(waiting) == moved != before
    (row,) = exceptions(waiting)
    assert row.passed == {"biology": 1}
    undo(waiting, 5)
    assert cycles(waiting, 2) == [1, 0]
    assert found(waiting) == usual
    assert order(waiting) == before
    assert exceptions(waiting) == []
    assert exceptions(waiting, since=0)[0].ended_by == "undone by bob"


def test_it_goes_before_all(waiting: Service) -> None:
    before, usual = order(waiting), found(waiting)
    put_first(waiting, 5, before_all=True)
    assert cycles(waiting, 3) == [1, 0, 0]
    assert order(waiting) == [5, *(job for job in before if job != 5)]
    (row,) = exceptions(waiting)
    ahead = before[: before.index(5)]
    assert row.passed == dict(Counter(BEFORE[job - 2] for job in ahead))
    new = waiting.slurm.submit("physics", qos="phys", processing_time=9)
    cycles(waiting, 2)
    assert order(waiting)[0] == 5
    waiting.slurm.cancel(new)
    waiting.restart()  # nothing of it is in memory alone
    assert cycles(waiting, 2) == [0, 0]
    undo(waiting, 5)
    cycles(waiting, 1)
    assert found(waiting) == usual


def test_it_stays_there_when_the_ranks_change(waiting: Service) -> None:
    put_first(waiting, 5)
    cycles(waiting, 1)
    first = waiting.points()
    for job in range(2, 7):
        waiting.slurm.hold(job)
    waiting.slurm.cancel(1)
    waiting.slurm.fill("biology" if first["biology"] > first["physics"] else "physics")
    for job in range(2, 7):
        waiting.slurm.release(job)
    for _ in range(30):
        waiting.slurm.wait(10_000)
        waiting.run()
        if waiting.points() != first:
            break
    assert waiting.points() != first
    waiting.slurm.wait(SETTINGS.calc_period_seconds)
    cycles(waiting, 1)
    of_biology = [job for job in order(waiting) if job in {4, 5}]
    assert of_biology == [5, 4]
    theirs = {job for job in order(waiting) if job in {2, 3}}
    ahead = set(order(waiting)[: order(waiting).index(5)])
    assert theirs.issubset(ahead) == (waiting.points()["physics"] > waiting.points()["biology"])
    assert not ahead or ahead == theirs


def test_of_several_those_before_all_come_first_and_then_the_first_that_was_ordered(
    waiting: Service,
) -> None:
    before = order(waiting)
    ahead_of_3 = before[: before.index(3)]
    for job in (4, 5):
        put_first(waiting, job)
        waiting.slurm.wait(1)
    for job in (3, 2):
        put_first(waiting, job, before_all=True)
        waiting.slurm.wait(1)
    cycles(waiting, 1)
    assert order(waiting) == [3, 2, 4, 5, 6]
    passed = {row.job_id: row.passed for row in exceptions(waiting)}
    assert passed[3] == dict(Counter(BEFORE[job - 2] for job in ahead_of_3))
    assert cycles(waiting, 2) == [0, 0]
    undo(waiting, 3)
    cycles(waiting, 1)
    assert order(waiting)[0] == 2
    assert [job for job in order(waiting) if job in {4, 5}] == [4, 5]


def test_it_ends_when_the_job_starts_and_a_requeued_job_has_nothing_left(waiting: Service) -> None:
    put_first(waiting, 5, before_all=True)
    cycles(waiting, 1)
    usual = waiting.slurm.job(4).nice, waiting.slurm.job(4).site_factor
    waiting.slurm.cancel(1)
    waiting.slurm.advance(waiting.slurm.now)
    waiting.run()
    (row,) = exceptions(waiting, since=0)
    assert (row.ended, row.ended_by) == (waiting.slurm.now, "the job started")
    for node in waiting.slurm.nodes():
        waiting.slurm.drain(node)
    waiting.slurm.requeue(5)
    cycles(waiting, 1)
    job = waiting.slurm.job(5)
    assert (job.nice, job.site_factor) == usual


def test_it_ends_when_the_job_leaves_the_queue(waiting: Service) -> None:
    put_first(waiting, 5)
    cycles(waiting, 1)
    waiting.slurm.unreadable = {5}
    cycles(waiting, 1)
    assert len(exceptions(waiting)) == 1  # for all that is known, it waits
    waiting.slurm.unreadable = set()
    waiting.slurm.cancel(5)
    cycles(waiting, 1)
    (row,) = exceptions(waiting, since=0)
    assert row.ended_by == "the job left the queue"


def test_it_ends_at_its_time(waiting: Service) -> None:
    usual = found(waiting)
    put_first(waiting, 5, before_all=True, until=waiting.slurm.now + 15)
    cycles(waiting, 1)
    assert order(waiting)[0] == 5
    cycles(waiting, 1)
    assert found(waiting) == usual
    (row,) = exceptions(waiting, since=0)
    assert row.ended_by == "its time was up"


def test_a_pause_suspends_it(waiting: Service) -> None:
    put_first(waiting, 5, before_all=True)
    cycles(waiting, 1)
    pause(waiting)
    cycles(waiting, 1)
    assert {job.site_factor for job in waiting.slurm.jobs()} == {0}
    assert cycles(waiting, 1) == [0]
    resume(waiting)
    cycles(waiting, 1)
    assert order(waiting)[0] == 5


def test_a_rollback_puts_back_what_was_found(waiting: Service) -> None:
    put_first(waiting, 5, before_all=True)
    put_first(waiting, 3)
    cycles(waiting, 1)
    waiting.roll_back()
    assert {(job.nice, job.site_factor) for job in waiting.slurm.jobs()} == {(0, 0)}
    assert set(waiting.slurm.qos_priorities().values()) == {0}


def test_a_held_job_goes_first_once_it_is_released(waiting: Service) -> None:
    waiting.slurm.hold(5)
    put_first(waiting, 5, before_all=True)
    cycles(waiting, 2)
    waiting.slurm.release(5)
    cycles(waiting, 1)
    assert order(waiting)[0] == 5


def test_all_tasks_of_an_array_go_first_and_leave_nothing_behind(waiting: Service) -> None:
    array = waiting.slurm.submit("biology", qos="bio", processing_time=9, array=3)
    cycles(waiting, 1)
    row = put_first(waiting, array, before_all=True)
    assert (row.job_id, row.label) == (array, str(array))
    cycles(waiting, 1)
    assert order(waiting)[0] == array
    waiting.slurm.cancel(1)
    waiting.slurm.fill("guest")
    cycles(waiting, 3)
    assert {job.site_factor for job in waiting.slurm.jobs()}.isdisjoint({None})
    undo(waiting, array) if exceptions(waiting) else None
    cycles(waiting, 1)
    factors = {job.site_factor for job in waiting.slurm.jobs() if job.array_job_id == array}
    usual = {job.site_factor for job in waiting.slurm.jobs() if job.account == "biology"}
    assert factors <= usual


def test_a_task_with_the_number_of_its_array_goes_first_alone(waiting: Service) -> None:
    array = waiting.slurm.submit("biology", qos="bio", processors=12, processing_time=9, array=3)
    for task in (0, 1):
        (alone,), _ = waiting.slurm._engine.named(f"{array}_{task}")
        waiting.slurm._engine.hold(alone)
    waiting.slurm.names = {array: f"{array}_2"}  # squeue names it so
    for task in (array + 1, array + 2):
        waiting.slurm.release(task)
    cycles(waiting, 1)
    put_first(waiting, f"{array}_2", before_all=True)
    cycles(waiting, 1)
    usual = waiting.slurm.job(5).site_factor
    assert {waiting.slurm.job(array + one).site_factor for one in (1, 2)} == {usual}
    assert order(waiting)[0] == array
    explained = explain_job(waiting.store.cluster(NAME), waiting.slurm, f"{array}_1")
    assert (explained.exception, explained.put_ahead) == (None, 1)
    put_first(waiting, f"{array}_1")
    undo(waiting, f"{array}_1")
    waiting.slurm._engine.cancel(waiting.slurm._engine._jobs[array])
    cycles(waiting, 1)
    assert exceptions(waiting) == []


@pytest.mark.parametrize("waiting", ["site_factor"], indirect=True)
def test_only_the_work_of_the_task_is_said_to_be_its_own(waiting: Service) -> None:
    array = waiting.slurm.submit("biology", qos="bio", processors=12, processing_time=300, array=2)
    (held,), _ = waiting.slurm._engine.named(f"{array}_0")
    waiting.slurm._engine.hold(held)
    waiting.slurm.names = {array: f"{array}_1"}
    begin = waiting.slurm.now
    put_first(waiting, f"{array}_1")
    waiting.slurm.release(held.job_id)
    for job in range(1, 7):
        waiting.slurm.cancel(job)
    for _ in range(3):
        waiting.slurm.wait(300)
        waiting.run()
    ledgers = [waiting.store.cluster(NAME)]
    (said,) = read_in_force(ledgers, begin, waiting.slurm.now + 1).orders
    assert said.endswith("used 1 processor-hours")


@pytest.mark.parametrize("label", ["3", "3+0", "3+1", "5"])
def test_all_components_of_a_heterogeneous_job_go_first_whichever_is_named(
    waiting: Service, label: str
) -> None:
    waiting.slurm.names = {3: "3+0", 5: "3+1"}
    usual = found(waiting)
    put_first(waiting, label, before_all=True)
    cycles(waiting, 1)
    assert order(waiting)[:2] == [3, 5]
    assert {row.label: row.organization for row in exceptions(waiting)} == {
        "3+0": "physics",
        "3+1": "biology",
    }
    for job in ("3", "3+1"):
        assert explain_job(waiting.store.cluster(NAME), waiting.slurm, job).exception is not None
    with pytest.raises(orders.OrderError, match=r"job 3\+0 goes first since"):
        put_first(waiting, label)
    undo(waiting, label)
    cycles(waiting, 1)
    assert found(waiting) == usual
    assert exceptions(waiting) == []


@pytest.mark.parametrize("waiting", ["site_factor"], indirect=True)
def test_a_heterogeneous_job_does_not_go_first_in_part(waiting: Service) -> None:
    waiting.slurm.names = {3: "3+0", 6: "3+1"}
    with pytest.raises(orders.OrderError, match=r"job 3\+1 counts for no organization"):
        put_first(waiting, 3)
    assert exceptions(waiting) == []


def test_what_somebody_sets_by_hand_is_left_alone_and_cannot_go_first(waiting: Service) -> None:
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"5": 77})
    with pytest.raises(orders.OrderError, match="set the site factor of job 5 by hand"):
        put_first(waiting, 5)
    waiting.slurm.fix_priority(4, 9)
    with pytest.raises(orders.OrderError, match="set the priority of job 4 by hand"):
        put_first(waiting, 4)
    put_first(waiting, 3, before_all=True)
    cycles(waiting, 1)
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"3": 77})
    cycles(waiting, 2)
    assert waiting.slurm.job(3).site_factor == 77
    assert waiting.slurm.job(5).site_factor == 77


def test_our_own_writes_are_nobodys_by_hand(waiting: Service) -> None:
    put_first(waiting, 5, before_all=True)
    cycles(waiting, 1)
    report = waiting.run()
    assert report.plan.foreign.by_hand == {}
    assert report.plan.first.jobs == 1
    facts = explain_job(waiting.store.cluster(NAME), waiting.slurm, "5")
    assert facts.by_hand == {}
    assert facts.exception is not None
    other = explain_job(waiting.store.cluster(NAME), waiting.slurm, "2")
    assert (other.exception, other.put_ahead) == (None, 1)


def test_an_exception_within_another_organization_concerns_nobody_else(waiting: Service) -> None:
    put_first(waiting, 5)
    cycles(waiting, 1)
    ahead = {
        job: explain_job(waiting.store.cluster(NAME), waiting.slurm, str(job)).put_ahead
        for job in (2, 3, 4, 6)
    }
    assert ahead == {2: 0, 3: 0, 4: 1, 6: 0}


def test_a_dry_run_writes_nothing_of_it(waiting: Service) -> None:
    put_first(waiting, 5, before_all=True)
    before = found(waiting)
    report = waiting.run(dry_run=True)
    assert [(push.channel, push.target) for push in report.plan.pushes] == [("site_factor", "5")]
    assert found(waiting) == before
    assert exceptions(waiting)[0].passed == {}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (99, "no job 99 is pending; see `squeue -j 99`"),
        (1, "job 1 is not pending: it has started"),
        (6, "job 6 counts for no organization: none claims account guest"),
    ],
)
@pytest.mark.parametrize("waiting", ["site_factor"], indirect=True)
def test_what_cannot_go_first_is_refused(waiting: Service, job: int, why: str) -> None:
    with pytest.raises(orders.OrderError, match=why):
        put_first(waiting, job)


@pytest.mark.parametrize("waiting", ["site_factor"], indirect=True)
def test_a_job_of_the_federation_goes_first_where_it_counts(
    waiting: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = waiting.slurm.job(5)
    queue = PendingQueue(elsewhere=[(job, "c2")])
    monkeypatch.setattr(waiting.slurm, "pending", lambda: queue)
    with pytest.raises(orders.OrderError, match=r"the federation's and counts at c2, .* there$"):
        put_first(waiting, 5)


@pytest.mark.parametrize("waiting", ["site_factor"], indirect=True)
def test_a_job_is_put_first_once(waiting: Service) -> None:
    put_first(waiting, 5)
    with pytest.raises(orders.OrderError, match=r"job 5 goes first since .* by ann: a deadline"):
        put_first(waiting, 5, before_all=True)
    undo(waiting, 5)
    with pytest.raises(orders.OrderError, match="job 5 does not go first"):
        undo(waiting, 5)


def test_a_daemon_that_dies_at_the_write_leaves_nothing_behind(waiting: Service) -> None:
    usual = found(waiting)
    put_first(waiting, 5, before_all=True)
    waiting.slurm.die("after_write")
    with pytest.raises(BaseException):  # noqa: B017, PT011
        waiting.run()
    undo(waiting, 5)
    waiting.restart()
    cycles(waiting, 2)
    assert found(waiting) == usual
