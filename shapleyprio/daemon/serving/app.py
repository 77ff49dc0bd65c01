"""The application that answers each request."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable
from functools import cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import structlog
from prometheus_client import CollectorRegistry, make_wsgi_app

from shapleyprio.common.wording import visible_json
from shapleyprio.daemon.serving.overview import Overview
from shapleyprio.daemon.serving.page import render
from shapleyprio.daemon.serving.questions import Questions
from shapleyprio.daemon.serving.responses import (
    HTML,
    JSON,
    LOOPBACK,
    METRICS,
    Answer,
    Headers,
    answer_of,
    is_question,
    line,
    refusal,
)


def is_ours(host: str, name: str) -> bool:
    """Returns whether a request's header Host (empty: without) is meant for this server.

    A page of an attacker can give its own name the address of this host (DNS rebinding), and the
    browser then lets it read what we answer; but it still sends that name. An address as such
    cannot be given to another.

    Args:
        host: name or address, with or without a port.
        name: by which the configuration calls it, beside those of this host.
    """
    if not host:
        return True  # no browser
    try:
        called = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    return _is_address(called) or called in _own_names() | {name.casefold()}


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@cache
def _own_names() -> frozenset[str]:
    names = {"localhost", socket.gethostname(), socket.getfqdn()}
    return frozenset(name.casefold() for name in names)


if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

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
    """The WSGI application: three addresses that this host may read, and questions of all hosts.

    No header is believed about who asks, so what a proxy on this host passes on is what everybody
    on this host gets.

    Args:
        registry: metrics at ``/metrics``.
        overview: contents of the page and of ``/api/status`` for a pool, empty for the first.
        name: by which clients may call the server, beside the names of this host.
        questions: answers below ``/ask/``, where users prove who they are; None for nowhere.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        overview: Callable[[str], Overview],
        name: str,
        questions: Questions | None = None,
    ) -> None:
        self._metrics: WSGIApplication = make_wsgi_app(registry)
        self._overview = overview
        self._name = name
        self._questions = questions
        self._routes: dict[str, Callable[[WSGIEnvironment], Answer]] = {
            "/": self._page,
            METRICS: self._metrics_answer,
            "/api/status": self._status,
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request; what fails in it fails for this request only."""
        path = environ["PATH_INFO"]
        if self._questions is not None and is_question(path):
            return self._questions(environ, start_response)
        try:
            status, headers, body = self._answer(environ)
        except Exception:
            log.exception("request failed", path=path)
            failed = HTTPStatus.INTERNAL_SERVER_ERROR
            status, headers, body = refusal(path, failed, "see the log")
        start_response(status, [*headers, *PROTECTION, ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: WSGIEnvironment) -> Answer:
        path = environ["PATH_INFO"]
        if not environ[LOOPBACK]:
            why = (
                "other hosts may only ask questions; read this through a proxy on the daemon's host"
            )
            return refusal(path, HTTPStatus.FORBIDDEN, why)
        if not is_ours(environ.get("HTTP_HOST", ""), self._name):
            why = "Host does not name this host; a proxy must send 127.0.0.1"
            return refusal(path, HTTPStatus.MISDIRECTED_REQUEST, why)
        route = self._routes.get(path)
        if route is None:
            known = ", ".join(self._routes)
            return refusal(path, HTTPStatus.NOT_FOUND, f"known paths: {known}")
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            why, allowed = "this address is read-only", ("Allow", "GET, HEAD")
            return refusal(path, HTTPStatus.METHOD_NOT_ALLOWED, why, allowed)
        return route(environ)

    def _metrics_answer(self, environ: WSGIEnvironment) -> Answer:
        asked = {**environ, "REQUEST_METHOD": "GET"}
        if ODD_VERSION.search(environ.get("HTTP_ACCEPT", "")):
            del asked["HTTP_ACCEPT"]
        return answer_of(self._metrics, asked)

    def _page(self, environ: WSGIEnvironment) -> Answer:
        overview = self._overview(_pool(environ))
        return _status_of(overview), [("Content-Type", HTML)], render(overview).encode()

    def _status(self, environ: WSGIEnvironment) -> Answer:
        overview = self._overview(_pool(environ))
        text = visible_json(overview.as_json())
        return _status_of(overview), [("Content-Type", JSON)], text.encode()


def _pool(environ: WSGIEnvironment) -> str:
    """Returns the pool that a request names; empty if it names none."""
    pools: list[str] = parse_qs(environ.get("QUERY_STRING", "")).get("pool", [""])
    return pools[0]


def _status_of(overview: Overview) -> str:
    return line(HTTPStatus.OK if overview.status else HTTPStatus.SERVICE_UNAVAILABLE)
