"""A dry run leaves no trace, and shows what a cycle would do."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import ExitStack, closing, contextmanager, suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.daemon import Daemon, DaemonParts
from shapleyprio.daemon.steering.dry_run import Forecast, rehearse
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.fairness.tenure import Move
from shapleyprio.store import ClusterStore, Store, StoreError, StoreSchemaError
from shapleyprio.store.schema import metadata
from tests.daemon.consortium import BIOLOGY, FIRST, LAST, NAME, PHYSICS, Cluster, Service, config
from tests.daemon.steering.test_daemon import Site
from tests.leases import take_away
from tests.store.servers import SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shapleyprio.config import Config
    from tests.store.servers import Databases

NOBODY = 65534
"""The number of the user who may do nothing."""

EMPTY = {**PHYSICS, "accounts": [], "partitions": []}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder below which others may be let in: pytest's own it closes again at any time."""
    with TemporaryDirectory(prefix="dry-", dir="/tmp") as place:
        yield Path(place)


@pytest.fixture
def folder(place: Path) -> Path:
    """Where the store is to be."""
    folder = place / "lib"
    folder.mkdir()
    return folder


@pytest.fixture
def in_file(folder: Path) -> str:
    """URL of the store that is to be there, in SQLite."""
    return f"sqlite:///{folder / 'store.db'}"


@pytest.fixture
def url(databases: Databases, database: str) -> Iterator[str]:
    """URL of a store that is to be, on any database."""
    with databases.empty(database) as url:
        yield url


@pytest.fixture(autouse=True)
def temporary(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are made."""
    copies = place / "tmp"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    return copies


@pytest.fixture
def busy(slurm: Cluster) -> Cluster:
    """The cluster on which biology's job has run on physics's nodes, and jobs wait."""
    slurm.fill("biology")
    slurm.submit("physics", nice=3, processing_time=9)
    slurm.submit("guest", processing_time=9)
    slurm.wait(1000)
    return slurm


def dry_run(url: str, slurm: Cluster, config: Config, cycles: int = 1) -> list[Forecast]:
    """What the cycles of one dry run show."""
    output: list[Forecast] = []
    with rehearse(url, [NAME], output.extend) as rehearsal:
        daemon = make_daemon(slurm, config, rehearsal.store, dry_run=rehearsal)
        for _ in range(cycles):
            daemon.run_once()
    return output


def make_daemon(slurm: Cluster, config: Config, store: ClusterStore, **more: Any) -> Daemon:
    lease = Lease(store, seconds=300)
    return Daemon(
        config,
        DaemonParts(
            read_config=lambda: config,
            make_cycles=lambda new: [Cycle(new, slurm, lease.store, clock=lambda: slurm.now)],
            metrics=Metrics(NAME),
            site=more.pop("site", Site()),
            lease=lease,
            **more,
        ),
    )


def steer(url: str, slurm: Cluster, config: Config) -> dict[str, list[tuple[object, ...]]]:
    """What is in the store after one real cycle."""
    with Store.open(url, create=True) as store:
        make_daemon(slurm, config, store.cluster(NAME)).run_once()
    return content(url)


def content(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Table -> its rows, but for those with the time of day; of cycles, not how long they took."""
    with Store.open(url) as store, store.cluster(NAME).reading() as view:
        return {
            name: sorted(
                (
                    tuple(value for column, value in row.items() if str(column) != "seconds")
                    for row in view.history._connection.execute(table.select()).mappings()
                ),
                key=repr,
            )
            for name, table in metadata.tables.items()
            if name not in {"lease", "configuration"}
        }


def files(folder: Path) -> dict[str, str]:
    """File -> what it contains and when that was changed."""
    return {
        file.name: f"{sha256(file.read_bytes()).hexdigest()} {file.stat().st_mtime_ns}"
        for file in folder.iterdir()
    }


def standings(forecast: Forecast) -> dict[str, tuple[int, int]]:
    """Organization -> φ̃ and ψ."""
    return {
        one.status.organization: (one.status.contribution, one.status.utility)
        for one in forecast.standings
    }


# -- no trace


def test_a_dry_run_with_a_mistake_does_not_change_what_the_first_real_cycle_counts(
    url: str, busy: Cluster, databases: Databases
) -> None:
    (mistaken,) = dry_run(url, busy, config(EMPTY, BIOLOGY))
    assert mistaken.is_new
    contribution, utility = standings(mistaken)["physics"]
    assert contribution == utility == 0
    assert Store.open_existing(url) is None

    corrected = steer(url, busy, config())
    busy.write("site_factor", dict.fromkeys(("2",), 0))
    with databases.empty("sqlite") as other:
        assert corrected == steer(other, busy, config())
    with Store.open(url) as store, store.cluster(NAME).reading() as view:
        (physics,) = view.history.standings(0, "physics")
    assert physics.contribution == 8 * (1000 * 1001 // 2)


@pytest.mark.parametrize("cycles", [1, 3])
@pytest.mark.parametrize("new", [config(), config(EMPTY, BIOLOGY), config(BIOLOGY)], ids=str)
def test_a_store_and_its_folder_are_the_same_bytes_after_a_dry_run(
    in_file: str, folder: Path, busy: Cluster, new: Config, cycles: int
) -> None:
    before = steer(in_file, busy, config())
    as_files = files(folder)
    assert as_files.keys() == {"store.db"}
    busy.wait(500)
    busy.submit("biology", processing_time=9)
    busy.writes.clear()
    output = dry_run(in_file, busy, new, cycles)
    assert len(output) == cycles
    assert output[0].pushes
    assert busy.writes == []
    assert files(folder) == as_files
    assert content(in_file) == before


@pytest.mark.parametrize("kind", SERVERS)
def test_a_store_on_a_server_is_the_same_after_a_dry_run(
    busy: Cluster, databases: Databases, kind: str
) -> None:
    with databases.empty(kind) as url:
        (first,) = dry_run(url, busy, config(EMPTY, BIOLOGY))
        assert first.is_new
        with Store.open(url, any_revision=True) as store:
            assert store.revision() is None
        before = steer(url, busy, config())
        busy.wait(500)
        busy.submit("biology", processing_time=9)
        output = dry_run(url, busy, config(BIOLOGY, EMPTY), cycles=2)
        assert output[0].pushes
        assert {move.name for move in output[0].moves} == {"a1", "a2", "physics"}
        assert content(url) == before


def test_a_dry_run_that_fails_leaves_no_trace_either(
    in_file: str, folder: Path, busy: Cluster, temporary: Path
) -> None:
    steer(in_file, busy, config())
    as_files = files(folder)
    busy.skew = -1000
    with pytest.raises(Exception, match="behind the last cycle"):
        dry_run(in_file, busy, config())
    assert files(folder) == as_files
    assert list(temporary.iterdir()) == []


def test_a_store_of_an_older_release_is_refused_and_not_upgraded(
    in_file: str, folder: Path, busy: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    steer(in_file, busy, config())
    as_files = files(folder)
    monkeypatch.setattr("shapleyprio.store.migrations.HEAD", "9999")
    with pytest.raises(StoreSchemaError, match=rf"{folder}.*run `shapleyprio db upgrade`"):
        dry_run(in_file, busy, config())
    assert files(folder) == as_files


def test_an_empty_file_stays_empty(in_file: str, folder: Path, busy: Cluster) -> None:
    (folder / "store.db").touch()
    (output,) = dry_run(in_file, busy, config())
    assert output.is_new
    assert [file.stat().st_size for file in folder.iterdir()] == [0]


def test_the_copy_is_deleted_and_was_for_nobody_elses_eyes(
    url: str, busy: Cluster, temporary: Path
) -> None:
    steer(url, busy, config())
    with rehearse(url, [NAME], lambda _: None) as rehearsal:
        (place,) = temporary.iterdir()
        assert place.stat().st_mode & 0o777 == 0o700
        assert rehearsal.url.startswith(f"sqlite:///{place}/")
    assert list(temporary.iterdir()) == []


# -- only reading


def as_nobody(action: Callable[[], object]) -> str:
    """What came of an action in a process of a user without rights: its error, if any."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = ""
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            action()
        except BaseException as error:  # noqa: BLE001  # the parent gets it
            answer = f"{type(error).__name__}: {error}"
        with suppress(OSError):
            os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as end:
        return end.read()


@pytest.fixture
def open_to_all(
    place: Path, temporary: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody may read the store and make copies."""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    for entered in (place, folder):
        entered.chmod(0o755)
    temporary.chmod(0o777)
    known = version("shapleyprio")  # others may not be able to read the checkout
    monkeypatch.setattr("shapleyprio.daemon.steering.metrics.version", lambda _: known)


@pytest.mark.usefixtures("open_to_all")
@pytest.mark.parametrize(
    "daemon", ["there is no daemon", "a daemon has it open", "a daemon was killed"]
)
def test_the_right_to_read_the_store_is_enough(
    in_file: str, folder: Path, busy: Cluster, daemon: str
) -> None:
    def dry() -> None:
        (output,) = dry_run(in_file, busy, config(BIOLOGY, PHYSICS))
        assert not output.is_new
        assert output.since == busy.now

    steer(in_file, busy, config())
    with ExitStack() as stack:
        if daemon != "there is no daemon":
            child = stack.enter_context(in_the_middle_of_a_transaction(in_file))
            if daemon == "a daemon was killed":
                kill(child)
        as_files = files(folder)
        assert ("store.db-wal" in as_files) == (daemon != "there is no daemon")
        assert as_nobody(dry) == ""
        assert files(folder) == as_files


@contextmanager
def in_the_middle_of_a_transaction(url: str) -> Iterator[int]:
    """A process that has written what is in SQLite's log only, and is writing more."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        store = Store.open(url)
        for number in range(2):
            with store.cluster(NAME).transaction() as transaction:
                take_away(transaction, str(number))
                if number:
                    os.write(writing, b"ready")
                    signal.pause()
    os.read(reading, 5)
    try:
        yield child
    finally:
        kill(child)


def kill(child: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.usefixtures("open_to_all")
def test_a_store_that_may_not_be_read_is_named(in_file: str, folder: Path, busy: Cluster) -> None:
    steer(in_file, busy, config())
    (folder / "store.db").chmod(0o600)
    output = as_nobody(lambda: dry_run(in_file, busy, config()))
    assert output == f"StoreUnreachableError: store {folder}/store.db: the file must be readable"
    folder.chmod(0o700)
    output = as_nobody(lambda: dry_run(in_file, busy, config()))
    assert output == f"StoreUnreachableError: store {folder}/store.db: Permission denied"


def test_a_place_where_no_copy_can_be_made_is_named(
    url: str, busy: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    steer(url, busy, config())
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    with pytest.raises(StoreError, match=r"no copy of the store .*/nonexistent.*TMPDIR"):
        dry_run(url, busy, config())


def test_what_was_changed_while_it_was_read_is_not_trusted(
    in_file: str, folder: Path, busy: Cluster
) -> None:
    steer(in_file, busy, config())
    store = Store.open_existing(in_file)
    assert store is not None
    with store:
        view = store.cluster(NAME).reading()
        opened = view.__enter__()
        opened.ledger.tenures()
        with closing(sqlite3.connect(folder / "store.db")) as other, other:
            other.execute("DELETE FROM cycle")
        with pytest.raises(StoreError, match="was changed while it was read; try again"):
            view.__exit__(None, None, None)


# -- beside a daemon


def test_a_dry_run_neither_takes_nor_needs_the_lease_of_the_daemon_that_steers(
    url: str, busy: Cluster
) -> None:
    with Store.open(url, create=True) as store:
        steers = make_daemon(busy, config(), store.cluster(NAME))
        steers._lease.take()
        steers._cycles.run()
        before = content(url)
        (output,) = dry_run(url, busy, config(BIOLOGY, PHYSICS))
        assert [one.status.organization for one in output.standings] == ["physics", "biology"]
        assert content(url) == before
        with store.cluster(NAME).reading() as view:
            assert view.lease.read() is not None


def test_a_dry_run_reads_while_the_daemon_writes_and_the_daemon_does_not_wait(
    url: str, busy: Cluster
) -> None:
    steer(url, busy, config())
    with Store.open(url) as store:
        with store.cluster(NAME).transaction() as transaction:
            transaction.prune_history(busy.now + 1, pushes_before=busy.now + 1)
            (output,) = dry_run(url, busy, config())
            assert output.since == busy.now
        original = Store.open_existing(url)
        assert original is not None
        with original, original.cluster(NAME).reading() as view:
            assert view.ledger.watermark() is not None
            with store.cluster(NAME).transaction() as transaction:
                take_away(transaction)
            lease = view.lease.read()
            assert lease is None or lease.holder != "other"


def test_a_long_dry_run_follows_what_the_daemon_beside_writes(url: str, busy: Cluster) -> None:
    on_nice = config(push={"channel": "nice"})
    output: list[Forecast] = []
    with Store.open(url, create=True) as store, rehearse(url, [NAME], output.extend) as rehearsal:
        dry = make_daemon(busy, on_nice, rehearsal.store, dry_run=rehearsal)
        dry.run_once()
        make_daemon(busy, on_nice, store.cluster(NAME)).run_once()
        dry.run_once()
    first, second = output
    assert [(push.key, push.original, push.new) for push in first.pushes] == [("2", 3, 3 - FIRST)]
    assert second.pushes == []
    assert (first.is_new, second.is_new) == (True, False)


# -- what it shows


def test_a_new_configuration_is_compared_with_the_last_standings(url: str, busy: Cluster) -> None:
    steer(url, busy, config())
    new = config(BIOLOGY, {"name": "guests", "accounts": ["guest"], "partitions": ["pa"]})
    busy.wait(10)
    (output,) = dry_run(url, busy, new)
    assert {name: one.rank for name, one in output.before.items()} == {"physics": 1, "biology": 2}
    assert output.before["physics"].status.priority == FIRST
    assert output.t == busy.now
    assert output.since == busy.now - 10
    assert list(output.moves) == [
        Move(kind="account", name="guest", before="", after="guests", since=busy.now),
        Move(kind="account", name="physics", before="physics", after="", since=busy.now),
        Move(kind="node", name="a1", before="physics", after="guests", since=busy.now),
        Move(kind="node", name="a2", before="physics", after="guests", since=busy.now),
    ]
    assert output.writes == {"guests": 1, "": 1}  # physics's job is nobody's now: put back


def test_a_queue_without_jobs_still_has_its_ranking(url: str, slurm: Cluster) -> None:
    (output,) = dry_run(url, slurm, config())
    assert [one.status.organization for one in output.standings] == ["physics", "biology"]
    assert [one.status.priority for one in output.standings] == [FIRST, LAST]
    assert list(output.pushes) == []


def test_a_dry_run_of_a_configuration_shows_what_the_real_cycle_then_does(
    url: str, slurm: Cluster, store: Store
) -> None:
    service = Service(slurm, store)
    slurm.fill("biology")
    jobs = [slurm.submit("physics", processing_time=9) for _ in range(3)]
    slurm.wait(100)
    (output,) = dry_run(url, slurm, config())
    report = service.run()
    assert list(output.pushes) == list(report.plan.pushes)
    assert {push.key for push in output.pushes} == {str(job) for job in jobs}
    assert standings(output) == {
        row.organization: (row.contribution, row.utility) for row in report.ranked.standings
    }
