"""A pause: everything back as it was found, or left, and accounting goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.accounting.cluster_clock import ClockError
from shapleyprio.daemon.pushing import orders
from shapleyprio.lab.simulated import SimulatedSlurm
from shapleyprio.slurm.points_table import read_table
from shapleyprio.store import PauseRow, Store
from tests.daemon.consortium import FIRST, LAST, NAME, Cluster, Crash, Service, config

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["site_factor", "nice"])
def waiting(request: pytest.FixtureRequest, slurm: Cluster, store: Store) -> Service:
    """Jobs of everybody wait, and one cycle has run."""
    slurm.fill("guest")
    for number, account in enumerate(("physics", "biology", "guest")):
        slurm.submit(account, nice=number, processing_time=9)
    service = Service(slurm, store, config(push={"channel": request.param}))
    service.run()
    slurm.wait(10)
    return service


def pause(service: Service, *, keep: bool = False) -> None:
    row = PauseRow(since=service.slurm.now, user="ann", reason="an odd queue", keep=keep)
    orders.pause(service.store.cluster(NAME), row)


def resume(service: Service) -> None:
    orders.resume(service.store.cluster(NAME), service.slurm.now, "bob")


def values(service: Service) -> dict[int, tuple[int, int | None]]:
    return {job.job_id: (job.nice, job.site_factor) for job in service.slurm.jobs()}


def steering(service: Service) -> list[str]:
    with service.store.cluster(NAME).reading() as view:
        return [row.channel for row in view.history.steering()]


def test_the_next_cycle_puts_everything_back_and_later_ones_write_nothing(
    waiting: Service,
) -> None:
    before = values(waiting)
    pause(waiting)
    report = waiting.run()
    assert values(waiting) == {2: (0, 0), 3: (1, 0), 4: (2, 0)}
    assert report.plan.pause is not None
    assert report.pushed.applied == 2
    waiting.slurm.submit("physics", nice=7, processing_time=9)
    for _ in range(2):
        waiting.slurm.wait(10)
        waiting.run()
        assert waiting.slurm.writes == []
    channel = waiting.config.push.channel
    assert steering(waiting) == [channel, ""]
    resume(waiting)
    waiting.run()
    assert {job: values(waiting)[job] for job in before} == before
    assert steering(waiting) == [channel, "", channel]


def test_accounting_and_ranks_go_on(steered: Service) -> None:
    pause(steered)
    steered.run()
    before = steered.standings()
    steered.slurm.wait(100)
    steered.run()
    after = steered.standings()
    for organization in ("physics", "biology"):
        assert after[organization].t == before[organization].t + 100
        assert after[organization].contribution > before[organization].contribution
    assert sorted(row.priority for row in after.values()) == [LAST, FIRST]


def test_what_is_kept_stays_as_it_was_written(waiting: Service) -> None:
    before = values(waiting)
    pause(waiting, keep=True)
    waiting.slurm.submit("physics", nice=7, processing_time=9)
    waiting.run()
    assert waiting.slurm.writes == []
    assert values(waiting) == {**before, 5: (7, 0)}


def test_what_somebody_else_has_set_meanwhile_stays_until_steering_goes_on(
    waiting: Service,
) -> None:
    channel = waiting.config.push.channel
    pause(waiting)
    waiting.run()
    SimulatedSlurm.write(waiting.slurm, channel, {"2": 77})
    waiting.run()
    assert 77 in values(waiting)[2]


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
def test_a_daemon_that_dies_meanwhile_leaves_nothing_behind(waiting: Service, moment: str) -> None:
    pause(waiting)
    waiting.slurm.die(moment)
    with pytest.raises(Crash):
        waiting.run()
    waiting.restart()
    report = waiting.run()
    assert report.plan.pause is not None
    assert values(waiting) == {2: (0, 0), 3: (1, 0), 4: (2, 0)}


def test_a_restart_does_not_end_it(waiting: Service) -> None:
    pause(waiting)
    waiting.run()
    waiting.restart()
    waiting.slurm.submit("biology", processing_time=9)
    waiting.run()
    assert waiting.slurm.writes == []


def test_a_dry_run_shows_what_would_be_put_back(waiting: Service) -> None:
    pause(waiting)
    before = values(waiting)
    report = waiting.run(dry_run=True)
    assert {item.target for item in report.plan.pushes} == {"2", "3"}
    assert values(waiting) == before


def test_a_job_that_is_held_or_runs_gets_back_what_it_had(waiting: Service) -> None:
    channel = waiting.config.push.channel
    waiting.slurm.hold(2)
    pause(waiting)
    waiting.run()
    waiting.slurm.release(2)
    assert values(waiting)[2] == (0, 0)
    managed = waiting.managed_value(channel, 2)
    assert managed is not None
    assert managed.written[-1] == managed.original


@pytest.mark.parametrize("channel", ["qos", "association"])
def test_what_accounts_and_qos_had_is_put_back(store: Store, channel: str) -> None:
    slurm = Cluster(qos={"normal": 0, "phys": 5, "bio": 6})
    slurm.fill("guest")
    service = Service(slurm, store, config(push={"channel": channel}))

    def found() -> object:
        return slurm.qos_priorities() if channel == "qos" else slurm.account_priorities()

    before = found()
    service.run()
    steered = found()
    assert steered != before
    pause(service)
    service.run()
    assert found() == before
    resume(service)
    service.run()
    assert found() == steered


def test_new_jobs_get_nothing_at_submission(slurm: Cluster, store: Store, tmp_path: Path) -> None:
    table = tmp_path / "points"
    slurm.fill("guest")
    service = Service(slurm, store, config(push={"table": str(table)}))
    service.run()
    slurm.wait(10)
    given = read_table(table).points["physics"]
    came = slurm.submit("physics", processing_time=9)
    SimulatedSlurm.write(slurm, "site_factor", {str(came): given})  # as the script does
    held = slurm.submit("physics", processing_time=9)
    SimulatedSlurm.write(slurm, "site_factor", {str(held): given})
    slurm.hold(held)
    pause(service)
    service.run()
    slurm.release(held)
    assert not table.exists()
    assert {slurm.job(job).site_factor for job in (came, held)} == {0}
    slurm.wait(10)
    service.run()
    assert service.slurm.writes == []
    resume(service)
    service.run()
    assert read_table(table).points["physics"] == given
    assert slurm.job(came).site_factor == given


def test_only_one_pause_lasts(waiting: Service) -> None:
    pause(waiting)
    with pytest.raises(orders.OrderError, match=r"already paused since .* by ann: an odd queue"):
        pause(waiting)
    resume(waiting)
    with pytest.raises(orders.OrderError, match="nothing is paused"):
        resume(waiting)


def test_a_pause_holds_while_a_clock_catches_up(waiting: Service) -> None:
    waiting.run()
    pause(waiting)
    waiting.slurm.skew = -1000
    new = waiting.slurm.submit("physics", nice=7, processing_time=9)
    for _ in range(2):
        with pytest.raises(ClockError, match="behind") as raised:
            waiting.run()
        assert "meanwhile" not in str(raised.value)
        assert values(waiting) == {2: (0, 0), 3: (1, 0), 4: (2, 0), new: (7, 0)}
    resume(waiting)
    with pytest.raises(ClockError, match="meanwhile"):
        waiting.run()
    assert values(waiting)[new] != (7, 0)
