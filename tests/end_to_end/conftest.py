"""Private Slurms that the modules share, and a consortium with a store of its own for each test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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


@pytest.fixture(scope="package")
def cluster_at(prepared_database: Path) -> Iterator[Callable[[int], PrivateSlurm]]:
    """Boots a cluster at the first call for its speed, with everybody's accounts and QOS."""
    clusters: dict[int, PrivateSlurm] = {}
    with ExitStack() as stack:

        def at(speed: int) -> PrivateSlurm:
            if speed not in clusters:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-"))
                slurm = PrivateSlurm(Path(folder, "c"), spec(speed), prepared=prepared_database)
                clusters[speed] = stack.enter_context(slurm)
                add_members(slurm)
            return clusters[speed]

        yield at


def add_members(slurm: PrivateSlurm) -> None:
    """Adds everybody's accounts and QOS."""
    slurm.add_accounts({**dict.fromkeys((*MEMBERS, GUESTS)), **BELOW})
    qos = ",".join(QOS)
    slurm.run("sacctmgr", "-i", "add", "qos", qos, f"priority={QOS_PRIORITY}")
    where = ("where", f"name={','.join(MEMBERS)}")
    slurm.run("sacctmgr", "-i", "modify", "account", *where, "set", f"qos=normal,{qos}")


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, cluster_at: Callable[[int], PrivateSlurm]
) -> Iterator[PrivateSlurm]:
    """The cluster on which the clock runs at the module's SPEED; empty in the end."""
    cluster = cluster_at(request.module.SPEED)
    yield cluster
    clear(cluster)


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
