"""What is written into Slurm, what it is added to, and what becomes of it if something dies."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.lab.simulated import SimulatedSlurm
from shapleyprio.slurm.port import PendingJob, SlurmRefusedError, SlurmUnavailableError
from shapleyprio.store import ManagedValue, PushState, Store
from tests.daemon.consortium import (
    BIOLOGY,
    FIRST,
    LAST,
    NOW,
    PHYSICS,
    Cluster,
    Crash,
    Service,
    config,
)
from tests.examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.store.servers import Databases

NICE = config(push={"channel": "nice"})
QOS = config(push={"channel": "qos"})
MOMENTS = ["before_write", "after_write"]


# -- only differences


def test_every_waiting_job_gets_the_points_of_its_organization(service: Service) -> None:
    slurm = service.slurm
    slurm.fill("biology")
    jobs = {account: slurm.submit(account, processing_time=9) for account in ("physics", "biology")}
    slurm.wait(10)
    report = service.run()
    assert slurm.job(jobs["physics"]).site_factor == FIRST
    assert slurm.job(jobs["biology"]).site_factor == LAST
    assert report.pushed.applied == 2


def test_what_stands_already_is_not_written_again(service: Service) -> None:
    service.slurm.fill("guest")
    for account in ("physics", "biology"):
        service.slurm.submit(account, processing_time=9)
    service.run()
    service.slurm.wait(1000)
    report = service.run()
    assert service.slurm.writes == []
    assert report.plan.pushes == []


def test_a_new_job_alone_is_written(service: Service) -> None:
    service.slurm.fill("guest")
    service.slurm.submit("physics", processing_time=9)
    service.run()
    new = service.slurm.submit("physics", processing_time=9)
    service.run()
    assert service.slurm.writes == [("site_factor", {str(new): FIRST})]


def test_a_changed_order_is_written(service: Service) -> None:
    slurm = service.slurm
    filler = slurm.fill("biology")
    job = slurm.submit("physics", processing_time=9)
    slurm.wait(100)
    service.run()
    assert slurm.job(job).site_factor == FIRST
    slurm.cancel(filler)
    slurm.submit("physics", processors=12, processing_time=10**6)
    slurm.cancel(job)
    slurm.wait(0)
    job = slurm.submit("physics", processing_time=9)
    slurm.wait(10_000)
    service.run()
    assert slurm.job(job).site_factor == LAST


def test_a_site_factor_that_slurm_does_not_show_is_passed_over(service: Service) -> None:
    service.slurm.fill("guest")
    job = service.slurm.submit("physics", processing_time=9)
    service.slurm.hold(job)
    assert service.run().plan.pushes == []
    service.slurm.release(job)
    service.run()
    assert service.slurm.job(job).site_factor == FIRST


# -- nice belongs to the users


@pytest.fixture
def nicely(slurm: Cluster, store: Store) -> Service:
    slurm.fill("guest")
    return Service(slurm, store, NICE)


def test_ours_is_taken_off_the_nice_that_was_asked_for(nicely: Service) -> None:
    job = nicely.slurm.submit("physics", nice=70, processing_time=9)
    nicely.run()
    assert nicely.slurm.job(job).nice == 70 - FIRST
    assert nicely.managed_value("nice", job) == ManagedValue(70, (70 - FIRST,))
    nicely.run()
    assert nicely.slurm.job(job).nice == 70 - FIRST


def test_what_the_user_changes_later_is_the_new_asked(nicely: Service) -> None:
    job = nicely.slurm.submit("physics", nice=70, processing_time=9)
    nicely.run()
    nicely.slurm.set_nice(job, 30)
    nicely.run()
    assert nicely.slurm.job(job).nice == 30 - FIRST
    assert nicely.managed_value("nice", job) == ManagedValue(30, (70 - FIRST, 30 - FIRST))
    nicely.roll_back()
    assert nicely.slurm.job(job).nice == 30


def test_a_user_who_asks_again_for_the_same_gets_ours_again(nicely: Service) -> None:
    job = nicely.slurm.submit("physics", nice=70, processing_time=9)
    nicely.run()
    nicely.slurm.set_nice(job, 70)
    nicely.run()
    assert nicely.slurm.job(job).nice == 70 - FIRST


@pytest.mark.parametrize("user_top", [False, True])
def test_less_than_nothing_counts_as_asked_for_unless_users_can_bring_it_about(
    nicely: Service, user_top: bool
) -> None:
    slurm = nicely.slurm
    slurm.layout_changes["settings"] = replace(slurm.layout().settings, user_top=user_top)
    job, of_guest = (
        slurm.submit("physics", processing_time=9),
        slurm.submit("guest", processing_time=9),
    )
    nicely.run()
    least = -FIRST
    for _ in range(4):
        SimulatedSlurm.write(slurm, "nice", {str(job): least - 5, str(of_guest): -5})
        nicely.run()
        least = slurm.job(job).nice
    assert least == (-FIRST if user_top else -5 * FIRST - 20)
    SimulatedSlurm.write(slurm, "nice", {str(job): least - 5})
    nicely.roll_back()
    assert slurm.job(job).nice == (0 if user_top else least - 5)
    assert slurm.job(of_guest).nice == -5


def test_nobody_is_pushed_below_what_was_asked_for(nicely: Service) -> None:
    for account in ("physics", "biology", "guest"):
        nicely.slurm.submit(account, nice=5, processing_time=9)
    nicely.run()
    assert all(job.nice <= 5 for job in nicely.slurm.jobs())


# -- QOS


def test_one_write_for_each_organization_however_many_jobs_wait(store: Store) -> None:
    slurm = Cluster(qos={"normal": 0, "phys": 7, "bio": 0, "other": 3})
    service = Service(slurm, store, QOS)
    slurm.fill("guest")
    for _ in range(5):
        slurm.submit("physics", processing_time=9, qos="phys")
    report = service.run()
    assert slurm.qos_priorities() == {"normal": 0, "phys": FIRST, "bio": LAST, "other": 3}
    assert report.pushed.applied == 2
    service.run()
    assert slurm.writes == []
    service.roll_back()
    assert slurm.qos_priorities() == {"normal": 0, "phys": 7, "bio": 0, "other": 3}


def test_a_qos_that_does_not_exist_is_left_out(store: Store) -> None:
    slurm = Cluster(qos={"normal": 0, "bio": 0})
    service = Service(slurm, store, QOS)
    service.run()
    assert slurm.qos_priorities() == {"normal": 0, "bio": LAST}


def test_a_qos_that_no_organization_names_any_more_is_put_back(store: Store) -> None:
    slurm = Cluster(qos={"normal": 0, "phys": 7, "bio": 0, "other": 3})
    service = Service(slurm, store, QOS)
    service.run()
    service.restart(config({**PHYSICS, "qos": "other"}, BIOLOGY, push={"channel": "qos"}))
    service.run()
    assert slurm.qos_priorities() == {"normal": 0, "phys": 7, "bio": LAST, "other": FIRST}
    slurm.write("qos", {"phys": 5})
    service.run()
    assert slurm.qos_priorities()["phys"] == 5, "what was put back is not ours any more"
    service.roll_back()
    assert slurm.qos_priorities() == {"normal": 0, "phys": 5, "bio": 0, "other": 3}


# -- jobs of nobody


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
def test_a_job_that_is_nobodys_any_more_is_put_back(
    slurm: Cluster, store: Store, channel: str
) -> None:
    service = Service(slurm, store, config(push={"channel": channel}))
    slurm.fill("guest")
    job = slurm.submit("physics", nice=11, processing_time=9)
    before = slurm.job(job)
    service.run()
    assert slurm.job(job) != before
    without = [{**PHYSICS, "accounts": []}, BIOLOGY]
    service.restart(config(*without, push={"channel": channel}))
    service.run()
    assert slurm.job(job) == before
    assert service.pushes(job)[-1].reason.startswith("put back")
    service.run()
    assert slurm.writes == []


def test_a_guests_own_nice_is_not_touched(nicely: Service) -> None:
    job = nicely.slurm.submit("guest", nice=11, processing_time=9)
    assert nicely.run().plan.pushes == []
    assert nicely.slurm.job(job).nice == 11


# -- arrays


def test_a_task_that_leaves_its_array_inherits_what_was_asked_for(nicely: Service) -> None:
    slurm = nicely.slurm
    array = slurm.submit("physics", nice=40, array=3, processing_time=9)
    nicely.run()
    assert slurm.writes == [("nice", {f"{array}_[0-2]": 40 - FIRST})]
    slurm.hold(array)
    SimulatedSlurm.write(slurm, "site_factor", {f"{array}_1": 0})
    slurm.release(array)
    assert len(slurm.jobs()) == 2
    nicely.run()
    assert slurm.writes == []
    nicely.roll_back()
    assert {job.label: job.nice for job in slurm.jobs()} == {
        f"{array}_[0,2]": 40,
        f"{array}_1": 40,
    }


def test_a_task_that_left_its_array_before_its_user_changed_the_rest_gets_ours_once(
    nicely: Service,
) -> None:
    slurm = nicely.slurm
    array = slurm.submit("physics", array=3, processors=9, processing_time=1000)
    slurm.submit("biology", processors=9, processing_time=1000)
    nicely.run()
    slurm.cancel(1)
    slurm.wait(10)
    nicely.run()
    for nice in (100, 0, 100):
        SimulatedSlurm.write(slurm, "nice", {f"{array}_[1-2]": nice})
        nicely.run()
        assert slurm.job(array).nice == nice - nicely.points()["physics"]
    (task,) = [job.job_id for job in slurm.started()]
    slurm.requeue(task)
    slurm.wait(10)
    assert nicely.run().plan.foreign.by_hand == {}
    assert slurm.job(task).nice == 100 - nicely.points()["physics"]


def test_a_requeued_task_still_has_what_its_user_asked_for(nicely: Service) -> None:
    slurm = nicely.slurm
    array = slurm.submit("physics", nice=40, array=2, processing_time=1000, partition="pb")
    nicely.run()
    slurm.cancel(1)
    slurm.wait(0)
    slurm.wait(10)
    assert slurm.jobs() == []
    slurm.requeue(array + 1)
    nicely.run()
    assert [job.nice for job in slurm.jobs()] == [40 - nicely.points()["physics"]]


# -- refusals and reading back


def test_what_slurm_refuses_is_on_record(service: Service) -> None:
    service.slurm.fill("guest")
    gone, stays = (service.slurm.submit("physics", processing_time=9) for _ in range(2))
    service.slurm.before_write = lambda: service.slurm.cancel(gone)
    report = service.run()
    assert (report.pushed.applied, report.pushed.refused) == (1, 1)
    (push,) = service.pushes(gone)
    assert (push.state, push.note) == (PushState.REFUSED, "Invalid job id specified")
    assert service.pushes(stays)[0].state is PushState.APPLIED


def test_a_missing_privilege_fails_the_cycle_and_is_made_good(service: Service) -> None:
    service.slurm.fill("guest")
    job = service.slurm.submit("physics", processing_time=9)
    service.slurm.missing_privileges = {"site_factor": "AdminLevel"}
    with pytest.raises(SlurmRefusedError, match="AdminLevel"):
        service.run()
    service.slurm.missing_privileges = {}
    service.run()
    assert service.slurm.job(job).site_factor == FIRST
    assert [push.state for push in service.pushes(job)] == [
        PushState.UNCONFIRMED,
        PushState.APPLIED,
    ]


def test_a_write_that_does_not_read_back_is_tried_again(service: Service) -> None:
    service.slurm.fill("guest")
    job = service.slurm.submit("physics", processing_time=9)
    service.slurm.deaf = True
    assert service.run().pushed.unconfirmed == 1
    (push,) = service.pushes(job)
    assert (push.state, push.note) == (PushState.UNCONFIRMED, "reads 0")
    service.slurm.deaf = False
    assert service.run().pushed.applied == 1


def test_a_job_that_starts_meanwhile_is_unconfirmed(service: Service) -> None:
    filler = service.slurm.fill("guest")
    job = service.slurm.submit("physics", processing_time=9)

    def start() -> None:
        service.slurm.cancel(filler)
        service.slurm.wait(0)

    service.slurm.after_write = start
    service.run()
    (push,) = service.pushes(job)
    assert (push.state, push.note) == (PushState.UNCONFIRMED, "no longer pending")


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
def test_reading_back_does_not_read_the_whole_queue(
    slurm: Cluster, store: Store, channel: str
) -> None:
    service = Service(slurm, store, config(push={"channel": channel}))
    slurm.fill("guest")
    jobs = [slurm.submit("physics", processing_time=9) for _ in range(5)]
    service.run()
    slurm.queues_read, slurm.values_read = 0, []
    new = slurm.submit("physics", processing_time=9)
    assert service.run().pushed.applied == 1
    assert (slurm.queues_read, slurm.values_read) == (1, [{new}])
    slurm.die("after_write")
    slurm.cancel(jobs[0])
    newer = slurm.submit("physics", processing_time=9)
    with pytest.raises(Crash):
        service.run()
    slurm.queues_read, slurm.values_read = 0, []
    service.restart()
    service.run()
    assert service.pushes(newer)[0].state is PushState.APPLIED
    assert (slurm.queues_read, slurm.values_read) == (1, [{newer}])


# -- death between plan and write


@pytest.mark.parametrize(
    ("moment", "state", "note"),
    [
        ("before_write", PushState.UNCONFIRMED, "reads 50"),
        ("after_write", PushState.APPLIED, ""),
    ],
)
def test_what_a_crash_left_open_is_found_out(
    nicely: Service, moment: str, state: PushState, note: str
) -> None:
    job = nicely.slurm.submit("physics", nice=50, processing_time=9)
    nicely.slurm.die(moment)
    with pytest.raises(Crash):
        nicely.run()
    assert nicely.pushes(job)[0].state is PushState.PLANNED
    nicely.restart()
    nicely.run()
    assert (nicely.pushes(job)[0].state, nicely.pushes(job)[0].note) == (state, note)
    assert nicely.slurm.job(job).nice == 50 - FIRST
    nicely.roll_back()
    assert nicely.slurm.job(job).nice == 50


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_user_may_change_the_nice_while_we_are_dead(nicely: Service, moment: str) -> None:
    job = nicely.slurm.submit("physics", nice=50, processing_time=9)
    nicely.slurm.die(moment)
    with pytest.raises(Crash):
        nicely.run()
    nicely.slurm.set_nice(job, 60)
    nicely.restart()
    nicely.run()
    assert nicely.slurm.job(job).nice == 60 - FIRST


def test_a_task_may_leave_its_array_before_a_write_that_does_not_arrive(nicely: Service) -> None:
    slurm = nicely.slurm
    array = slurm.submit("physics", nice=40, array=2, processors=9, processing_time=1000)
    nicely.run()
    slurm.cancel(1)
    slurm.wait(0)
    slurm.wait(30)
    slurm.requeue(array + 1)
    slurm.stop_write_after(0)
    with pytest.raises(SlurmUnavailableError):
        nicely.run()
    nicely.roll_back()
    assert {job.label: job.nice for job in slurm.jobs()} == {f"{array}_0": 40, f"{array}_[1]": 40}


def test_a_controller_that_dies_in_the_middle_of_a_write(nicely: Service) -> None:
    jobs = [nicely.slurm.submit("physics", nice=n, processing_time=9) for n in (1, 2, 3)]
    nicely.slurm.stop_write_after(2)
    with pytest.raises(SlurmUnavailableError):
        nicely.run()
    assert [nicely.slurm.job(job).nice for job in jobs] == [1 - FIRST, 2 - FIRST, 3]
    nicely.run()
    assert [nicely.pushes(job)[0].state for job in jobs] == [
        PushState.APPLIED,
        PushState.APPLIED,
        PushState.UNCONFIRMED,
    ]
    assert [nicely.slurm.job(job).nice for job in jobs] == [n - FIRST for n in (1, 2, 3)]


# -- marks outlive what may still come back


def test_pruning_forgets_jobs_that_are_gone(nicely: Service) -> None:
    job = nicely.slurm.submit("physics", nice=50, processing_time=9)
    nicely.run()
    nicely.slurm.cancel(job)
    for _ in range(2):
        nicely.slurm.wait(3600)
        nicely.run()
        nicely.cycle.prune()
    assert nicely.managed_value("nice", job) is None


def test_a_job_that_started_since_the_last_cycle_may_be_requeued(nicely: Service) -> None:
    slurm = nicely.slurm
    job = slurm.submit("physics", nice=50, processing_time=1000)
    nicely.run()
    slurm.cancel(1)
    slurm.wait(0)
    slurm.wait(5)
    assert slurm.jobs() == []
    nicely.cycle.prune()
    slurm.requeue(job)
    nicely.run()
    assert slurm.job(job).nice == 50 - nicely.points()["physics"]


def test_a_task_may_be_requeued_when_its_array_is_gone(nicely: Service) -> None:
    slurm = nicely.slurm
    array = slurm.submit("physics", nice=50, array=2, processing_time=1000)
    nicely.run()
    slurm.cancel(1)
    slurm.wait(0)
    slurm.wait(5)
    nicely.run()
    (last,), _ = slurm._engine.named(f"{array}_1")
    assert last.job_id == array
    slurm._engine.cancel(last)
    for _ in range(2):
        slurm.wait(30)
        nicely.run()
        nicely.cycle.prune()
    slurm.requeue(array + 1)
    nicely.run()
    assert [job.nice for job in slurm.jobs()] == [50 - nicely.points()["physics"]]


def test_a_suspended_job_may_be_requeued(nicely: Service) -> None:
    slurm = nicely.slurm
    job = slurm.submit("physics", nice=50, processing_time=1000)
    nicely.run()
    slurm.cancel(1)
    slurm.wait(0)
    slurm.wait(5)
    slurm.suspend(job)
    for _ in range(2):
        slurm.wait(30)
        nicely.run()
        nicely.cycle.prune()
    slurm.resume(job)
    slurm.requeue(job)
    nicely.run()
    assert slurm.job(job).nice == 50 - nicely.points()["physics"]


# -- whatever happens

_numbers = count()
_shared: list[Store] = []


@pytest.fixture(scope="module", autouse=True)
def _one_store_for_all(databases: Databases, database: str) -> Iterator[None]:
    with databases.store(database) as store:
        _shared[:] = [store]
        yield


Task = tuple[str, str]
"""A job's base id, and the index of its task, empty for a plain job."""


class Life(RuleBasedStateMachine):
    """Users and daemons do what they like; the model knows what each user asked for last."""

    @initialize(channel=st.sampled_from(["nice", "site_factor"]))
    def begin(self, channel: str) -> None:
        self.channel = channel
        name = f"c{next(_numbers)}"
        self.slurm = Cluster(name)
        changed = config(push={"channel": channel})
        self.service = Service(self.slurm, _shared[0], changed, name)
        self.asked: dict[Task, int] = {}
        self.unseen: set[Task] = set()

    @rule(
        account=st.sampled_from(["physics", "biology", "guest"]),
        nice=st.integers(0, 60),
        array=st.sampled_from([0, 0, 2, 3]),
        processors=st.integers(1, 12),
        seconds=st.integers(1, 400),
    )
    def submit(self, account: str, nice: int, array: int, processors: int, seconds: int) -> None:
        job_id = self.slurm.submit(
            account, processors=processors, processing_time=seconds, nice=nice, array=array
        )
        asked = nice if self.channel == "nice" else 0
        for task in [str(n) for n in range(array)] or [""]:
            self.asked[str(job_id), task] = asked

    @precondition(lambda self: self.readable())
    @rule(data=st.data(), value=st.integers(0, 60))
    def ask_for_something_else(self, data: st.DataObject, value: int) -> None:
        job = data.draw(st.sampled_from(self.readable()))
        SimulatedSlurm.write(self.slurm, self.channel, {job.target: value})
        for task in tasks_of(job):
            self.asked[task] = value
            self.unseen.add(task)

    @precondition(lambda self: self.slurm.jobs())
    @rule(data=st.data(), what=st.sampled_from(["hold", "release", "cancel"]))
    def hold_release_or_cancel(self, data: st.DataObject, what: str) -> None:
        job = data.draw(st.sampled_from(self.slurm.jobs()))
        if job.reason == "BeginTime":
            return
        getattr(self.slurm, what)(job.job_id)

    @precondition(lambda self: self.running())
    @rule(data=st.data(), what=st.sampled_from(["requeue", "cancel"]))
    def requeue_or_cancel(self, data: st.DataObject, what: str) -> None:
        getattr(self.slurm, what)(data.draw(st.sampled_from(self.running())))

    @rule(seconds=st.integers(0, 300))
    def wait(self, seconds: int) -> None:
        self.slurm.wait(0)
        self.slurm.wait(seconds)

    @rule(moment=st.sampled_from(MOMENTS))
    def die(self, moment: str) -> None:
        self.slurm.die(moment)
        try:
            self.service.run()
        except Crash:
            self.service.restart()
        setattr(self.slurm, moment, None)

    @rule(written=st.integers(0, 3))
    def lose_the_controller_while_writing(self, written: int) -> None:
        self.slurm.stop_write_after(written)
        try:
            self.service.run()
        except SlurmUnavailableError:
            return
        self.slurm.stop_write_after(10**9)

    @rule()
    def prune(self) -> None:
        self.service.cycle.prune()

    @rule()
    def run_undisturbed(self) -> None:
        self.service.run()
        points = self.service.points()
        for job in self.readable():
            asked = self.asked_of(job)
            if job.account == "guest":
                assert self.value(job) == asked
            elif self.channel == "nice":
                assert self.value(job) == asked - points[job.account]
                assert self.value(job) <= asked
            else:  # what somebody has set at a job stays
                assert self.value(job) == (asked or points[job.account])
            self.unseen.difference_update(tasks_of(job))

    @rule()
    def roll_back(self) -> None:
        readable = self.readable()
        self.service.roll_back()
        seen = {task for job in readable for task in tasks_of(job)}
        for job in self.readable():
            if seen.issuperset(tasks_of(job)):
                assert self.value(job) == self.asked_of(job)
        self.take_over_what_was_changed_unseen(seen)

    def take_over_what_was_changed_unseen(self, seen: set[Task]) -> None:
        """A rollback cannot see what was lately asked for at running and held jobs."""
        for job in self.slurm._engine._jobs.values():
            base = str(job.array_id or job.job_id)
            for task in [(base, str(n)) for n in job.tasks] or [(base, "")]:
                if task in self.unseen - seen:
                    nice = self.channel == "nice"
                    self.asked[task] = job.nice if nice else job.site_factor
        self.unseen.clear()

    def readable(self) -> list[PendingJob]:
        return [job for job in self.slurm.jobs() if self.value(job) is not None]

    def running(self) -> list[int]:
        return sorted(
            {
                record.job_id
                for record in SimulatedSlurm.records(self.slurm, NOW, self.slurm.now)
                if isinstance(record, JobRecord) and record.state == "RUNNING"
            }
        )

    def value(self, job: PendingJob) -> Any:
        return job.nice if self.channel == "nice" else job.site_factor

    def asked_of(self, job: PendingJob) -> int:
        (asked,) = {self.asked[task] for task in tasks_of(job)}
        return asked


def tasks_of(job: PendingJob) -> list[Task]:
    """The tasks that a line of the queue stands for."""
    base, _, tasks = job.label.partition("_")
    found: list[Task] = []
    for part in tasks.strip("[]").split(","):
        first, _, last = part.partition("-")
        if not first:
            return [(base, "")]
        found += [(base, str(n)) for n in range(int(first), int(last or first) + 1)]
    return found


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=examples(60),
    stateful_step_count=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
