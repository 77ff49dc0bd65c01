"""What the tests of the site share: asking it over real sockets."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shapleyprio.daemon.serving import Site
from shapleyprio.lab.testbed.machine import reserved_ports
from tests.daemon.consortium import NAME, config

if TYPE_CHECKING:
    from shapleyprio.daemon.steering.metrics import Metrics
    from shapleyprio.slurm.findings import Finding
    from shapleyprio.store import Store

HOST = "127.0.0.1"


_RESERVED = ExitStack()


def free_port() -> int:
    """A port where nobody listens, and that nobody else is given while this process lives."""
    return _RESERVED.enter_context(reserved_ports(1))


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
        headers: dict[str, str] | None = None,
        client: str = HOST,
    ) -> Answer:
        connection = http.client.HTTPConnection(
            HOST, self.port, timeout=20, source_address=(client, 0)
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
