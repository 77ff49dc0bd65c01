"""Where users find the daemon: a file that everybody reads, or one URL."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from shapleyprio.common.errors import ConfigError

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
