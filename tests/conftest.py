"""Fixtures for the whole suite: how hypothesis runs, and a private real Slurm."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import settings
from sqlalchemy import inspect

from shapleyprio.lab.testbed.cluster import PrivateSlurm, prepare_database
from shapleyprio.lab.testbed.machine import SlurmUnavailableHere, ensure_installed
from shapleyprio.store import migrations
from tests.store.servers import Databases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from shapleyprio.lab.testbed.configuration import ClusterSpec

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # workers share the cores, and its threads spin
os.environ["TZ"] = "UTC"  # times are shown in local time, and tests expect them as on CI
time.tzset()

# a shell without job control ignores it in what it runs in the background, and nohup the other; our
# processes would do the same
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# where a failure would surprise, the same examples every time; elsewhere new ones
settings.register_profile("default", deadline=None, max_examples=25, derandomize="CI" in os.environ)
# where every line is traced, a few examples reach the lines that many reach, and where Python or
# Slurm are other ones, they reach what is there
settings.register_profile("few", parent=settings.get_profile("default"), max_examples=10)
# for whoever changes what they are about
settings.register_profile("many", parent=settings.get_profile("default"), max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


_PROCESSORS = [
    *structlog.get_config()["processors"][:-1],
    # what structlog draws around a traceback by default takes a tenth of the time of all tests
    structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
]


@pytest.fixture(autouse=True)
def _logging_as_at_first() -> Iterator[None]:
    """Forgets what a command has set up, or the next test would not see what is logged."""
    structlog.configure(processors=_PROCESSORS)
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module", autouse=True)
def tables_made_once() -> Iterator[None]:
    """Gives new stores in SQLite at once the tables that the migrations have made in the first."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(migrations, "upgrade", partial(_upgrade, migrations.upgrade))
        yield


_MADE: list[str] = []


def _upgrade(migrate: Callable[[Connection], None], connection: Connection) -> None:
    if connection.dialect.name != "sqlite" or inspect(connection).get_table_names():
        migrate(connection)
    elif _MADE:
        for statement in _MADE:
            connection.exec_driver_sql(statement)
    else:
        migrate(connection)
        statements = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
        _MADE.extend(connection.exec_driver_sql(statements).scalars())
        _MADE.append(f"INSERT INTO alembic_version VALUES ('{migrations.HEAD}')")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--faults",
        type=int,
        default=18,
        metavar="N",
        help="let tests/daemon/test_fault_life.py live N lives (18)",
    )
    parser.addoption(
        "--store",
        choices=["sqlite", "postgresql", "mariadb"],
        default="sqlite",
        help="run the tests whose store is in SQLite by default on that server, and no others",
    )


@pytest.hookimpl(tryfirst=True)  # before `-m` is heeded
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--store`, leave out what would be the same as without."""
    if config.getoption("--store") != "sqlite":
        others = [item for item in items if not _is_on_any_database(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _is_on_any_database(item)]


gc.disable()  # nearly all that is made while tests are collected stays to the end


def pytest_collection_finish() -> None:
    """Leaves out what stays to the end when looking for garbage, a tenth of the time of tests."""
    gc.freeze()
    gc.enable()


def _is_on_any_database(item: pytest.Item) -> bool:
    """Whether a test's store is of the kind that `--store` says, for the test names none."""
    named = "store" in getattr(getattr(item, "callspec", None), "params", {})
    return "database" in getattr(item, "fixturenames", []) and not named


@pytest.fixture
def python_beyond_a_blank(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This Python's environment is in a folder with a blank in its name, as a checkout's may be."""
    environment = tmp_path_factory.mktemp("with") / "a blank"
    environment.symlink_to(sys.prefix)
    python = environment / Path(sys.executable).relative_to(sys.prefix)
    monkeypatch.setattr(sys, "executable", str(python))


@pytest.fixture(scope="session")
def database(pytestconfig: pytest.Config) -> str:
    """The kind of database in which a test has its store that names none."""
    kind: str = pytestconfig.getoption("--store")
    return kind


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Databases of all kinds; those of a server are skipped where it cannot be had."""
    found = Databases()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="session")
def private_slurm_programs() -> None:
    """Skip, saying why, where Slurm cannot be had; as root it is installed."""
    try:
        ensure_installed(print)
    except SlurmUnavailableHere as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def prepared_database(private_slurm_programs: None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        try:
            yield prepare_database(Path(folder))
        except SlurmUnavailableHere as reason:
            pytest.skip(str(reason))


@pytest.fixture
def boot_slurm(prepared_database: Path) -> Iterator[Callable[[ClusterSpec], PrivateSlurm]]:
    """Boot clusters in short directories; each is stopped after the test."""
    clusters: list[PrivateSlurm] = []
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:

        def boot(spec: ClusterSpec) -> PrivateSlurm:
            directory = Path(folder, str(len(clusters)))
            clusters.append(PrivateSlurm(directory, spec, prepared=prepared_database))
            clusters[-1].start()
            return clusters[-1]

        try:
            yield boot
        finally:
            for cluster in clusters:
                cluster.stop()
