"""Everything back as it was found, on every channel, and nobody's changes undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from shapleyprio.daemon.pushing.push import Stamp
from shapleyprio.daemon.pushing.rollback import UNSEEN_REASON, plan_rollback
from shapleyprio.lab.simulated import SimulatedSlurm
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import SlurmUnavailableError
from shapleyprio.store import Store
from tests.daemon.consortium import (
    BIOLOGY,
    FIRST,
    NAME,
    PHYSICS,
    Cluster,
    Crash,
    Service,
    config,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapleyprio.slurm.port import StartedJob

JOB_CHANNELS = ["site_factor", "nice"]


@pytest.fixture(params=JOB_CHANNELS)
def waiting(request: pytest.FixtureRequest, slurm: Cluster, store: Store) -> Service:
    """Jobs of everybody wait, and one cycle has run."""
    slurm.fill("guest")
    for number, account in enumerate(("physics", "biology", "guest")):
        slurm.submit(account, nice=number, processing_time=9)
    service = Service(slurm, store, config(push={"channel": request.param}))
    service.run()
    return service


def values(service: Service) -> dict[int, tuple[int, int | None]]:
    return {job.job_id: (job.nice, job.site_factor) for job in service.slurm.jobs()}


def test_everything_is_as_it_was(waiting: Service) -> None:
    outcome = waiting.roll_back()
    assert values(waiting) == {2: (0, 0), 3: (1, 0), 4: (2, 0)}
    assert (outcome.applied, outcome.refused, outcome.unconfirmed) == (2, 0, 0)
    channel = waiting.config.push.channel
    managed = waiting.managed_value(channel, 2)
    assert managed is not None
    # remembered, for a task that may have left its array
    assert managed.written[-1] == managed.original


def test_twice_is_once(waiting: Service) -> None:
    waiting.roll_back()
    waiting.slurm.writes.clear()
    assert waiting.roll_back().applied == 0
    assert waiting.slurm.writes == []


def test_without_any_cycle_there_is_nothing_to_put_back(service: Service) -> None:
    service.slurm.fill("guest")
    service.slurm.submit("physics", nice=9, processing_time=9)
    service.roll_back()
    assert service.slurm.writes == []


def test_the_plan_alone_changes_nothing(waiting: Service) -> None:
    before = values(waiting)
    stamp = Stamp(cycle=0, at=waiting.slurm.now)
    store = waiting.store.cluster(NAME)
    plan = plan_rollback(store, waiting.slurm, CHANNELS.values(), stamp)
    assert {push.target for push in plan} == {"2", "3"}
    assert values(waiting) == before


def test_what_somebody_else_has_written_since_stays(waiting: Service) -> None:
    SimulatedSlurm.write(waiting.slurm, waiting.config.push.channel, {"2": 77})
    waiting.roll_back()
    assert 77 in values(waiting)[2]


def test_the_next_cycle_steers_again(waiting: Service) -> None:
    before = values(waiting)
    waiting.roll_back()
    waiting.run()
    assert values(waiting) == before


def test_both_channels_are_put_back_after_a_change_of_channel(slurm: Cluster, store: Store) -> None:
    service = Service(slurm, store, config(push={"channel": "nice"}))
    slurm.fill("guest")
    job = slurm.submit("physics", nice=7, processing_time=9)
    service.run()
    service.restart(config(push={"channel": "site_factor"}))
    service.run()
    assert slurm.job(job).site_factor == FIRST
    service.roll_back()
    assert (slurm.job(job).nice, slurm.job(job).site_factor) == (7, 0)


def test_a_rollback_that_breaks_off_goes_on_when_it_is_run_again(waiting: Service) -> None:
    waiting.slurm.stop_write_after(1)
    with pytest.raises(SlurmUnavailableError):
        waiting.roll_back()
    waiting.roll_back()
    assert values(waiting) == {2: (0, 0), 3: (1, 0), 4: (2, 0)}


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
def test_a_crash_in_the_middle_of_a_rollback(waiting: Service, moment: str) -> None:
    waiting.slurm.die(moment)
    with pytest.raises(Crash):
        waiting.roll_back()
    waiting.roll_back()
    assert values(waiting) == {2: (0, 0), 3: (1, 0), 4: (2, 0)}


def test_a_running_job_is_put_back_too(waiting: Service) -> None:
    slurm = waiting.slurm
    slurm.submit("physics", nice=5, processing_time=1000, partition="pb")
    slurm.cancel(1)
    waiting.run()
    slurm.wait(0)
    slurm.wait(5)
    waiting.run()
    waiting.roll_back()
    for job_id in slurm._engine._jobs:
        if job_id not in slurm._engine.waiting.jobs:
            slurm.requeue(job_id)
    assert {(job.nice, job.site_factor or 0) for job in slurm.jobs()} <= {
        (0, 0),
        (1, 0),
        (2, 0),
        (5, 0),
    }


@pytest.mark.parametrize("away", [None, "slurmdbd"])
def test_jobs_that_have_ended_are_left_alone(
    waiting: Service, away: Literal["slurmdbd"] | None
) -> None:
    slurm = waiting.slurm
    slurm.cancel(2)
    slurm.wait(1)
    slurm.writes.clear()
    if away is not None:
        slurm.take_down(away)
    outcome = waiting.roll_back()
    written = {target for _, made in slurm.writes for target in made}
    assert outcome.applied == 1
    if away is None:
        assert (written, outcome.refused) == ({"3"}, 0)
    else:  # then Slurm itself is asked
        assert (written, outcome.refused + outcome.unconfirmed) == ({"2", "3"}, 1)


def test_a_held_job_is_put_back_too(waiting: Service) -> None:
    waiting.slurm.hold(2)
    waiting.roll_back()
    waiting.slurm.release(2)
    assert values(waiting)[2] == (0, 0)


def test_a_job_whose_line_cannot_be_read_is_put_back_unseen(waiting: Service) -> None:
    waiting.slurm.unreadable.add(2)
    outcome = waiting.roll_back()
    assert (outcome.applied, outcome.unconfirmed) == (2, 0)
    assert values(waiting) == {2: (0, 0), 3: (1, 0), 4: (2, 0)}
    *_, push = waiting.pushes(2)
    assert push.reason == UNSEEN_REASON


@pytest.mark.parametrize("channel", JOB_CHANNELS)
def test_a_task_that_has_just_started_is_put_back_before_accounting_knows_it(
    store: Store, channel: Literal["site_factor", "nice"]
) -> None:
    slurm = Cluster(accounting_delay=90)
    blocker = slurm.fill("guest")
    array = slurm.submit("physics", processors=4, processing_time=10**6, array=4, nice=7)
    slurm.wait(100)
    service = Service(slurm, store, config(push={"channel": channel}))
    service.run()
    slurm.cancel(blocker)
    slurm.wait(1)
    tasks = [job for job in slurm._engine.started() if job.array_id == array]
    assert array in {job.job_id for job in slurm.jobs()}, "the last one waits"
    assert len(tasks) == 3
    assert all(getattr(job, channel) != {"site_factor": 0, "nice": 7}[channel] for job in tasks)
    service.roll_back()
    assert [(job.site_factor, job.nice) for job in tasks] == [(0, 7)] * 3


def with_an_array_that_begins(store: Store, channel: str) -> tuple[Cluster, Service, int]:
    """Three of four tasks run, which had waited as one in a cycle; with the array's number."""
    slurm = Cluster()
    blocker = slurm.fill("guest")
    array = slurm.submit("physics", processors=4, processing_time=10**6, array=4, nice=7)
    service = Service(slurm, store, config(push={"channel": channel}))
    service.run()
    slurm.cancel(blocker)
    slurm.wait(1)
    return slurm, service, array


@pytest.mark.parametrize("channel", JOB_CHANNELS)
@pytest.mark.parametrize("refuses", [False, True])
def test_running_tasks_are_put_back_though_the_rest_of_their_array_was_before(
    store: Store, channel: str, *, refuses: bool
) -> None:
    slurm, service, array = with_an_array_that_begins(store, channel)
    service.restart(config({**PHYSICS, "accounts": []}, BIOLOGY, push={"channel": channel}))
    service.run()
    slurm.wait(10)
    assert {(job.nice, job.site_factor) for job in slurm.jobs()} == {(7, 0)}
    if refuses:
        slurm.stop_write_after(0)
        with pytest.raises(SlurmUnavailableError):
            service.roll_back()
    service.roll_back()
    tasks = [job for job in slurm._engine.started() if job.array_id == array]
    assert [(job.site_factor, job.nice) for job in tasks] == [(0, 7)] * 3
    slurm.writes.clear()
    service.roll_back()
    assert slurm.writes == []


def test_a_running_task_with_the_number_of_its_array_is_put_back_alone(
    slurm: Cluster, store: Store
) -> None:
    blocker = slurm.fill("guest")
    array = slurm.submit("physics", processors=6, processing_time=10**6, array=2)
    service = Service(slurm, store)
    service.run()
    slurm.cancel(blocker)
    slurm.wait(10)
    service.run()
    other = next(job.job_id for job in slurm.started() if job.job_id != array)
    slurm.requeue(other)
    slurm.submit("guest", processors=6, processing_time=10**6)
    slurm.wait(10)
    service.run()
    SimulatedSlurm.write(slurm, "site_factor", {slurm.job(other).target: 55})
    service.run()
    slurm.writes.clear()
    service.roll_back()
    assert slurm.writes == [("site_factor", {f"{array}_1": 0})]
    assert slurm.job(other).site_factor == 55


@pytest.mark.parametrize("channel", JOB_CHANNELS)
@pytest.mark.parametrize("kind", ["running", "held"])
@pytest.mark.parametrize("ends", ["before_write", "after_write", "unavailable"])
def test_a_rollback_that_ended_before_it_wrote_goes_on_at_jobs_that_show_nothing(
    store: Store, channel: str, kind: str, ends: str
) -> None:
    slurm = Cluster()
    blocker = slurm.fill("guest")
    job_id = slurm.submit("physics", processing_time=10**6, nice=7)
    service = Service(slurm, store, config(push={"channel": channel}))
    service.run()
    if kind == "running":
        slurm.cancel(blocker)
        slurm.wait(1)
    else:
        slurm.hold(job_id)
    if ends == "unavailable":
        slurm.stop_write_after(0)
    else:
        slurm.die(ends)
    with pytest.raises((Crash, SlurmUnavailableError)):
        service.roll_back()
    service.roll_back()
    (job,) = slurm._engine.named(str(job_id))[0]
    assert (job.site_factor, job.nice) == (0, 7)
    slurm.writes.clear()
    service.roll_back()
    assert slurm.writes == []


@pytest.mark.parametrize("channel", JOB_CHANNELS)
@pytest.mark.parametrize("afterwards", ["waits", "runs"])
def test_a_task_that_neither_waits_nor_runs_for_a_moment_is_found_by_the_next_look(
    store: Store, monkeypatch: pytest.MonkeyPatch, channel: str, afterwards: str
) -> None:
    """It ran when the queue was read, and waits when the running jobs are."""
    slurm, service, array = with_an_array_that_begins(store, channel)
    task = next(
        job.job_id
        for job in slurm._engine.started()
        if job.array_id == array and job.job_id != array
    )
    started = slurm.started

    def requeued_before() -> Sequence[StartedJob]:
        monkeypatch.setattr(slurm, "started", started)
        slurm.requeue(task)
        return started()

    def free() -> None:
        for job in slurm._engine.started():
            slurm.cancel(job.job_id)
        slurm.wait(300)

    monkeypatch.setattr(slurm, "started", requeued_before)
    if afterwards == "runs":
        slurm.after_write = free
    service.roll_back()
    job = slurm._engine._jobs[task]
    assert (job.start is not None) == (afterwards == "runs")
    assert (job.site_factor, job.nice) == (0, 7)


@pytest.mark.parametrize("channel", JOB_CHANNELS)
def test_the_number_of_an_array_stands_for_no_task_that_waits(store: Store, channel: str) -> None:
    slurm = Cluster()
    slurm.fill("guest")
    array = slurm.submit("physics", processing_time=10**6, array=4, nice=7)
    service = Service(slurm, store, config(push={"channel": channel}))
    service.run()
    SimulatedSlurm.write(slurm, channel, {f"{array}_1": 55})
    slurm._engine.cancel(slurm._engine._jobs[array])
    slurm.take_down("slurmdbd")
    slurm.writes.clear()
    service.roll_back()
    assert {target for _, made in slurm.writes for target in made} == {f"{array}_[0,2-3]"}
    (task,) = slurm.jobs()
    assert 55 in {task.site_factor, task.nice}


@pytest.mark.parametrize("channel", JOB_CHANNELS)
def test_the_number_of_a_heterogeneous_job_stands_for_its_first_component_alone(
    store: Store, channel: str
) -> None:
    slurm = Cluster()
    slurm.fill("guest")
    whole, other = (slurm.submit("physics", processing_time=9) for _ in range(2))
    slurm.names = {whole: f"{whole}+0", other: f"{whole}+1"}
    service = Service(slurm, store, config(push={"channel": channel}))
    service.run()
    slurm.cancel(whole)
    slurm.take_down("slurmdbd")
    slurm.writes.clear()
    service.roll_back()
    assert {target for _, made in slurm.writes for target in made} == set(slurm.names.values())


def test_what_slurm_takes_and_does_not_do_is_not_put_back(waiting: Service) -> None:
    waiting.slurm.deaf = True
    counts = waiting.roll_back()
    assert (counts.applied, counts.unconfirmed, counts.refused) == (0, 0, 2)
    waiting.slurm.deaf = False
    assert waiting.roll_back().applied == 2
