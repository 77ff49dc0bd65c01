"""The application that answers each request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry, make_wsgi_app

from shapleyprio.serving.overview import Overview
from shapleyprio.serving.page import render
from shapleyprio.serving.questions import Questions, is_question
from shapleyprio.wording import visible_json

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

Headers = list[tuple[str, str]]
Answer = tuple[str, Headers, bytes]
"""Status, headers and body."""

HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"

PROTECTION: Headers = [
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'",
    ),
]
"""On every answer: nothing is kept, run or sent on."""

ODD_VERSION = re.compile(r"version=(?!\d{1,9}(\.\d{1,9}){0,3}\s*(;|,|$))", re.ASCII)
"""A version in the header Accept that is no number, over which prometheus-client stumbles."""

log = structlog.get_logger(__name__)


class App:
    """The WSGI application: three addresses, to be read only.

    Args:
        registry: metrics at ``/metrics``.
        overview: contents of the page and of ``/api/status``.
        admits: whether a request with that Authorization header may read.
        questions: answers below ``/ask/``, where users prove who they are; None for nowhere.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        overview: Callable[[], Overview],
        admits: Callable[[str], bool],
        questions: Questions | None = None,
    ) -> None:
        self._metrics: WSGIApplication = make_wsgi_app(registry)
        self._overview = overview
        self._admits = admits
        self._questions = questions
        self._routes: dict[str, Callable[[WSGIEnvironment], Answer]] = {
            "/": self._page,
            "/metrics": self._metrics_answer,
            "/api/status": self._status,
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request; what fails in it fails for this request only."""
        if self._questions is not None and is_question(environ["PATH_INFO"]):
            return self._questions(environ, start_response)
        try:
            status, headers, body = self._answer(environ)
        except Exception:
            log.exception("request failed", path=environ.get("PATH_INFO"))
            status, headers, body = _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "see the log")
        start_response(status, [*headers, *PROTECTION, ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: WSGIEnvironment) -> Answer:
        if not self._admits(environ.get("HTTP_AUTHORIZATION", "")):
            challenge = ("WWW-Authenticate", 'Basic realm="shapleyprio", charset="UTF-8"')
            return _refusal(HTTPStatus.UNAUTHORIZED, "name and password are wanted", challenge)
        route = self._routes.get(environ["PATH_INFO"])
        if route is None:
            known = ", ".join(self._routes)
            return _refusal(HTTPStatus.NOT_FOUND, f"there is {known}")
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            allowed = ("Allow", "GET, HEAD")
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "this is to be read only", allowed)
        return route(environ)

    def _metrics_answer(self, environ: WSGIEnvironment) -> Answer:
        asked = {**environ, "REQUEST_METHOD": "GET"}
        if ODD_VERSION.search(environ.get("HTTP_ACCEPT", "")):
            del asked["HTTP_ACCEPT"]
        started: list[tuple[str, Headers]] = []

        def start_response(status: str, headers: Headers, _error: object = None) -> _Write:
            started.append((status, headers))
            return _write

        body = b"".join(self._metrics(asked, start_response))
        ((status, headers),) = started
        return status, headers, body

    def _page(self, _environ: WSGIEnvironment) -> Answer:
        overview = self._overview()
        return _status_of(overview), [("Content-Type", HTML)], render(overview).encode()

    def _status(self, _environ: WSGIEnvironment) -> Answer:
        overview = self._overview()
        text = visible_json(overview.as_json())
        return _status_of(overview), [("Content-Type", JSON)], text.encode()


_Write = Callable[[bytes], object]


def _write(_data: bytes) -> object:
    raise NotImplementedError  # the old way to answer, which prometheus-client does not take


def _status_of(overview: Overview) -> str:
    return _line(HTTPStatus.OK if overview.status else HTTPStatus.SERVICE_UNAVAILABLE)


def _refusal(status: HTTPStatus, why: str, *headers: tuple[str, str]) -> Answer:
    text = f"{status.phrase}: {why}\n"
    return _line(status), [("Content-Type", TEXT), *headers], text.encode()


def _line(status: HTTPStatus) -> str:
    return f"{status.value} {status.phrase}"
