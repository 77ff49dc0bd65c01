"""Finds out whether the daemon would find on this host, and reach from it, what it needs."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

from sqlalchemy.engine import make_url

from shapleyprio.common.databases import database_url
from shapleyprio.common.shipped import find
from shapleyprio.config import Config
from shapleyprio.daemon.estimation.worker import numpy_is_missing
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout
from shapleyprio.store import Store, StoreError
from shapleyprio.store.engine import check_place


def check_host(config: Config) -> Iterator[Finding]:
    """Yields what is wrong with the store and the replays, as this user finds them.

    Nothing is written.

    Args:
        config: the configuration.
    """
    file = make_url(config.store.url).database if config.store.url.startswith("sqlite") else None
    unusable = None if file is None else _unusable("store.url", Path(file))
    journal = config.store.journal
    if journal is not None and (finding := _unusable("store.journal", journal)) is not None:
        yield finding
    if unusable is not None:
        yield unusable
    else:
        try:
            if (store := Store.open_existing(config.store.url)) is not None:
                store.close()
        except StoreError as error:
            yield Finding(
                Severity.ERROR, "store.url", str(error), "until then the daemon exits with code 4"
            )
    if config.drift.interval is not None and numpy_is_missing():
        yield Finding(
            Severity.NOTICE,
            "drift.interval",
            "numpy is missing here: nothing is replayed",
            "install the package shapleyprio-replay, or pip install 'shapleyprio[replay]', or set "
            'drift.interval to "off"',
        )


def _unusable(key: str, file: Path) -> Finding | None:
    """Returns why this user cannot keep a database of SQLite in the file that a key names."""
    try:
        check_place(file, create=True)
    except StoreError as error:
        folder, user = file.parent, pwd.getpwuid(os.geteuid()).pw_name
        remedy = (
            f"check as the daemon's user (runuser -u shapleyprio), or let {user} write there"
            if folder.is_dir()
            else f"make it: install -d -o {user} {folder}"
        )
        return Finding(Severity.ERROR, key, str(error), remedy)
    return None


UNIT = "systemd/shapleyprio.service"

MEANT = {
    "localhost": ("127.0.0.0/8", "::1/128"),
    "link-local": ("169.254.0.0/16", "fe80::/64"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
}
"""Words of systemd's IPAddressAllow= -> networks."""


def check_addresses(config: Config, layout: Layout) -> Iterator[Finding]:
    """Yields a hint for each address outside of what the unit allows.

    Args:
        config: names the database and where metrics are served.
        layout: names where Slurm's daemons are.
    """
    database = database_url(config.store.url).host
    named = [("Slurm's daemon", host) for host in layout.daemon_hosts]
    named += [("the database", database)] if database else []
    if config.metrics.address is not None:
        named.append(("metrics.address", config.metrics.address.host))
    for what, host in dict.fromkeys(named):
        outside = sorted(str(address) for address in _addresses(host) if not _allowed(address))
        if outside:
            yield Finding(
                Severity.NOTICE,
                "IPAddressAllow",
                f"{what} at {host} has an address that the daemon's unit, as it is shipped, does "
                f"not let it reach: {', '.join(outside)}",
                f"systemctl edit shapleyprio, and add IPAddressAllow={outside[0]} or its network "
                "below [Service], unless already done",
            )


@cache
def allowed_networks() -> tuple[IPv4Network | IPv6Network, ...]:
    """Returns the networks that the unit allows."""
    lines = re.findall(
        r"^IPAddressAllow=(.*)$", find(UNIT).read_text(encoding="utf-8"), re.MULTILINE
    )
    words = " ".join(lines).split()
    return tuple(ip_network(text) for word in words for text in MEANT.get(word, (word,)))


def _allowed(address: IPv4Address | IPv6Address) -> bool:
    return address.is_unspecified or any(address in network for network in allowed_networks())


def _addresses(host: str) -> set[IPv4Address | IPv6Address]:
    """Returns the addresses of a host, none if it has none that this host knows."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return set()
    return {ip_address(where[0]) for *_, where in found}
