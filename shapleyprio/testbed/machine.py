"""What the private Slurm must know about the machine it runs on."""

from __future__ import annotations

import os
import pwd
import random
import socket
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path

from shapleyprio.testbed.errors import SlurmUnavailableHere

SOCKET_PATH_LIMIT = 107  # bytes, without the closing zero
PORTS = range(20_000, 32_000)  # below those Linux gives to outgoing connections


def user_name() -> str:
    """Return the name of the user this process runs as."""
    return pwd.getpwuid(os.geteuid()).pw_name


def loopback_host_name() -> str:
    """Return this machine's short host name, which must lead to the loopback interface."""
    host = socket.gethostname().split(".")[0]
    remedy = f"add the line '127.0.0.1 {host}' to /etc/hosts"
    try:
        address = socket.gethostbyname(host)
    except OSError as error:
        raise SlurmUnavailableHere(f"the host name {host} does not resolve: {remedy}") from error
    if not ip_address(address).is_loopback:
        raise SlurmUnavailableHere(f"the host name {host} leads to {address}, not 127.*: {remedy}")
    return host


def free_base_port(count: int) -> int:
    """Return a port from which on that many loopback ports are free now."""
    for _ in range(200):
        base = random.randrange(PORTS.start, PORTS.stop - count)  # noqa: S311 - not a secret
        if all_free(base, count):
            return base
    raise SlurmUnavailableHere(f"found no {count} adjacent free ports on 127.0.0.1")


def all_free(base: int, count: int) -> bool:
    """Tell whether nobody listens on these loopback ports."""
    with ExitStack() as probes:
        for port in range(base, base + count):
            probe = probes.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def check_socket_path(path: Path) -> None:
    """Refuse a UNIX socket path that the kernel would not take."""
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise SlurmUnavailableHere(
            f"{path} is longer than {SOCKET_PATH_LIMIT} bytes, too long for a socket:"
            " choose a shorter directory"
        )
