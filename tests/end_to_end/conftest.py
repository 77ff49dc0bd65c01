"""Private Slurms that the modules share, and a consortium with a store of its own for each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from tests.end_to_end.consortium import (
    BELOW,
    GUESTS,
    MEMBERS,
    QOS,
    QOS_PRIORITY,
    Consortium,
    NewStore,
    clear,
    spec,
)
from tests.store.servers import Databases


@contextmanager
def booted(speed: int, prepared: Path) -> Iterator[PrivateSlurm]:
    """A cluster with everybody's accounts and QOS."""
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder, "c"), spec(speed), prepared=prepared) as slurm,
    ):
        add_members(slurm)
        yield slurm


@pytest.fixture(scope="package")
def real_time(prepared_database: Path) -> Iterator[PrivateSlurm]:
    with booted(1, prepared_database) as slurm:
        yield slurm


def add_members(slurm: PrivateSlurm) -> None:
    """Adds everybody's accounts and QOS."""
    slurm.add_accounts({**dict.fromkeys((*MEMBERS, GUESTS)), **BELOW})
    qos = ",".join(QOS)
    slurm.run("sacctmgr", "-i", "add", "qos", qos, f"priority={QOS_PRIORITY}")
    where = ("where", f"name={','.join(MEMBERS)}")
    slurm.run("sacctmgr", "-i", "modify", "account", *where, "set", f"qos=normal,{qos}")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, prepared_database: Path) -> Iterator[PrivateSlurm]:
    """One on which the clock runs at the module's SPEED; a fast one is busy even if it is idle."""
    if request.module.SPEED > 1:
        with booted(request.module.SPEED, prepared_database) as slurm:
            yield slurm
        return
    slurm = request.getfixturevalue("real_time")
    yield slurm
    clear(slurm)


@pytest.fixture(scope="package")
def new_store(databases: Databases, database: str) -> Iterator[NewStore]:
    """Makes a database on the server that `--store` names; None where it names none."""
    with ExitStack() as stack:
        yield (
            lambda: None if database == "sqlite" else stack.enter_context(databases.empty(database))
        )


@pytest.fixture
def consortium(cluster: PrivateSlurm, tmp_path: Path, new_store: NewStore) -> Iterator[Consortium]:
    consortium = Consortium(cluster, tmp_path, new_store())
    try:
        yield consortium
    finally:
        consortium.close()
