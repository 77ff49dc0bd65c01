"""What the tests of the site share: asking it over real sockets."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapleyprio.serving import Site
from shapleyprio.testbed.machine import reserved_ports
from tests.service.consortium import NAME, config

if TYPE_CHECKING:
    from shapleyprio.service.metrics import Metrics
    from shapleyprio.slurm.findings import Finding
    from shapleyprio.store import Store

HOST = "127.0.0.1"


_RESERVED = ExitStack()


def free_port() -> int:
    """A port where nobody listens, and that nobody else is given while this process lives."""
    return _RESERVED.enter_context(reserved_ports(1))


def basic(user: str, password: str) -> dict[str, str]:
    """The header that says who asks."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@dataclass(frozen=True)
class Certificates:
    folder: Path

    def settings(self, **more: Any) -> dict[str, Any]:
        return {
            "tls_certificate": str(self.folder / "host.crt"),
            "tls_key": str(self.folder / "host.key"),
            **more,
        }

    def trusting(self, *, as_client: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.folder / "host.crt"))
        if as_client:
            context.load_cert_chain(self.folder / "client.crt", self.folder / "client.key")
        return context


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """A site and how to ask it.

    Attributes:
        findings: what the next check finds, or raises.
        checks: of which configurations they were made.
    """

    metrics: Metrics
    store: Store
    port: int
    findings: list[Finding] | Exception
    checked: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site = Site(self.metrics.registry, self.store.cluster(NAME), self._check)

    def open(self, **metrics: Any) -> None:
        """Opens the site and waits until its first check is done."""
        self.site.open(self.config(**metrics))

    def config(self, **metrics: Any) -> Any:
        return config(metrics={"address": f"{HOST}:{self.port}", **metrics})

    def ask(
        self,
        path: str,
        method: str = "GET",
        tls: ssl.SSLContext | None = None,
        headers: dict[str, str] | None = None,
        client: str = HOST,
    ) -> Answer:
        ends: dict[str, Any] = {"timeout": 20, "source_address": (client, 0)}
        connection = (
            http.client.HTTPConnection(HOST, self.port, **ends)
            if tls is None
            else http.client.HTTPSConnection(HOST, self.port, context=tls, **ends)
        )
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def _check(self, config: Any) -> list[Finding]:
        self.checked.append(config)
        if isinstance(self.findings, Exception):
            raise self.findings
        return self.findings
