"""The part of the server that answers users' questions, each to those who may know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

import structlog

from shapleyprio.common.errors import ConfigError
from shapleyprio.common.wording import visible_json
from shapleyprio.daemon.answering.explain import NothingToExplainError
from shapleyprio.daemon.answering.inquiries import Asker, Inquiry, InquiryAnswer
from shapleyprio.daemon.forecasting.live import NoForecastsError
from shapleyprio.daemon.serving.identity import SCHEME, Askers, UnprovenError
from shapleyprio.daemon.serving.responses import failure, line
from shapleyprio.slurm.port import SlurmError
from shapleyprio.store import StoreError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

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
