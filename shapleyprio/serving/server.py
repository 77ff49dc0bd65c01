"""Sockets and threads: so many connections at a time, each for a limited time."""

from __future__ import annotations

import io
import socket
import sys
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING, Any, TextIO
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import structlog

from shapleyprio.config import Address
from shapleyprio.serving.security import Security

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

CONNECTIONS = 32
"""Most connections at a time; one more is closed at once, which bounds the daemon's threads."""

TIMEOUT_SECONDS = 10.0
"""Seconds of silence after which a connection is closed."""

log = structlog.get_logger(__name__)


class _Handler(WSGIRequestHandler):
    timeout = TIMEOUT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as it is called there
        """Drops the line: Prometheus asks day and night."""

    def get_stderr(self) -> TextIO:
        """Drops the traces of clients that went away; the application logs what fails in it."""
        return io.StringIO()


class Server(ThreadingMixIn, WSGIServer):
    """Answers with an application, every connection on a thread that ends with the daemon.

    Attributes:
        security: for connections from now on.

    Raises:
        OSError: the address cannot be had.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = CONNECTIONS

    def __init__(self, address: Address, app: WSGIApplication, security: Security) -> None:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self.address_family, *_, where = found[0]
        self.security = security
        self._free = BoundedSemaphore(CONNECTIONS)
        super().__init__(where[:2], _Handler)  # type: ignore[arg-type]  # of IPv4 or IPv6
        self.set_app(app)

    def start(self) -> None:
        """Serves on a thread of its own until `close`."""
        Thread(target=self.serve_forever, name="serving", daemon=True).start()

    def close(self) -> None:
        """Takes no more connections."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begins a thread, if one is free."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers on the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answers; hands are shaken here and not at accept, where one client would stop all."""
        request.settimeout(TIMEOUT_SECONDS)
        context = self.security.tls
        if context is None:
            super().finish_request(request, client_address)
            return
        with context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Notes what went wrong with a connection."""
        error = sys.exception()
        if isinstance(error, OSError):  # it went away, was silent or speaks no TLS
            log.debug("connection failed", client=client_address[0], why=str(error))
        else:
            log.error("connection failed", client=client_address[0], exc_info=error)
