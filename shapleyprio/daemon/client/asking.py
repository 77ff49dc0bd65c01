"""Where users find the daemon, and one question to it with its answer."""

from __future__ import annotations

import http.client
import json
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shapleyprio.common.errors import ConfigError, KnownError
from shapleyprio.daemon.answering.inquiries import Inquiry, InquiryAnswer, payload
from shapleyprio.slurm.access import CommandLineAccess, Munge
from shapleyprio.slurm.port import SlurmError

DEFAULT_FILE = Path("/etc/shapleyprio/client.toml")

DEFAULT_PORT = 9817

KEYS: Mapping[str, str] = {
    "url": "unix:/run/shapleyprio/socket",
    "munge_socket": "/run/munge/munge.socket.2",
}
"""Key of the file -> an example; only the first one is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Where the daemon is, and how to speak to it.

    Attributes:
        url: as it was given.
        socket: path of its Unix socket; None where it is asked over the network.
        host, port: its address in the network.
        munge_socket: socket of munged; None for the one that Slurm uses.
    """

    url: str
    socket: Path | None = None
    host: str = ""
    port: int = DEFAULT_PORT
    munge_socket: Path | None = None


def load_settings(path: Path) -> ClientSettings:
    """Reads the settings in a file.

    Raises:
        ConfigError: it cannot be read, or a key is not what it should be.
    """
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            [f"{path}: cannot be read ({error.strerror}); chmod a+r {path}"]
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError([f"{path}: not valid TOML ({error})"]) from None
    for key, value in read.items():
        if key not in KEYS:
            raise ConfigError([f"{path}: {key}: unknown key; known keys: {', '.join(KEYS)}"])
        if not isinstance(value, str) or not value or not value.isprintable():
            raise ConfigError([f'{path}: {key}: is not a string; write for instance "{KEYS[key]}"'])
    if "url" not in read:
        raise ConfigError([f'{path}: url: is missing; add for instance url = "{KEYS["url"]}"'])
    try:
        return settings_of(read["url"], munge_socket=_path(read, "munge_socket"))
    except ValueError as error:
        raise ConfigError([f"{path}: {error}"]) from None


def settings_of(url: str, *, munge_socket: Path | None = None) -> ClientSettings:
    """Returns the settings for a daemon with this URL.

    Args:
        url: ``http://HOST:PORT`` or ``unix:/PATH``.
        munge_socket: as in `ClientSettings`.

    Raises:
        ValueError: it is no such URL; the message is one line.

    >>> settings_of("http://head").port, settings_of("unix:/run/s").socket
    (9817, PosixPath('/run/s'))
    """
    refusal = ValueError(f"url: {url!r} is not http://HOST:PORT or unix:/PATH")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or DEFAULT_PORT
    except ValueError:
        raise refusal from None
    if parts.query or parts.fragment or parts.username:
        raise refusal
    if parts.scheme == "unix" and not parts.netloc and parts.path.startswith("/"):
        return ClientSettings(url=url, socket=Path(parts.path))
    if parts.scheme != "http" or not host or parts.path not in {"", "/"}:
        raise refusal
    return ClientSettings(url=url, host=host, port=port, munge_socket=munge_socket)


def _path(read: Mapping[str, str], key: str) -> Path | None:
    if key not in read:
        return None
    path = Path(read[key])
    if not path.is_absolute():
        raise ValueError(f"{key}: {read[key]!r} is not an absolute path")
    return path


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
