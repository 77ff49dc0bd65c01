"""The table of points: when it is written, what it has given, and how all of it is put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shapleyprio.common.errors import ConfigError, OutputError
from shapleyprio.config import load_config
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.pushing.submission import SHORTEST_SECONDS, lasting
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.lab.simulated import SimulatedSlurm
from shapleyprio.slurm.points_table import TableError, read_table
from shapleyprio.store import ManagedValue, PublishedPoints, PushState, Store
from tests.daemon.consortium import FIRST, LAST, NAME, Cluster, Service, config
from tests.daemon.pushing.test_pausing import pause, resume

LATER = 60


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "points"


@pytest.fixture
def service(slurm: Cluster, store: Store, file: Path) -> Service:
    """A full cluster, and one cycle that has written the table."""
    slurm.fill("guest")
    made = Service(slurm, store, with_table(file))
    made.run()
    slurm.wait(LATER)
    return made


def with_table(file: Path | None, **push: Any) -> Any:
    return config(push={**push, **({"table": str(file)} if file else {})})


def submit(service: Service, account: str, **options: Any) -> int:
    """Submits a job as slurmctld does it with the script: with the points of its account."""
    job = service.slurm.submit(account, processing_time=9, **options)
    set_points(service, job, account)
    return job


def set_points(service: Service, job: int, account: str) -> None:
    """Does what the script does."""
    path = service.config.push.table
    assert path is not None
    try:
        points = read_table(path).points.get(account, 0)
    except TableError:
        return
    SimulatedSlurm.write(service.slurm, "site_factor", {str(job): points})


def published(service: Service) -> PublishedPoints | None:
    with service.store.cluster(NAME).reading() as view:
        return view.pushes.published_points()


def site_factors(service: Service) -> dict[int, int | None]:
    return {job.job_id: job.site_factor for job in service.slurm.jobs()}


# -- the table


def test_every_claimed_account_has_its_organizations_points(service: Service, file: Path) -> None:
    table = read_table(file)
    assert table.points == {"physics": FIRST, "biology": LAST}
    assert table.written == service.slurm.now - LATER
    assert table.lasts == SHORTEST_SECONDS


def test_each_cycle_writes_it_anew(service: Service, file: Path) -> None:
    report = service.run()
    assert read_table(file).written == report.table_written == service.slurm.now


def test_it_outlasts_some_cycles_that_fail() -> None:
    assert lasting(30) == 900
    assert lasting(3600) == 36_000


def test_a_dry_run_does_not_write_it(slurm: Cluster, store: Store, file: Path) -> None:
    report = Service(slurm, store, with_table(file)).run(dry_run=True)
    assert not file.exists()
    assert report.table_written is None


def test_one_that_cannot_be_written_does_not_stop_the_cycle(
    slurm: Cluster, store: Store, tmp_path: Path
) -> None:
    slurm.fill("guest")
    job = slurm.submit("physics", processing_time=9)
    service = Service(slurm, store, with_table(tmp_path / "missing" / "points"))
    report = service.run()
    assert report.table_written is None
    assert slurm.job(job).site_factor == FIRST
    before = published(service)
    assert before is not None
    assert before.since is None


def test_another_place_leaves_no_table_behind(service: Service, file: Path) -> None:
    other = file.with_name("other")
    service.restart(with_table(other))
    service.run()
    assert not file.exists()
    assert read_table(other).points == {"physics": FIRST, "biology": LAST}


def test_the_metrics_say_when_it_was_written_for_as_long_as_there_is_to_be_one(
    service: Service, file: Path
) -> None:
    metrics = Metrics(NAME)

    def shown() -> float | None:
        metrics.publish(service.run())
        labels = {"cluster": NAME}
        return metrics.registry.get_sample_value("shapleyprio_table_timestamp_seconds", labels)

    written = service.slurm.now
    assert shown() == written
    service.slurm.wait(LATER)
    file.unlink()
    file.mkdir()  # so that it cannot be written
    assert shown() == written
    file.rmdir()
    pause(service)
    assert shown() is None
    resume(service)
    assert shown() == service.slurm.now
    service.restart(with_table(None))
    assert shown() is None


def test_only_the_site_factor_has_a_table(tmp_path: Path) -> None:
    written = tmp_path / "c.toml"
    written.write_text(
        '[push]\nchannel = "nice"\ntable = "/t"\n[[organization]]\nname = "a"\naccounts = ["a"]\n'
    )
    with pytest.raises(ConfigError, match=r'push\.table.*push\.channel is "nice".*leave it out'):
        load_config(written)


# -- what it has given


def test_a_job_that_got_its_points_is_not_written_to(service: Service) -> None:
    job = submit(service, "physics")
    report = service.run()
    assert report.plan.pushes == []
    assert service.slurm.writes == []
    assert report.plan.missed == 0
    (push,) = service.pushes(job)
    assert (push.state, push.old, push.new) == (PushState.AT_SUBMISSION, 0, FIRST)
    assert service.managed_value("site_factor", job) == ManagedValue(0, (FIRST,))
    service.run()
    assert len(service.pushes(job)) == 1


def test_points_of_an_older_order_are_taken_for_the_tables_too(service: Service) -> None:
    job = submit(service, "physics")
    SimulatedSlurm.write(service.slurm, "site_factor", {str(job): LAST})
    service.run()
    assert [(push.old, push.new) for push in service.pushes(job)] == [(0, LAST), (LAST, FIRST)]
    assert service.managed_value("site_factor", job) == ManagedValue(0, (LAST, FIRST))


def test_an_array_is_on_record_once(service: Service) -> None:
    array = submit(service, "physics", array=3)
    service.run()
    service.run()
    assert len(service.pushes(array)) == 1


def test_an_administrators_site_factor_stays_the_original(service: Service) -> None:
    job = submit(service, "physics")
    SimulatedSlurm.write(service.slurm, "site_factor", {str(job): 777})
    service.run()
    service.roll_back()
    assert site_factors(service) == {job: 777}


def test_points_at_a_change_of_account_take_the_place_of_what_was_set(service: Service) -> None:
    job = submit(service, "biology")
    SimulatedSlurm.write(service.slurm, "site_factor", {str(job): 777})
    service.run()
    assert site_factors(service) == {job: 777}
    set_points(service, job, "physics")
    service.run()
    service.roll_back()
    assert site_factors(service) == {job: 777}


def test_jobs_that_came_without_are_counted_once(service: Service) -> None:
    service.slurm.submit("physics", processing_time=9)
    service.slurm.submit("guest", processing_time=9)
    submit(service, "biology")
    report = service.run()
    assert (report.plan.missed, len(report.plan.at_submission)) == (1, 1)
    assert service.run().plan.missed == 0
    status = read_status(service.store.cluster(NAME))
    assert status.missed == 1
    assert status.table is not None


def test_jobs_that_came_before_the_table_are_not_counted(
    slurm: Cluster, store: Store, file: Path
) -> None:
    slurm.fill("guest")
    slurm.submit("physics", processing_time=9)
    service = Service(slurm, store, with_table(file))
    assert service.run().plan.missed == 0
    assert service.run().plan.missed == 0


def test_a_table_is_there_since_it_was_first_written(service: Service) -> None:
    before = published(service)
    service.slurm.wait(1000)
    service.run()
    assert published(service) == before
    assert before is not None
    assert before.given == (LAST, FIRST)


# -- the way back


def test_a_rollback_puts_back_what_the_table_gave(service: Service, file: Path) -> None:
    shown, unseen = submit(service, "physics"), submit(service, "biology")
    service.run()
    new = submit(service, "physics")
    service.slurm.hold(unseen)
    service.roll_back()
    assert not file.exists()
    service.slurm.release(unseen)
    assert site_factors(service) == dict.fromkeys((shown, unseen, new), 0)


def test_a_rollback_reaches_jobs_that_were_never_seen(service: Service) -> None:
    held = submit(service, "physics")
    service.slurm.hold(held)
    service.run()
    assert service.managed_value("site_factor", held) is None
    service.roll_back()
    service.slurm.release(held)
    assert site_factors(service) == {held: 0}


def test_a_rollback_reaches_a_held_job_that_has_changed_its_account_since(
    service: Service,
) -> None:
    held = submit(service, "physics")
    service.run()
    service.roll_back()
    service.run()
    service.slurm.wait(LATER)
    set_points(service, held, "biology")
    service.slurm.hold(held)
    service.roll_back()
    service.slurm.release(held)
    assert site_factors(service) == {held: 0}


def test_a_rollback_reaches_a_job_that_started_at_once(
    slurm: Cluster, store: Store, file: Path
) -> None:
    service = Service(slurm, store, with_table(file))
    service.run()
    slurm.wait(LATER)
    job = slurm.submit("physics", processing_time=1000)
    set_points(service, job, "physics")
    slurm.wait(0)
    slurm.wait(5)
    service.run()
    assert site_factors(service) == {}
    service.roll_back()
    slurm.requeue(job)
    assert set(site_factors(service).values()) <= {0, None}


def test_a_guests_held_job_is_not_written_to_unseen(service: Service) -> None:
    held = submit(service, "guest")
    SimulatedSlurm.write(service.slurm, "site_factor", {str(held): 777})
    service.slurm.hold(held)
    service.roll_back()
    service.slurm.release(held)
    assert site_factors(service) == {held: 777}


def test_a_second_rollback_writes_nothing(service: Service) -> None:
    held = submit(service, "physics")
    service.slurm.hold(held)
    submit(service, "biology")
    service.roll_back()
    service.slurm.wait(LATER)
    service.slurm.submit("physics", processing_time=9)
    service.slurm.writes.clear()
    service.roll_back()
    assert service.slurm.writes == []


def test_a_rollback_that_cannot_remove_the_table_puts_nothing_back(
    service: Service, file: Path
) -> None:
    job = submit(service, "physics")
    file.unlink()
    file.mkdir()
    with pytest.raises(OutputError, match="cannot be removed"):
        service.roll_back()
    assert site_factors(service) == {job: FIRST}


@pytest.mark.parametrize("push", [{}, {"channel": "nice"}])
def test_without_the_key_there_is_no_table_any_more(
    service: Service, file: Path, push: dict[str, str]
) -> None:
    job = submit(service, "physics")
    service.run()
    service.restart(with_table(None, **push))
    service.slurm.wait(1)
    service.run()
    assert not file.exists()
    assert site_factors(service) == {job: 0 if push else FIRST}
    after = published(service)
    assert after is not None
    assert (after.since, after.until) == (None, service.slurm.now)
    service.run()
    assert service.slurm.writes == []


def test_it_is_forgotten_when_no_job_can_have_points_from_it(service: Service) -> None:
    job = submit(service, "physics")
    service.run()
    service.roll_back()
    service.restart(with_table(None, channel="nice"))
    service.slurm.wait(LATER)
    service.cycle.prune()
    assert published(service) is not None
    service.slurm.cancel(job)
    service.slurm.cancel(1)
    service.slurm.wait(LATER)
    service.run()
    service.cycle.prune()
    assert published(service) is None


def test_the_next_cycle_gives_points_again(service: Service, file: Path) -> None:
    service.roll_back()
    service.slurm.wait(LATER)
    service.run()
    assert file.exists()
    again = published(service)
    assert again is not None
    assert (again.since, again.until) == (service.slurm.now, None)
