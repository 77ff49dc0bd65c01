"""URLs of databases as people type them, and the drivers that they are used with."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from sqlalchemy import URL


@dataclass(frozen=True, slots=True)
class Driver:
    """How a kind of server is spoken to.

    Attributes:
        name: of the URL's scheme, as SQLAlchemy has it with its driver.
        package: that has to be there, as it is imported.
        extra: of shapleyprio that brings it.
    """

    name: str
    package: str
    extra: str


DRIVERS = {
    "postgresql": Driver("postgresql+psycopg", "psycopg", "postgresql"),
    "postgres": Driver("postgresql+psycopg", "psycopg", "postgresql"),
    "mysql": Driver("mysql+pymysql", "pymysql", "mariadb"),
    "mariadb": Driver("mariadb+pymysql", "pymysql", "mariadb"),
}
"""Scheme of a URL -> what speaks to that server, unless the scheme names a driver of its own."""

KINDS = ("sqlite", "postgresql", "mysql", "mariadb")
"""Schemes of the databases that can be used."""

SHOWN = frozenset({"charset", "connect_timeout", "host", "mode", "port", "sslmode", "unix_socket"})
"""Keys of a URL's query whose values may be seen. Drivers have many others that hold secrets."""

HIDDEN = "***"

_PASSWORD = re.compile("pass(w|$)|pwd|secret|token", re.IGNORECASE)


class DatabaseUrlError(Exception):
    """No database can be used by that URL; the message says why, and repeats nothing secret."""


def database_url(text: str) -> URL:
    """Reads the URL of a database, and completes it by the driver.

    Raises:
        DatabaseUrlError: it is none, or of no kind of database that can be used.
    """
    from sqlalchemy.exc import ArgumentError

    url = _parsed(text)
    if url is None:
        raise DatabaseUrlError("it cannot be read; write a file as sqlite:////its/path")
    if _has_torn_password(url):
        raise DatabaseUrlError("it has several @; in a password write @ as %40, and % as %25")
    driver = DRIVERS.get(url.drivername)
    if driver is not None:
        url = url.set(drivername=driver.name)
    kind = url.get_backend_name()
    if kind not in KINDS:
        raise DatabaseUrlError(f"{kind!r} cannot be used; take one of {', '.join(KINDS)}")
    try:
        url.get_dialect()
    except ArgumentError:
        raise DatabaseUrlError(
            f"{url.get_driver_name()!r} is not a driver for {kind}; leave it out"
        ) from None
    return url


def _parsed(text: str) -> URL | None:
    """Returns the URL that a text is; None if it is none."""
    # most of the time that a command takes to start, and most commands need no URL
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(text)
    except (ArgumentError, ValueError):  # of a port that is part of a password, for instance
        return None


def _has_torn_password(url: URL) -> bool:
    """Returns whether what passes for the host begins with the rest of a password."""
    return "@" in (url.host or "")


def extra_with(package: str) -> str | None:
    """Returns the extra of shapleyprio that brings a driver; None for a driver of others."""
    return next((one.extra for one in DRIVERS.values() if one.package == package), None)


def without_password(text: str) -> str:
    """Returns the text itself, or a database's URL with all that is secret in it hidden.

    >>> without_password("postgresql://fair:Xy1@db/fair?sslmode=require&sslpassword=Xy2")
    'postgresql://fair:***@db/fair?sslmode=require&sslpassword=***'
    >>> without_password("/var/log/2026.swf")
    '/var/log/2026.swf'
    >>> without_password("postgresql://fair:X@y1@db/fair")
    'postgresql://***'
    """
    if "://" not in text:
        return text
    scheme = text.partition("://")[0]
    url = _parsed(text)
    return f"{scheme}://{HIDDEN}" if url is None or _has_torn_password(url) else shown_url(url)


def holds_password(text: str) -> bool:
    """Returns whether a URL holds a password, or something of the kind in its query.

    >>> holds_password("postgresql://db/fair?sslpassword=x")
    True
    >>> holds_password("postgresql://fair@db/fair?passfile=/etc/shapleyprio/pgpass")
    False
    """
    url = database_url(text)
    return bool(url.password) or any(_PASSWORD.search(key) for key, _ in _query(url))


def shown_url(url: URL) -> str:
    """Returns a URL for people, with all that is secret in it hidden."""
    shown = url.set(query={}).render_as_string(hide_password=True)
    query = [f"{key}={value if key in SHOWN else HIDDEN}" for key, value in _query(url)]
    return shown + ("?" + "&".join(query) if query else "")


def secrets_of(url: URL) -> tuple[str, ...]:
    """Returns what is hidden of a URL."""
    found = {value for key, value in _query(url) if key not in SHOWN}
    return tuple({str(url.password or ""), *found} - {""})


def hide(secrets: Collection[str], text: str) -> str:
    """Returns a text in which none of these can be read: who knows what a driver repeats?"""
    written = {
        way(secret) for secret in secrets for way in (str, partial(quote, safe=""), quote_plus)
    }
    for word in sorted(written, key=len, reverse=True):  # one may be part of another
        text = text.replace(word, HIDDEN)
    return text


def _query(url: URL) -> list[tuple[str, str]]:
    return [
        (key, value)
        for key, values in url.query.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
