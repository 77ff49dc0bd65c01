"""A site on real sockets, in front of the consortium's store."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from shapleyprio.service.metrics import Metrics
from shapleyprio.slurm.findings import Finding, Severity
from tests.service.conftest import service, slurm, steered, store
from tests.service.consortium import NAME, Service
from tests.serving.sites import Certificates, Served, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Makes certificates of this host and of a client, each its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with (Debian: openssl)")
    folder = tmp_path_factory.mktemp("tls")
    for name in ("host", "client"):
        _certificate(folder, name)
    return Certificates(folder)


def _certificate(folder: Path, name: str) -> None:
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    words = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-days", "2"]
    words += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={name}"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key)]
    subprocess.run([*words, "-out", str(certificate)], check=True, capture_output=True)
    key.chmod(0o600)
