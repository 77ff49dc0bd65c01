"""A store, and the consortium's daemon on its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.service.consortium import Cluster, Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapleyprio.store import Store
    from tests.store.servers import Databases


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(
    request: pytest.FixtureRequest, databases: Databases, store_file: Path
) -> Iterator[Store]:
    """In SQLite, or on the server that `on_each_database` and `on_each_server` ask for."""
    with databases.store(getattr(request, "param", "sqlite"), store_file) as store:
        yield store


@pytest.fixture
def slurm() -> Cluster:
    return Cluster()


@pytest.fixture
def service(slurm: Cluster, store: Store) -> Service:
    return Service(slurm, store)


@pytest.fixture
def steered(service: Service) -> Service:
    """Biology has used the whole cluster for ten seconds, and a job of physics waits."""
    service.slurm.fill("biology")
    service.slurm.submit("physics", processing_time=9)
    service.slurm.wait(10)
    service.run()
    return service
