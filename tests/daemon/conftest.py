"""A store, and the consortium's daemon on its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.daemon.consortium import Cluster, Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapleyprio.store import Store
    from tests.store.servers import Databases


@pytest.fixture
def store(request: pytest.FixtureRequest, databases: Databases, database: str) -> Iterator[Store]:
    """Where `on_each_database` or `on_each_server` ask for it, else where `--store` does."""
    with databases.store(getattr(request, "param", database)) as store:
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
