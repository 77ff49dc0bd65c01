"""Sockets and threads: who may connect, how often at a time, and for how long."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from ipaddress import IPv6Address, IPv6Network, ip_address
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

import structlog
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.wsgi import WSGIContainer

from shapleyprio.daemon.serving.questions import END, PEER
from shapleyprio.daemon.serving.responses import LOOPBACK, METRICS, Answer, answer_of, refusal
from shapleyprio.daemon.serving.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from wsgiref.types import WSGIApplication

    from tornado.iostream import IOStream

    from shapleyprio.config import Address

CONNECTIONS = 256
"""Most connections at a time. Those that have not asked yet make room for new ones."""

CONNECTIONS_OF_ONE = 128
"""Most of one client: as many as tornado accepts before it reads what they ask."""

REQUEST_SECONDS = 10.0
"""From the connection until the request has come as a whole."""

ANSWER_SECONDS = 90.0
"""From then until the answer has gone as a whole; `client` waits as long."""

LARGEST_HEAD = 16 * 1024
"""Bytes of a request with its headers; one with a credential of munge has some hundreds."""

LARGEST_BODY = 1024
"""Bytes; no request needs any."""

THREADS = 32
AT_ONCE = 16
"""Most requests of one client that are worked on at a time; one more is refused."""

METRICS_THREADS = 2
METRICS_AT_ONCE = 64
"""The same of the metrics, which have threads of their own: they show that something is wrong."""

QUESTIONS_AT_ONCE = 3
"""The same on the Unix socket: no user takes all turns (`questions.AT_ONCE`)."""

PROBE_SECONDS = 10.0
NAME = "shapleyprio"

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Connection:
    """A connection that is open.

    Attributes:
        client: who shares limits with whom.
        facts: what the connection itself says of both ends; no header can have these keys.
        deadline: when it is closed.
        has_asked: whether its request has come as a whole.
        is_worked_on: whether its answer is being made.
    """

    client: str
    facts: dict[str, Any]
    deadline: asyncio.TimerHandle
    has_asked: bool = False
    is_worked_on: bool = False


class _Connections(HTTPServer):
    """tornado's server, with limits for each client and a deadline for each connection.

    A connection is for one request. A client that is slow costs some memory and no thread, until
    its time is over or room is wanted for another.
    """

    def initialize(  # type: ignore[override]  # what the constructor is given
        self,
        app: WSGIApplication,
        describe: Callable[[socket.socket], tuple[str, dict[str, Any]]],
        at_once: int,
    ) -> None:
        """Takes what `__init__` of other classes does."""
        super().initialize(
            self._take,
            no_keep_alive=True,
            chunk_size=LARGEST_HEAD,
            max_header_size=LARGEST_HEAD,
            max_body_size=LARGEST_BODY,
            max_buffer_size=2 * LARGEST_HEAD,
        )
        self._app = app
        self._wsgi = WSGIContainer(app)
        self._describe = describe
        self._open: dict[IOStream, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._worked_on: Counter[tuple[str, Threads]] = Counter()  # also of clients that hung up
        self._scrapes = Threads(METRICS_THREADS, METRICS_AT_ONCE)
        self._others = Threads(THREADS, at_once)

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Takes a connection, if there is room or some can be made."""
        try:
            client, facts = self._describe(stream.socket)
        except OSError:  # it went away
            stream.close()
            return
        if not self._has_room(client):
            stream.close()
            return
        deadline = asyncio.get_running_loop().call_later(REQUEST_SECONDS, stream.close)
        self._open[stream] = _Connection(client, facts, deadline)
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Forgets a connection that has ended."""
        super().on_close(server_conn)
        self._forget(cast("Any", server_conn).stream)

    async def end(self) -> None:
        """Takes no more connections, and cuts those that are open."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in list(self._open):
            stream.close()
        self._scrapes.shutdown()
        self._others.shutdown()
        await asyncio.sleep(0)  # so that those who wait for connections see that they are closed

    def _forget(self, stream: IOStream) -> None:
        connection = self._open.pop(stream, None)
        if connection is not None:
            connection.deadline.cancel()

    def _has_room(self, client: str) -> bool:
        """Returns whether one more connection of a client may be opened, after closing another."""
        clients = [connection.client for connection in self._open.values()]
        if clients.count(client) < CONNECTIONS_OF_ONE:
            if len(clients) < CONNECTIONS:
                return True
            client = max(set(clients), key=clients.count)
        idle = [
            (connection.has_asked, stream)
            for stream, connection in self._open.items()
            if connection.client == client and not connection.is_worked_on
        ]
        if not idle:
            return False
        _, oldest = min(idle, key=lambda one: one[0])  # of those that have not asked, if any
        self._forget(oldest)
        oldest.close()
        return True

    def _take(self, request: HTTPServerRequest) -> None:
        """Has a request answered that has come as a whole."""
        stream = cast("Any", request.connection).stream
        connection = self._open.get(stream)
        if connection is None:  # closed at this moment
            return
        loop = asyncio.get_running_loop()
        connection.deadline.cancel()
        connection.deadline = loop.call_later(ANSWER_SECONDS, stream.close)
        connection.has_asked = True
        threads = self._scrapes if request.path == METRICS else self._others
        if self._worked_on[connection.client, threads] >= threads.at_once:
            why = "too many concurrent requests from this client; retry in a moment"
            busy = HTTPStatus.SERVICE_UNAVAILABLE
            _send(request, refusal(request.path, busy, why, ("Retry-After", "1")))
            return
        self._worked_on[connection.client, threads] += 1
        connection.is_worked_on = True
        task = loop.create_task(self._answer(request, connection, threads))
        self._tasks.add(task)  # an unreferenced task may vanish
        task.add_done_callback(self._tasks.discard)

    async def _answer(
        self, request: HTTPServerRequest, connection: _Connection, threads: Threads
    ) -> None:
        try:
            environ = self._wsgi.environ(request) | connection.facts
        except ValueError:  # it reads the port in Host
            answer = refusal(request.path, HTTPStatus.BAD_REQUEST, "Host is malformed")
        else:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(threads, answer_of, self._app, environ)
        finally:
            self._worked_on -= Counter([(connection.client, threads)])  # keeps none at zero
        connection.is_worked_on = False
        _send(request, answer)


class _Server:
    """Answers with an application on a thread of its own."""

    def __init__(self, listening: socket.socket, connections: _Connections) -> None:
        self._listening = listening
        self._connections = connections
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._serve, name="serving", daemon=True)
        _quiet_tornado()

    def start(self) -> None:
        """Serves until `close`."""
        self._thread.start()

    def close(self) -> None:
        """Serves no more."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)  # tornado looks for it before it runs
        self._loop.call_soon(self._connections.add_socket, self._listening)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._connections.end())
        finally:
            self._loop.close()


class Server(_Server):
    """Serves an address of the network.

    Raises:
        OSError: the address is not available.
    """

    def __init__(self, address: Address, app: WSGIApplication) -> None:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, *_, where = found[0]
        listening = _listening(family, where[:2])  # of IPv4 or IPv6
        super().__init__(listening, _Connections(app, _ends_in_network, AT_ONCE))


class LocalServer(_Server):
    """Serves a Unix socket, to which every user of this host may connect.

    The kernel says who does. A socket that a dead daemon has left is replaced.

    Raises:
        OSError: the socket is not available.
    """

    def __init__(self, path: Path, app: WSGIApplication) -> None:
        self._path = path
        if _is_dead(path):
            path.unlink()
        listening = _listening(socket.AF_UNIX, str(path))
        path.chmod(0o666)
        super().__init__(listening, _Connections(app, _user_at_end, QUESTIONS_AT_ONCE))

    def close(self) -> None:
        """Removes the socket as well, so that clients find at once that no daemon is there."""
        super().close()
        with suppress(OSError):
            self._path.unlink()


def _listening(family: int, where: Any) -> socket.socket:
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(CONNECTIONS_OF_ONE)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


def _ends_in_network(connection: socket.socket) -> tuple[str, dict[str, Any]]:
    """Returns the client of a connection, and what the application is to know of it.

    One network of IPv6 is one client, for it has more addresses than anybody can count.
    """
    address = ip_address(connection.getpeername()[0].partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    end = connection.getsockname()[:2]
    if isinstance(address, IPv6Address) and not address.is_loopback:
        client = str(IPv6Network((int(address), 64), strict=False))
    else:
        client = str(address)
    return client, {LOOPBACK: address.is_loopback, END: end}


def _user_at_end(connection: socket.socket) -> tuple[str, dict[str, Any]]:
    """Returns the user at the other end of a Unix socket, as the kernel has it."""
    credentials = struct.Struct("iII")  # process, user, group
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    number: int = credentials.unpack(raw)[1]
    return f"user {number}", {PEER: number}


def _is_dead(path: Path) -> bool:
    """Returns whether a socket without a listener is there."""
    if not path.is_socket():
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        return probe.connect_ex(str(path)) == errno.ECONNREFUSED


def _send(request: HTTPServerRequest, answer: Answer) -> None:
    status, headers, body = answer
    number, _, phrase = status.partition(" ")
    sent = HTTPHeaders()
    for name, value in (*headers, ("Server", NAME)):
        sent.add(name, value)
    sent.setdefault("Content-Length", str(len(body)))
    connection = request.connection
    assert connection is not None
    connection.write_headers(ResponseStartLine("HTTP/1.1", int(number), phrase), sent, body)
    connection.finish()


class _Quiet(logging.Handler):
    """Logs what tornado reports at the level debug: malformed HTTP must not fill the log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Notes it; what the library has failed in is our concern."""
        failed = record.name == "tornado.application" and record.levelno >= logging.ERROR
        note = log.error if failed else log.debug
        note("connection failed", why=record.getMessage(), exc_info=record.exc_info or None)


@cache
def _quiet_tornado() -> None:
    library = logging.getLogger("tornado")
    library.addHandler(_Quiet())
    library.propagate = False
