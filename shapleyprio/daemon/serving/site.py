"""All that is served, as the daemon opens, renews and closes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread

import structlog
from prometheus_client import CollectorRegistry

from shapleyprio.config import Config, socket_path
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.serving.app import App
from shapleyprio.daemon.serving.checks import Checks
from shapleyprio.daemon.serving.overview import Overviews
from shapleyprio.daemon.serving.questions import Questions
from shapleyprio.daemon.serving.server import LocalServer, Server
from shapleyprio.slurm.findings import Finding
from shapleyprio.store import ClusterStore

RETRY_SECONDS = 10.0
"""From one try to have an address to the next."""

log = structlog.get_logger(__name__)


class Site:
    """The servers at ``metrics.address`` and ``service.socket``, and the checks that they show.

    An address that is not available now, such as a port that another process holds for a moment, is
    tried again and again: metrics are no reason to stop steering.

    Args:
        registry: the daemon's metrics.
        store: of the cluster it steers, what its cycles write.
        check: a configuration against the live cluster.
        questions: made of the current configuration, what users may ask; None for nothing.
        drift_trouble: why the last window was not replayed; empty if it was.
        retries: whether to try again where an address is not available.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        store: ClusterStore,
        check: Callable[[Config], Sequence[Finding]],
        questions: Callable[[Callable[[], Config]], Questions] | None = None,
        *,
        drift_trouble: Callable[[], str] = str,
        retries: bool = True,
    ) -> None:
        self._registry = registry
        self._config: Config | None = None
        self._check = check
        self._cluster = store.cluster
        self._checks = Checks(self._findings)
        self._overviews = Overviews(store, lambda: self._checks.last, drift_trouble)
        self._questions = questions and questions(self._current)
        self._retries = retries
        self._server: Server | None = None
        self._local: LocalServer | None = None
        self._closed = Event()
        self._trying = Lock()
        self._complained: set[tuple[str, str, str]] = set()

    def open(self, config: Config) -> None:
        """Serves from now on, or as soon as the addresses are available, unless they are off."""
        self._take(config)
        if config.metrics.address is not None:
            self._checks.start()
        if not self._try() and self._retries:
            Thread(target=self._try_again, name="addresses", daemon=True).start()

    def renew(self, config: Config) -> None:
        """Takes over a new configuration: all but the addresses."""
        self._take(config)
        self._checks.again()

    def close(self) -> None:
        """Serves no more."""
        self._closed.set()
        self._checks.close()
        with self._trying:
            for server in (self._server, self._local):
                if server is not None:
                    server.close()
            self._server = self._local = None

    def _take(self, config: Config) -> None:
        self._config = config
        self._overviews.poll_seconds = config.service.poll_interval
        segments = segments_of(config, self._cluster)
        self._overviews.ledgers = [segment.ledger for segment in segments]

    def _try_again(self) -> None:
        served = False
        while not served and not self._closed.wait(RETRY_SECONDS):
            served = self._try()

    def _try(self) -> bool:
        """Serves where nothing is served yet; returns whether all addresses were available."""
        with self._trying:
            return self._closed.is_set() or self._try_both()

    def _try_both(self) -> bool:
        assert self._config is not None
        address, path = self._config.metrics.address, socket_path(self._config.service.socket)
        done = True
        if address is not None and self._server is None:
            try:
                app = App(self._registry, self._overviews.latest, address.host, self._questions)
                server = Server(address, app)
            except OSError as error:
                done = self._failed("metrics.address", f"{address.host}:{address.port}", error)
            else:
                self._server = server
                server.start()
        if path is not None and self._questions is not None and self._local is None:
            try:
                local = LocalServer(path, self._questions)
            except OSError as error:
                done = self._failed("service.socket", str(path), error)
            else:
                self._local = local
                local.start()
        return done

    def _failed(self, key: str, where: str, error: OSError) -> bool:
        """Logs why nothing can be served somewhere, once for each cause."""
        found = (key, where, str(error.strerror or error))
        if found not in self._complained:
            self._complained.add(found)
            log.error(
                "cannot listen there; the daemon goes on without",
                key=key,
                address=where,
                why=found[2],
                next_try=f"every {RETRY_SECONDS} s" if self._retries else "never",
            )
        return False

    def _current(self) -> Config:
        assert self._config is not None
        return self._config

    def _findings(self) -> Sequence[Finding]:
        return self._check(self._current())
