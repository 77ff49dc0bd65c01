"""A site on real sockets, in front of the consortium's store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.slurm.findings import Finding, Severity
from tests.daemon.conftest import service, slurm, steered, store
from tests.daemon.consortium import NAME, Service
from tests.daemon.serving.sites import Served, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["service", "slurm", "steered", "store"]

FINDING = Finding(Severity.WARNING, "accounts <b>guest</b>", "belong to nobody", "add them & go")


@pytest.fixture
def served(service: Service) -> Iterator[Served]:
    """Nothing is open yet."""
    served = Served(Metrics(NAME), service.store, free_port(), [FINDING])
    yield served
    served.site.close()


@pytest.fixture
def opened(served: Served) -> Served:
    served.open()
    return served
