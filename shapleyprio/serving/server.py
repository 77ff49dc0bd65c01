"""Sockets and threads: so many connections at a time, each for a limited time."""

from __future__ import annotations

import errno
import io
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING, Any, TextIO
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import structlog

from shapleyprio.config import Address
from shapleyprio.serving.askers import END, PEER
from shapleyprio.serving.security import Security

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment

CONNECTIONS = 32
"""Most connections at a time; one more is closed at once, which bounds the daemon's threads."""

TIMEOUT_SECONDS = 10.0
"""Seconds of silence after which a connection is closed."""

log = structlog.get_logger(__name__)


class _Handler(WSGIRequestHandler):
    timeout = TIMEOUT_SECONDS

    def get_environ(self) -> WSGIEnvironment:
        """Adds what the connection itself says of both ends; no header can have these keys."""
        environ = super().get_environ()
        if self.connection.family == socket.AF_UNIX:
            environ[PEER] = _peer(self.connection)
        else:
            environ[END] = self.connection.getsockname()[:2]
        return environ

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as it is called there
        """Drops the line: Prometheus asks day and night."""

    def get_stderr(self) -> TextIO:
        """Drops the traces of clients that went away; the application logs what fails in it."""
        return io.StringIO()


class _BoundedServer(ThreadingMixIn, WSGIServer):
    """Answers with an application, every connection on a thread that ends with the daemon."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = CONNECTIONS

    def __init__(self, where: Any, app: WSGIApplication) -> None:
        self._free = BoundedSemaphore(CONNECTIONS)
        super().__init__(where, _Handler)
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

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Notes what went wrong with a connection."""
        error = sys.exception()
        if isinstance(error, OSError):  # it went away, was silent or speaks no TLS
            log.debug("connection failed", client=client_address[0], why=str(error))
        else:
            log.error("connection failed", client=client_address[0], exc_info=error)


class Server(_BoundedServer):
    """Serves an address of the network.

    Attributes:
        security: for connections from now on.

    Raises:
        OSError: the address cannot be had.
    """

    def __init__(self, address: Address, app: WSGIApplication, security: Security) -> None:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self.address_family, *_, where = found[0]
        self.security = security
        super().__init__(where[:2], app)  # of IPv4 or IPv6

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answers; hands are shaken here and not at accept, where one client would stop all."""
        request.settimeout(TIMEOUT_SECONDS)
        context = self.security.tls
        if context is None:
            super().finish_request(request, client_address)
            return
        with context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)


class LocalServer(_BoundedServer):
    """Serves a Unix socket, to which every user of this host may connect.

    The kernel says who does. A socket that a dead daemon has left is replaced.

    Raises:
        OSError: the socket cannot be had.
    """

    address_family = socket.AF_UNIX

    def __init__(self, path: Path, app: WSGIApplication) -> None:
        self._path = path
        self._is_ours = False
        if _is_dead(path):
            path.unlink()
        super().__init__(str(path), app)

    def server_bind(self) -> None:
        """Binds the socket; what HTTP says of the server's name is of no use here."""
        TCPServer.server_bind(self)
        self._is_ours = True
        self._path.chmod(0o666)
        self.server_name, self.server_port = "localhost", 0
        self.setup_environ()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Returns a connection, and a name for its other end, which has no address."""
        request, _ = super().get_request()
        request.settimeout(TIMEOUT_SECONDS)
        return request, ("local", 0)

    def server_close(self) -> None:
        """Closes the socket and removes it, so that clients find at once that nobody is there."""
        super().server_close()
        if self._is_ours:
            with suppress(OSError):
                self._path.unlink()


def _is_dead(path: Path) -> bool:
    """Returns whether a socket is there that nobody listens to."""
    if not path.is_socket():
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(TIMEOUT_SECONDS)
        return probe.connect_ex(str(path)) == errno.ECONNREFUSED


def _peer(connection: socket.socket) -> int:
    """Returns the number of the user at the other end of a Unix socket, as the kernel has it."""
    credentials = struct.Struct("iII")  # process, user, group
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    number: int = credentials.unpack(raw)[1]
    return number
