"""All that is served, as the daemon opens, renews and closes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address

import structlog
from prometheus_client import CollectorRegistry

from shapleyprio.config import Config, ConfigError, MetricsSection
from shapleyprio.serving.app import App
from shapleyprio.serving.checks import Checks
from shapleyprio.serving.overview import Overviews
from shapleyprio.serving.security import read_security
from shapleyprio.serving.server import Server
from shapleyprio.slurm.findings import Finding
from shapleyprio.store import ClusterStore

log = structlog.get_logger(__name__)


class Site:
    """The server at ``metrics.address``, and the checks whose findings its page shows.

    Args:
        registry: the daemon's metrics.
        store: of the cluster it steers, what its cycles write.
        check: a configuration against the live cluster.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        store: ClusterStore,
        check: Callable[[Config], Sequence[Finding]],
    ) -> None:
        self._registry = registry
        self._config: Config | None = None
        self._check = check
        self._checks = Checks(self._findings)
        self._overviews = Overviews(store, lambda: self._checks.last)
        self._server: Server | None = None

    def open(self, config: Config) -> None:
        """Serves from now on, unless ``metrics.address`` is off.

        Raises:
            ConfigError: nothing can be served there, or a file for TLS or the password is bad.
        """
        address = config.metrics.address
        if address is None:
            return
        security = read_security(config.metrics)
        app = App(self._registry, self._overviews.latest, self._admits)
        try:
            server = Server(address, app, security)
        except OSError as error:
            raise ConfigError(
                [
                    f"metrics.address: nothing can be served at {address.host}:{address.port} "
                    f'({error.strerror}); choose another, or "off"'
                ]
            ) from error
        self._server = server
        self._take(config)
        server.start()
        self._checks.start()

    def renew(self, config: Config) -> None:
        """Takes over a new configuration: all but the address, and certificates that are renewed.

        Raises:
            ConfigError: a file is bad; nothing has changed.
        """
        if self._server is not None:
            self._server.security = read_security(config.metrics)
            self._take(config)
            self._checks.again()

    def close(self) -> None:
        """Serves no more."""
        if self._server is not None:
            self._checks.close()
            self._server.close()
            self._server = None

    def _take(self, config: Config) -> None:
        self._config = config
        self._overviews.poll_seconds = config.service.poll_interval
        if remedy := _exposure(config.metrics):
            log.warning("anybody on the network may read the metrics and the page", mend=remedy)

    def _admits(self, authorization: str) -> bool:
        return self._server is not None and self._server.security.admits(authorization)

    def _findings(self) -> Sequence[Finding]:
        assert self._config is not None
        return self._check(self._config)


def _exposure(metrics: MetricsSection) -> str:
    """Returns what is missing at an address that others can reach; empty if nothing is."""
    if metrics.address is None or _is_loopback(metrics.address.host):
        return ""
    if metrics.username is None and metrics.tls_client_ca is None:
        return "set metrics.username and metrics.password_file, or metrics.tls_client_ca"
    return (
        "" if metrics.tls_certificate else "set metrics.tls_certificate: the password is in clear"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
