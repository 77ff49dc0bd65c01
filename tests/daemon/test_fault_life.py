"""Whatever happens to Slurm, its clock, the store and the daemon, the ledger is exact in the end.

Most daemons die within this process, by an exception that no handler of errors sees: what is
committed stays, all else is undone, and the next one knows only what is stored. That is what
SIGKILL leaves, but for the database's own recovery, so a few lives kill real processes, and on
servers one in twelve kills the server. In one in twelve the rule is `shapley`, every fault happens
to the estimator, and no cycle ranks by another estimate than the one from scratch. A full disk and
a read-only one are what the database says of them, and in one life in twelve on SQLite a small
file-system of its own.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.daemon.faults.cluster import Moments
from tests.daemon.faults.daemon import LivingDaemon
from tests.daemon.faults.life import Life
from tests.daemon.faults.literal import worth_and_young_parts
from tests.daemon.faults.processes import ProcessDaemon
from tests.daemon.faults.reckoning import check_everything
from tests.daemon.faults.stores import FaultyStore, small_disk
from tests.fairness.examples import worth_by_parts
from tests.store.servers import file_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapleyprio.config import Config
    from tests.daemon.faults.cluster import FaultyCluster
    from tests.daemon.faults.daemon import AnyDaemon
    from tests.store.servers import Databases

SPECIAL_EVERY, PROCESSES_EVERY, ESTIMATES_EVERY = 12, 24, 12
"""So many rounds of the databases have one of special lives among them."""

DATABASES = ["sqlite", "postgresql", "sqlite", "sqlite", "mariadb", "sqlite"]
"""Of the lives one after the other. Those on a server take several times as long."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Seeds from 0 on, on one kind of database after the other."""
    if "seed" in metafunc.fixturenames:
        lives = [
            pytest.param(
                kind,
                seed,
                id=f"{kind}-{seed}",
                marks=[] if kind == "sqlite" else [pytest.mark.real_server],
            )
            for seed in range(metafunc.config.getoption("--faults"))
            for kind in [DATABASES[seed % len(DATABASES)]]
        ]
        metafunc.parametrize(("kind", "seed"), lives)


@given(
    begin=st.integers(0, 50),
    length=st.integers(0, 40),
    later=st.integers(0, 60),
    horizon=st.none() | st.integers(1, 60),
)
def test_the_literal_ledger_sums_over_the_parts(
    begin: int, length: int, later: int, horizon: int | None
) -> None:
    end = begin + length
    t = end + later
    ages = [t - part for part in range(begin, end)]
    young = sum(horizon is None or age <= horizon for age in ages)
    worth = worth_by_parts(begin, end, t, horizon)
    assert worth_and_young_parts(begin, end, t, horizon) == (worth, young)


@pytest.fixture(scope="module")
def urls(databases: Databases) -> Iterator[dict[str, str]]:
    """Kind of server -> URL of its store, which all lives share; made when first asked for."""
    with ExitStack() as opened:
        yield _Urls(databases, opened)


class _Urls(dict[str, str]):
    def __init__(self, databases: Databases, opened: ExitStack) -> None:
        super().__init__()
        self._databases = databases
        self._opened = opened

    def __missing__(self, kind: str) -> str:
        self[kind] = url = self._opened.enter_context(self._databases.made(kind))
        return url


@pytest.fixture(scope="module")
def empty_file(databases: Databases) -> Iterator[Path]:
    with databases.made("sqlite") as url:
        yield file_of(url)


@contextmanager
def store_of(
    kind: str,
    number: int,
    databases: Databases,
    urls: dict[str, str],
    empty_file: Path,
    place: Path,
) -> Iterator[FaultyStore]:
    with ExitStack() as used:
        special = number % SPECIAL_EVERY == 0
        disk, kill = None, None
        if kind == "sqlite":
            if special:
                disk = used.enter_context(small_disk(place / "disk"))
            file = (disk or place) / "store.db"
            shutil.copy(empty_file, file)
            url = f"sqlite:///{file}"
        else:
            url = urls[kind]
            kill = (lambda: databases.kill(kind)) if special else None
        store = FaultyStore(kind, url, Moments(), disk=disk, kill=kill)
        used.callback(store.close)
        yield store


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shapleyprio.store.cluster_store.LONGEST_PAUSE_SECONDS", 0.0)


def test_a_life_of_faults_ends_with_the_exact_ledger(
    kind: str,
    seed: int,
    databases: Databases,
    urls: dict[str, str],
    empty_file: Path,
    tmp_path: Path,
) -> None:
    number = seed // len(DATABASES)
    with (
        store_of(kind, number, databases, urls, empty_file, tmp_path) as store,
        ExitStack() as ends,
    ):

        def begin(config: Config, slurm: FaultyCluster, name: str) -> AnyDaemon:
            journal = tmp_path / "journal" if life.has_journal else None
            daemon: AnyDaemon
            if number % PROCESSES_EVERY != 1:
                daemon = LivingDaemon(config, slurm, store.open(), name, journal, life.estimation)
            else:
                daemon = ProcessDaemon(config, slurm, store.url, name, journal)
            ends.callback(daemon.kill)
            return daemon

        life = Life(seed, store, begin, estimates=number % ESTIMATES_EVERY == 2)
        estimation = life.estimation
        try:
            life.live()
            if estimation is not None:
                # how often is chance: the estimator is slow on a busy machine, too
                assert 3 * estimation.ranked[True] > estimation.ranked[False], estimation.ranked
            life.settle()
            check_everything(life)
        except BaseException:
            print(f"life {seed} (pytest --faults {seed + 1} -k {kind}-{seed}):")
            print(*life.events, sep="\n")
            raise
