"""Priorities that somebody sets by hand are recognized, left alone, counted and explained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.answering.explain import explain_job
from shapleyprio.lab.simulated import SimulatedSlurm
from shapleyprio.store import ManagedValue
from tests.daemon.consortium import FIRST, LAST, NAME, QUIET, Cluster, Service, config
from tests.daemon.pushing.test_going_first import put_first
from tests.daemon.pushing.test_pausing import pause, resume

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shapleyprio.daemon.pushing.by_hand import Kind
    from shapleyprio.store import CycleRow, Store

CHANNELS = ["site_factor", "nice", "qos", "association"]
HIGH = 9_000_000


@pytest.fixture
def waiting(request: pytest.FixtureRequest, store: Store) -> Service:
    """Two jobs of physics and one of biology wait, and one cycle has run, by the channel named."""
    channel = getattr(request, "param", "site_factor")
    slurm = Cluster(qos={"normal": 0, "phys": 0, "bio": 0})
    slurm.fill("guest")
    for account in ("physics", "physics", "biology"):
        slurm.submit(account, processing_time=9)
    service = Service(slurm, store, config(push={"channel": channel}))
    service.run()
    slurm.wait(10)
    return service


def last(service: Service) -> CycleRow:
    with service.store.cluster(NAME).reading() as view:
        row = view.history.last_cycle()
    assert row is not None
    return row


def explained(service: Service, job: int) -> Mapping[Kind, int]:
    store = service.store.cluster(NAME)
    return explain_job(store, service.slurm, str(job)).by_hand


def set_nice(service: Service, job: int, nice: int) -> None:
    """What an operator does; users may not go below 0."""
    SimulatedSlurm.write(service.slurm, "nice", {str(job): nice})


@pytest.mark.parametrize("waiting", CHANNELS, indirect=True)
def test_a_fixed_priority_is_left_alone_and_neither_refused_nor_unconfirmed(
    waiting: Service,
) -> None:
    waiting.slurm.fix_priority(2, HIGH)
    for _ in range(3):
        report = waiting.run()
        assert waiting.slurm.writes == []
        assert (report.pushed.refused, report.pushed.unconfirmed) == (0, 0)
        assert report.plan.foreign.by_hand == {"priority": ("2",)}
        waiting.slurm.wait(10)
    assert waiting.slurm.job(2).priority == HIGH
    assert last(waiting).by_hand == {"priority": 1}
    assert explained(waiting, 2) == {"priority": HIGH}
    assert explained(waiting, 3) == {}
    waiting.slurm.hold(2)
    waiting.slurm.release(2)
    report = waiting.run()
    assert (report.plan.foreign.by_hand, report.pushed.unconfirmed) == ({}, 0)
    assert waiting.slurm.job(2).priority == waiting.slurm.job(3).priority


@pytest.mark.parametrize("waiting", CHANNELS, indirect=True)
def test_a_site_factor_of_somebody_else_is_left_alone(waiting: Service) -> None:
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"2": HIGH})
    for _ in range(2):
        report = waiting.run()
        assert report.plan.foreign.by_hand == {"site_factor": ("2",)}
        assert "2" not in {target for _, written in waiting.slurm.writes for target in written}
        waiting.slurm.wait(10)
    waiting.restart()
    waiting.run()
    assert waiting.slurm.job(2).site_factor == HIGH
    assert last(waiting).by_hand == {"site_factor": 1}
    assert explained(waiting, 2) == {"site_factor": HIGH}
    waiting.roll_back()
    assert waiting.slurm.job(2).site_factor == HIGH
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"2": 0})
    assert waiting.run().plan.foreign.by_hand == {}
    assert waiting.slurm.job(2).priority == waiting.slurm.job(3).priority


@pytest.mark.parametrize("waiting", CHANNELS, indirect=True)
def test_so_is_one_that_equals_the_points_of_another_organization(waiting: Service) -> None:
    last_one = min(waiting.slurm.jobs(), key=lambda job: job.site_factor or 0)
    assert last_one.site_factor != FIRST
    SimulatedSlurm.write(waiting.slurm, "site_factor", {last_one.target: FIRST})
    for _ in range(2):
        assert waiting.run().plan.foreign.by_hand == {"site_factor": (last_one.label,)}
        assert waiting.slurm.job(last_one.job_id).site_factor == FIRST
    assert explained(waiting, last_one.job_id) == {"site_factor": FIRST}


def test_what_an_older_store_does_not_know_yet_is_not_taken_for_somebody_elses(
    waiting: Service, store: Store
) -> None:
    standing = {job.job_id: job.site_factor for job in waiting.slurm.jobs()}
    with store.cluster(NAME).transaction() as rows:
        older = {str(job): ManagedValue(0, (1,)) for job in standing}
        rows.pushes.save_managed_values("site_factor", older)
    waiting.restart()
    assert waiting.run().plan.foreign.by_hand == {}
    assert all(explained(waiting, job) == {} for job in standing)


def test_so_is_one_at_a_job_that_was_never_seen_before(waiting: Service) -> None:
    new = waiting.slurm.submit("physics", processing_time=9)
    SimulatedSlurm.write(waiting.slurm, "site_factor", {str(new): HIGH})
    assert waiting.run().plan.foreign.by_hand == {"site_factor": (str(new),)}
    assert waiting.slurm.job(new).site_factor == HIGH


def test_what_a_lost_store_had_written_is_not_taken_for_somebody_elses(
    waiting: Service, store: Store
) -> None:
    with store.cluster(NAME).transaction() as rows:
        rows.pushes.save_managed_values("site_factor", {})
    waiting.restart()
    assert waiting.run().plan.foreign.by_hand == {}
    assert {waiting.slurm.job(job).site_factor for job in (2, 3, 4)} == {FIRST, LAST}


@pytest.mark.parametrize("waiting", CHANNELS, indirect=True)
def test_a_nice_below_0_is_kept_beside_our_points(waiting: Service) -> None:
    before = waiting.slurm.job(3).priority
    set_nice(waiting, 2, -50)
    for _ in range(2):
        assert waiting.run().plan.foreign.by_hand == {"nice": ("2",)}
        assert before < waiting.slurm.job(2).priority <= before + 50
    assert last(waiting).by_hand == {"nice": 1}
    assert explained(waiting, 2) == {"nice": -50}


def test_where_users_can_bring_it_about_a_nice_below_0_is_nobodys_order(store: Store) -> None:
    slurm = Cluster(settings=replace(QUIET, user_top=True))
    slurm.fill("guest")
    job = slurm.submit("physics", processing_time=9)
    service = Service(slurm, store)
    service.run()
    set_nice(service, job, -50)
    assert service.run().plan.foreign.by_hand == {}
    assert explained(service, job) == {}


def test_a_pause_leaves_it_alone_too(waiting: Service) -> None:
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"2": HIGH})
    pause(waiting)
    waiting.run()
    new = waiting.slurm.submit("physics", processing_time=9)
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"3": HIGH, str(new): HIGH})
    waiting.run()
    resume(waiting)
    waiting.run()
    assert {waiting.slurm.job(job).site_factor for job in (2, 3, new)} == {HIGH}


def test_a_rollback_leaves_it_at_a_job_at_which_slurm_does_not_show_it(waiting: Service) -> None:
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"2": HIGH})
    waiting.run()
    waiting.slurm.hold(2)
    waiting.run()
    waiting.roll_back()
    waiting.slurm.release(2)
    assert waiting.slurm.job(2).site_factor == HIGH


@pytest.mark.parametrize("waiting", ["site_factor", "nice"], indirect=True)
@pytest.mark.parametrize("keep", [True, False, None])
@pytest.mark.parametrize("hidden", [True, False])
def test_a_rollback_leaves_what_was_seen_before_slurm_hid_it(
    waiting: Service, *, keep: bool | None, hidden: bool
) -> None:
    """It was seen during a pause, or by an earlier rollback."""
    channel = waiting.config.push.channel
    if keep is not None:
        pause(waiting, keep=keep)
        waiting.run()
    waiting.slurm.write(channel, {"2": 77})
    if keep is None:
        waiting.roll_back()
    else:
        waiting.run()
    if hidden:
        waiting.slurm.hold(2)
    waiting.roll_back()
    if hidden:
        waiting.slurm.release(2)
    assert getattr(waiting.slurm.job(2), channel) == 77


@pytest.mark.parametrize("waiting", CHANNELS, indirect=True)
def test_what_is_set_at_a_job_that_went_first_stays_when_slurm_hides_it(waiting: Service) -> None:
    put_first(waiting, 3)
    waiting.run()
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"3": HIGH})
    waiting.run()
    waiting.slurm.hold(3)
    waiting.run()
    waiting.slurm.release(3)
    assert waiting.slurm.job(3).site_factor == HIGH


def test_a_rollback_leaves_what_follows_it_even_if_a_rollback_once_put_it_there(
    waiting: Service,
) -> None:
    waiting.roll_back()
    waiting.run()
    SimulatedSlurm.write(waiting.slurm, "site_factor", {"2": 55})
    waiting.run()
    for value in (2, 0):
        SimulatedSlurm.write(waiting.slurm, "site_factor", {"2": value})
    waiting.roll_back()
    assert waiting.slurm.job(2).site_factor == 0


def test_a_task_that_left_its_array_before_is_put_back_without_it(waiting: Service) -> None:
    slurm = waiting.slurm
    array = slurm.submit("physics", array=3, processors=9, processing_time=1000)
    waiting.run()
    for job in (1, 2, 3, 4):
        slurm.cancel(job)
    slurm.wait(0)
    SimulatedSlurm.write(slurm, "site_factor", {f"{array}_[1-2]": HIGH})
    waiting.run()
    slurm.requeue(array + 1)
    slurm.wait(200)
    waiting.run()
    assert slurm.job(array + 1).site_factor == LAST
    waiting.roll_back()
    assert {job.label: job.site_factor for job in slurm.jobs()} == {
        f"{array}_0": 0,
        f"{array}_[2]": HIGH,
    }
