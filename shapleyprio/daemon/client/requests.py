"""One question to the daemon, and its answer."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any

from shapleyprio.common.errors import KnownError
from shapleyprio.daemon.answering.inquiries import Inquiry, InquiryAnswer, payload
from shapleyprio.daemon.client.settings import ClientSettings
from shapleyprio.slurm.access import CommandLineAccess
from shapleyprio.slurm.munge import Munge
from shapleyprio.slurm.port import SlurmError

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 90.0
"""The daemon waits for Slurm, whose commands it gives 30 s each."""

SLURM_SECONDS = 5.0
LARGEST_ANSWER = 1 << 22
"""Bytes; the answer about a user is some thousands."""

METHOD = "GET"


class DaemonError(KnownError):
    """The daemon did not answer, or refused; the message is one line."""

    def __init__(self, message: str, exit_code: int = 3) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def ask(settings: ClientSettings, inquiry: Inquiry) -> InquiryAnswer:
    """Asks the daemon.

    Raises:
        DaemonError: it is away, refused, or answered something else.
        SlurmError: munge, which proves who asks, does not answer.
    """
    munge_socket = settings.munge_socket
    if settings.socket is None and munge_socket is None:
        munge_socket = _munge_socket_of_slurm()
    connection = _connection(settings)
    try:
        connection.connect()
        headers = {"Accept": "application/json"}
        if settings.socket is None:
            host, port = connection.sock.getpeername()[:2]
            said = payload(METHOD, inquiry.target, host, port)
            headers["Authorization"] = f"Munge {Munge(munge_socket).encode(said)}"
        connection.sock.settimeout(ANSWER_SECONDS)
        connection.request(METHOD, inquiry.target, headers=headers)
        body = connection.getresponse().read(LARGEST_ANSWER)
    except (OSError, http.client.HTTPException) as error:
        raise DaemonError(
            f"the daemon at {settings.url} does not answer ({_why(error)}): if it is stopped, no "
            "daemon steers; an administrator sees why by `systemctl status shapleyprio` on its host"
        ) from None
    finally:
        connection.close()
    return _answer(settings, body)


def _answer(settings: ClientSettings, body: bytes) -> InquiryAnswer:
    try:
        read: Any = json.loads(body)
        if "error" in read:
            raise DaemonError(str(read["error"]), int(read["exit_code"]))
        lines = tuple(str(line) for line in read["lines"])
        return InquiryAnswer(read["value"], lines, int(read["exit_code"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DaemonError(
            f"the server at {settings.url} is not a daemon of shapleyprio, or one "
            "of another release"
        ) from None


def _munge_socket_of_slurm() -> Path | None:
    """Returns the socket that Slurm uses; None for munge's own where Slurm cannot be asked."""
    try:
        return CommandLineAccess(timeout_seconds=SLURM_SECONDS).authentication().munge_socket
    except SlurmError:
        return None


def _connection(settings: ClientSettings) -> http.client.HTTPConnection:
    if settings.socket is not None:
        return _LocalConnection(settings.socket)
    return http.client.HTTPConnection(settings.host, settings.port, timeout=CONNECT_SECONDS)


class _LocalConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connects to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
