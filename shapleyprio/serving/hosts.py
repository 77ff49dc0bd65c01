"""Names by which the server may be called."""

from __future__ import annotations

import socket
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit


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
