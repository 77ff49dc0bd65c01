"""What an answer is, and how a request is refused."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from shapleyprio.common.wording import visible_json
from shapleyprio.daemon.answering.inquiries import FOLDER

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment

Headers = list[tuple[str, str]]
Answer = tuple[str, Headers, bytes]
"""Status, headers and body."""

HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"

METRICS = "/metrics"

LOOPBACK = "shapleyprio.loopback"
"""Key of whether the connection comes from this host, over loopback."""

USAGE, AWAY = 2, 3
"""Exit codes of a command whose question is refused."""


def is_question(path: str) -> bool:
    """Returns whether a path is one of questions."""
    return path.startswith(FOLDER)


def refusal(path: str, status: HTTPStatus, why: str, *headers: tuple[str, str]) -> Answer:
    """Returns the answer to a request that is not granted: text, or JSON for a command."""
    if is_question(path):
        code = AWAY if status >= HTTPStatus.INTERNAL_SERVER_ERROR else USAGE
        kind, text = JSON, visible_json(failure(why, code))
    else:
        kind, text = TEXT, f"{status.phrase}: {why}\n"
    return line(status), [("Content-Type", kind), *headers], text.encode()


def failure(why: str, code: int) -> dict[str, object]:
    """Returns what a command reads whose question is not answered: why, and its exit code."""
    return {"error": why, "exit_code": code}


def answer_of(app: WSGIApplication, environ: WSGIEnvironment) -> Answer:
    """Returns what an application answers."""
    started: list[tuple[str, Headers]] = []

    def start_response(
        status: str, headers: Headers, _error: object = None
    ) -> Callable[[bytes], object]:
        started.append((status, headers))
        return _write

    body = b"".join(app(environ, start_response))
    ((status, headers),) = started
    return status, headers, body


def _write(_data: bytes) -> object:
    raise NotImplementedError  # the old way to answer, which no application here takes


def line(status: HTTPStatus) -> str:
    """Returns a status as HTTP has it.

    >>> line(HTTPStatus.NOT_FOUND)
    '404 Not Found'
    """
    return f"{status.value} {status.phrase}"
