"""The machine that the private Slurm runs on: its user, host name and free ports."""

from __future__ import annotations

import os
import pwd
import random
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path

from shapleyprio.lab.testbed.errors import SlurmUnavailableHere

SOCKET_PATH_LIMIT = 107  # bytes, without the closing zero
PORTS = range(20_000, 32_000)  # below those Linux gives to outgoing connections


def user_name() -> str:
    """Returns the name of the user this process runs as."""
    return pwd.getpwuid(os.geteuid()).pw_name


def loopback_host_name() -> str:
    """Returns this machine's short host name, which must lead to the loopback interface."""
    host = socket.gethostname().split(".")[0]
    remedy = f"add the line '127.0.0.1 {host}' to /etc/hosts"
    try:
        address = socket.gethostbyname(host)
    except OSError as error:
        raise SlurmUnavailableHere(f"the host name {host} does not resolve: {remedy}") from error
    if not ip_address(address).is_loopback:
        raise SlurmUnavailableHere(f"the host name {host} leads to {address}, not 127.*: {remedy}")
    return host


@contextmanager
def reserved_ports(count: int) -> Iterator[int]:
    """Yields adjacent loopback ports that no other private Slurm here is given meanwhile.

    Slurm's daemons bind them only later. Meanwhile we hold the UDP ports of the same numbers,
    which Slurm leaves alone, and no cluster is given ports of which that is not available.

    Args:
        count: how many.

    Yields:
        the first one.

    Raises:
        SlurmUnavailableHere: there are not as many.
    """
    for _ in range(200):
        base = random.randrange(PORTS.start, PORTS.stop - count)  # noqa: S311 - not a secret
        with ExitStack() as held:
            if _hold(held, socket.SOCK_DGRAM, base, count) and all_free(base, count):
                yield base
                return
    raise SlurmUnavailableHere(f"found no {count} adjacent free ports on 127.0.0.1")


def all_free(base: int, count: int) -> bool:
    """Returns whether no process listens on these loopback ports."""
    with ExitStack() as probes:
        return _hold(probes, socket.SOCK_STREAM, base, count)


def _hold(held: ExitStack, kind: socket.SocketKind, base: int, count: int) -> bool:
    """Binds these ports until the stack is closed; returns whether they were free."""
    for port in range(base, base + count):
        probe = held.enter_context(socket.socket(type=kind))
        if kind == socket.SOCK_STREAM:  # what lingers from a connection that was closed is no one
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def check_paths(directory: Path, sockets: Iterable[Path]) -> None:
    """Refuses a cluster's directory, or UNIX sockets in it, that its programs would not take."""
    if len(str(directory).split()) != 1:
        raise SlurmUnavailableHere(
            f"{directory} has a blank, which Slurm and MariaDB do not take:"
            " choose a directory without one"
        )
    for path in sockets:
        if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
            raise SlurmUnavailableHere(
                f"{path} is longer than {SOCKET_PATH_LIMIT} bytes, too long for a socket:"
                " choose a shorter directory"
            )
