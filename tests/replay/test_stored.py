"""What the daemon stored, read back as a log: finished runs, and whose processors they got."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import tzset
from typing import TYPE_CHECKING

import pytest

from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.fairness.tenure import NOBODY, Allocation
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log
from shapleyprio.store import AllocatedRun, Store
from tests.daemon.consortium import NAME, NOW, Cluster, Service
from tests.store.examples import BEGIN, placed_run, watermark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url, create=True) as store:
        yield store


def put(store: Store, *runs: AllocatedRun, cluster: str = NAME) -> None:
    with store.cluster(cluster).transaction() as rows:
        rows.ledger.save_watermark(watermark())
        rows.runs.put(runs)


def names(labels: Labels) -> list[str | None]:
    return [None if code == UNKNOWN else labels.names[code] for code in labels.codes.tolist()]


def placed(log: Log) -> list[list[tuple[str | None, int]]]:
    """For each job the owners and how many processors of theirs it got."""
    assert log.placed is not None
    parts = list(zip(names(log.placed.owners), log.placed.processors.tolist(), strict=True))
    first = log.placed.first.tolist()
    return [parts[first[job] : first[job + 1]] for job in range(len(log.job))]


def test_a_finished_run_is_a_job(url: str, store: Store) -> None:
    put(store, placed_run(7, end=BEGIN + 100, owners=("biology", "physics")))
    log = read_log(url)
    assert (log.source, log.format) == (store.name, "store")
    assert log.job.tolist() == [7]
    assert log.release.tolist() == [BEGIN - 60]
    assert log.start.tolist() == [BEGIN]
    assert log.processing_time.tolist() == [100]
    assert log.processors.tolist() == [32]
    assert log.limit.tolist() == [3600]
    assert names(log.labels["account"]) == ["phys"]
    assert names(log.labels["user"]) == ["ann"]
    assert names(log.labels["organization"]) == ["physics"]
    assert placed(log) == [[("biology", 16), ("physics", 16)]]


def test_a_job_has_the_release_and_the_limit_of_its_run(url: str, store: Store) -> None:
    put(store, placed_run(7, end=BEGIN + 100, release=BEGIN - 20, limit=3600))
    log = read_log(url)
    assert (log.release.tolist(), log.limit.tolist()) == ([BEGIN - 20], [3600])


def test_runs_come_in_the_order_of_their_starts_and_then_of_their_jobs(
    url: str, store: Store
) -> None:
    put(
        store,
        placed_run(1, begin=BEGIN + 9, end=BEGIN + 10, owners=("a",)),
        placed_run(3, begin=BEGIN, end=BEGIN + 10, owners=("b", "c")),
        placed_run(2, begin=BEGIN, end=BEGIN + 10, owners=("c",)),
    )
    log = read_log(url)
    assert log.job.tolist() == [2, 3, 1]
    assert placed(log) == [[("c", 16)], [("b", 16), ("c", 16)], [("a", 16)]]


def test_dates_are_this_hosts_as_in_reports(
    url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.cluster(NAME).transaction() as rows:
        rows.ledger.save_watermark(watermark(observed_until=BEGIN + 3600, opened=BEGIN))
        rows.runs.put([placed_run(1, begin=BEGIN + 60, end=BEGIN + 90, owners=("a",))])
    date = datetime.fromtimestamp(BEGIN, UTC).replace(tzinfo=None)
    for zone, west in (("UTC", 0), ("America/New_York", 5 * 3600)):
        monkeypatch.setenv("TZ", zone)
        tzset()
        try:
            for seconds, found in ((30, 1), (120, 0)):
                since = date + timedelta(seconds=seconds - west)
                assert (
                    len(read_log(url, since=since, until=since + timedelta(hours=1)).job) == found
                )
        finally:
            monkeypatch.undo()
            tzset()


def test_every_execution_of_a_requeued_job_is_an_entry(url: str, store: Store) -> None:
    put(store, placed_run(1, BEGIN, BEGIN + 5), placed_run(1, BEGIN + 8, BEGIN + 9))
    assert read_log(url).processing_time.tolist() == [5, 1]


def test_runs_without_an_end_or_without_a_part_are_left_out(url: str, store: Store) -> None:
    put(
        store,
        placed_run(1),
        placed_run(2, end=BEGIN),
        placed_run(3, end=BEGIN + 1),
        placed_run(4, end=BEGIN + 1, owners=()),
    )
    log = read_log(url)
    assert log.job.tolist() == [3]
    assert log.left_out == {
        "unknown_processing_time": 1,
        "zero_processing_time": 1,
        "unknown_processors": 1,
    }


def test_nobody_is_unknown(url: str, store: Store) -> None:
    put(store, placed_run(1, end=BEGIN + 1, organization=NOBODY, owners=(NOBODY, "physics")))
    log = read_log(url)
    assert names(log.labels["organization"]) == [None]
    assert placed(log) == [[(None, 16), ("physics", 16)]]


def test_a_run_across_a_change_of_hands_counts_as_it_began(url: str, store: Store) -> None:
    run = Run(
        key=RunKey(1, BEGIN, BEGIN),
        label="1",
        account="phys",
        user="ann",
        state="COMPLETED",
        release=BEGIN,
        limit=None,
        begin=BEGIN,
        end=BEGIN + 10,
        processors={"n1": 16},
    )
    before = Allocation("physics", "biology", 16, BEGIN, BEGIN + 4)
    after = Allocation("chemistry", "physics", 16, BEGIN + 4, BEGIN + 10)
    put(store, (run, (before, after)))
    log = read_log(url)
    assert log.processing_time.tolist() == [10]
    assert names(log.labels["organization"]) == ["physics"]
    assert placed(log) == [[("biology", 16)]]


def test_what_the_daemon_saw_is_what_is_read(url: str, store: Store) -> None:
    slurm = Cluster()
    service = Service(slurm, store)
    wide = slurm.submit("physics", processors=12, processing_time=100)
    slurm.wait(30)
    later = slurm.submit("guest", processors=2, processing_time=50)
    slurm.wait(300)
    running = slurm.submit("biology", processors=1, processing_time=10**6)
    slurm.wait(1)
    service.run()
    log = read_log(url, clusters=[NAME])
    assert log.job.tolist() == [wide, later]
    assert running not in log.job
    assert log.left_out == {"unknown_processing_time": 1}
    assert (log.release - NOW).tolist() == [0, 30]
    assert (log.start - NOW).tolist() == [0, 100]
    assert log.processing_time.tolist() == [100, 50]
    assert names(log.labels["account"]) == ["physics", "guest"]
    assert names(log.labels["organization"]) == ["physics", None]
    assert placed(log) == [[("biology", 4), ("physics", 8)], [("physics", 2)]]
    assert log.owned == {"biology": 4, "physics": 8}


def test_reading_changes_nothing(url: str, store: Store, tmp_path: Path) -> None:
    put(store, placed_run(1, end=BEGIN + 1))
    store.close()
    before = (tmp_path / "store.db").read_bytes()
    read_log(url)
    assert (tmp_path / "store.db").read_bytes() == before


def test_of_several_clusters_one_must_be_named(url: str, store: Store) -> None:
    put(store, placed_run(1, end=BEGIN + 1), cluster="east")
    put(store, placed_run(2, end=BEGIN + 1), cluster="west")
    assert read_log(url, clusters=["west"]).job.tolist() == [2]
    with pytest.raises(LogError, match="the store holds east, west; name one cluster"):
        read_log(url)
    with pytest.raises(LogError, match="the store holds east, west; north is not among them"):
        read_log(url, clusters=["north"])


def test_a_store_that_no_daemon_has_filled_says_so(url: str, store: Store) -> None:
    with pytest.raises(LogError, match="the store holds no cluster yet"):
        read_log(url)


def test_a_store_without_runs_is_a_log_without_jobs(url: str, store: Store) -> None:
    put(store)
    log = read_log(url)
    assert len(log.job) == len(log.limit) == 0
    assert placed(log) == []


def test_a_store_that_is_not_there_is_not_made(url: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="there is no such file"):
        read_log(url)
    assert not list(tmp_path.iterdir())


def test_progress_shows_how_many_runs_were_read(url: str, store: Store) -> None:
    put(store, *(placed_run(job, end=BEGIN + 1) for job in range(1, 4)))
    answer: list[int] = []
    read_log(url, progress=answer.append)
    assert answer == [3]
