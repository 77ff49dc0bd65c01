"""Users' questions: who asks is proven, and each is answered to those who may know.

The kernel proves it on the Unix socket, a credential of munge on the network.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from shapleyprio.common.errors import ConfigError
from shapleyprio.common.wording import visible_json
from shapleyprio.daemon.answering.explain import NothingToExplainError
from shapleyprio.daemon.answering.inquiries import Asker, Inquiry, InquiryAnswer, payload
from shapleyprio.daemon.forecasting.live import NoForecastsError
from shapleyprio.daemon.serving.responses import failure, line
from shapleyprio.slurm.access import Authentication, CommandLineAccess, Munge, Rights
from shapleyprio.slurm.port import SlurmError, SlurmRefusedError
from shapleyprio.store import StoreError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


PEER = "shapleyprio.peer"
"""Key of the number of the user at the other end of a Unix socket."""

END = "shapleyprio.end"
"""Key of the server's own end of a connection: host and port."""

SCHEME = "Munge"
"""What the header Authorization begins with."""

KEPT_SECONDS = 60.0
"""Seconds for which rights and settings are not read again."""

MOST_KEPT = 1000
ROOT = 0

Key = TypeVar("Key")
Known = TypeVar("Known")


class UnprovenError(Exception):
    """The asker is not proven; the message says what is missing."""


class Askers:
    """Finds out who asks, and what they may see.

    Args:
        access: what Slurm knows of users.
        munge: made of the socket of munged.
        clock: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        access: CommandLineAccess,
        munge: Callable[[Path | None], Munge] = Munge,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._munge = munge
        self._authentications: _Remembered[None, Authentication] = _Remembered(clock)
        self._rights: _Remembered[str, Rights] = _Remembered(clock)
        self._accounts: _Remembered[tuple[str, str], str] = _Remembered(clock)

    def asker(self, environ: WSGIEnvironment, target: str) -> Asker:
        """Returns who sent a request.

        Args:
            environ: of the request.
            target: its path and query.

        Raises:
            UnprovenError: it brings no credential, or one that proves nothing here.
            SlurmError: munge does not answer.
        """
        number = environ.get(PEER)
        if number is None:
            number = self._by_credential(environ, target)
        try:
            name = pwd.getpwuid(number).pw_name
        except KeyError:
            raise UnprovenError(f"this host has no user with the UID {number}") from None
        return Asker(
            name,
            lambda: self._rights_of(number, name),
            lambda named: self._accounts.get(
                (name, named), lambda: self._access.account(name, named)
            ),
        )

    def _by_credential(self, environ: WSGIEnvironment, target: str) -> int:
        scheme, _, credential = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.casefold() != SCHEME.casefold():
            raise UnprovenError("a munge credential is required")
        socket = self._authentication().munge_socket
        try:
            number, said = self._munge(socket).decode(credential.strip())
        except SlurmRefusedError as error:
            raise UnprovenError(str(error)) from None
        wanted = payload(environ["REQUEST_METHOD"], target, *environ[END])
        if said != wanted:
            raise UnprovenError(
                "the credential is for another question or server (between client and daemon "
                "there must be no proxy and no other address)"
            )
        return number

    def _rights_of(self, number: int, name: str) -> Rights:
        if number in {ROOT, os.geteuid()} or number == self._authentication().slurm_user:
            return Rights(operator=True)
        return self._rights.get(name, lambda: self._access.rights(name))

    def _authentication(self) -> Authentication:
        """Returns Slurm's settings; while it is away, those that there are without any."""
        try:
            return self._authentications.get(None, self._access.authentication)
        except SlurmError:
            return self._authentications.last(None, Authentication())


class _Remembered(Generic[Key, Known]):
    """What was read of Slurm, for a while; several threads may ask."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._found: dict[Key, tuple[float, Known]] = {}

    def get(self, key: Key, read: Callable[[], Known]) -> Known:
        """Returns what was read lately, or reads it."""
        until, found = self._found.get(key, (0.0, None))
        if found is None or self._clock() >= until:
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            found = read()
            self._found[key] = (self._clock() + KEPT_SECONDS, found)
        return found

    def last(self, key: Key, default: Known) -> Known:
        """Returns what was read last, however long ago."""
        found = self._found.get(key)
        return default if found is None else found[1]


AT_ONCE = 4
"""Questions that are worked on at a time; the others wait for their turn."""

PATIENCE_SECONDS = 10.0
"""Seconds for which a question waits for its turn."""

HEADERS = [
    ("Content-Type", "application/json"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
]

log = structlog.get_logger(__name__)


class Questions:
    """The WSGI application below ``/ask/``: it proves who asks, then answers as the command would.

    Every answer is JSON: ``value``, ``lines`` and ``exit_code`` of the command, or ``error`` and
    the exit code that it would have ended with.

    Args:
        askers: finds out who asks.
        answer: a question of somebody; raises SlurmError, StoreError, NothingToExplainError,
            NoForecastsError, and ConfigError where it names a pool that there is not.
    """

    def __init__(self, askers: Askers, answer: Callable[[Inquiry, Asker], InquiryAnswer]) -> None:
        self._askers = askers
        self._answer = answer
        self._turns = BoundedSemaphore(AT_ONCE)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request; what fails in it fails for this request only."""
        headers = list(HEADERS)
        try:
            status, value = self._answered(environ)
        except Exception:
            log.exception("question failed", path=environ.get("PATH_INFO"))
            error = "the daemon failed to answer; its log says why"
            status, value = HTTPStatus.INTERNAL_SERVER_ERROR, failure(error, 3)
        if status == HTTPStatus.UNAUTHORIZED:
            headers.append(("WWW-Authenticate", SCHEME))
        body = visible_json(value).encode()
        headers.append(("Content-Length", str(len(body))))
        start_response(line(status), headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answered(self, environ: WSGIEnvironment) -> tuple[HTTPStatus, dict[str, object]]:
        path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        if environ["REQUEST_METHOD"] != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, failure("questions require GET", 2)
        try:
            inquiry = Inquiry.read(path, query)
        except ValueError as error:
            return HTTPStatus.BAD_REQUEST, failure(str(error), 2)
        if not self._turns.acquire(timeout=PATIENCE_SECONDS):
            busy = "too many questions at this moment; ask again in a minute"
            return HTTPStatus.SERVICE_UNAVAILABLE, failure(busy, 3)
        try:
            asker = self._askers.asker(environ, inquiry.target)
            answer = self._answer(inquiry, asker)
        except UnprovenError as error:
            return HTTPStatus.UNAUTHORIZED, failure(str(error), 3)
        except (NothingToExplainError, ConfigError) as error:
            return HTTPStatus.NOT_FOUND, failure(str(error), 2)
        except (SlurmError, NoForecastsError) as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, failure(str(error), 3)
        except StoreError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, failure(str(error), 4)
        finally:
            self._turns.release()
        value = {"value": answer.value, "lines": list(answer.lines), "exit_code": answer.code}
        return HTTPStatus.OK, value
