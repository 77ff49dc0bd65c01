"""URLs of databases as people type them, and the drivers that they are used with."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import URL, make_url


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


def database_url(text: str) -> URL:
    """Reads the URL of a database, and completes it by the driver.

    Raises:
        sqlalchemy.exc.ArgumentError: it is none, or of no kind of database that there is; its
            message may repeat a password.
    """
    url = make_url(text)
    driver = DRIVERS.get(url.drivername)
    if driver is not None:
        url = url.set(drivername=driver.name)
    url.get_dialect()
    return url


def extra_with(package: str) -> str | None:
    """Returns the extra of shapleyprio that brings a driver; None for a driver of others."""
    return next((one.extra for one in DRIVERS.values() if one.package == package), None)
