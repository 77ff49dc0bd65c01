"""What an answer is, and how a request is refused."""

from __future__ import annotations

from http import HTTPStatus

from shapleyprio.service.inquiries import FOLDER
from shapleyprio.wording import visible_json

Headers = list[tuple[str, str]]
Answer = tuple[str, Headers, bytes]
"""Status, headers and body."""

HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"

METRICS = "/metrics"

CLIENT = "shapleyprio.client"
"""Key of the client's name: connections with one name share limits."""

USAGE, AWAY = 2, 3
"""Exit codes of a command whose question is refused."""


def is_question(path: str) -> bool:
    """Returns whether a path is one of questions."""
    return path.startswith(FOLDER)


def refusal(path: str, status: HTTPStatus, why: str, *headers: tuple[str, str]) -> Answer:
    """Returns the answer to a request that is not granted: text, or JSON for a command."""
    if is_question(path):
        code = AWAY if status >= HTTPStatus.INTERNAL_SERVER_ERROR else USAGE
        kind, text = JSON, visible_json({"error": why, "exit_code": code})
    else:
        kind, text = TEXT, f"{status.phrase}: {why}\n"
    return line(status), [("Content-Type", kind), *headers], text.encode()


def line(status: HTTPStatus) -> str:
    """Returns a status as HTTP has it.

    >>> line(HTTPStatus.NOT_FOUND)
    '404 Not Found'
    """
    return f"{status.value} {status.phrase}"
