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


class ReservedPorts:
    """Adjacent loopback ports that no other private Slurm on this machine is given meanwhile.

    Slurm's daemons bind them only later. Until they are released we hold the UDP ports of the
    same numbers, which Slurm leaves alone, and nobody is given ports of which that cannot be had.

    Attributes:
        base: the first one.
    """

    def __init__(self, base: int, held: ExitStack) -> None:
        self.base = base
        self._held = held

    def release(self) -> None:
        """Give them back."""
        self._held.close()


def reserve_ports(count: int) -> ReservedPorts:
    """Reserve so many adjacent loopback ports that are free now."""
    for _ in range(200):
        base = random.randrange(PORTS.start, PORTS.stop - count)  # noqa: S311 - not a secret
        with ExitStack() as held:
            if _hold(held, socket.SOCK_DGRAM, base, count) and all_free(base, count):
                return ReservedPorts(base, held.pop_all())
    raise SlurmUnavailableHere(f"found no {count} adjacent free ports on 127.0.0.1")


def free_base_port(count: int) -> int:
    """Return a port from which on that many loopback ports are free now, and not reserved."""
    ports = reserve_ports(count)
    ports.release()
    return ports.base


def all_free(base: int, count: int) -> bool:
    """Tell whether nobody listens on these loopback ports."""
    with ExitStack() as probes:
        return _hold(probes, socket.SOCK_STREAM, base, count)


def _hold(held: ExitStack, kind: socket.SocketKind, base: int, count: int) -> bool:
    """Bind these ports until the stack is closed; tells whether nobody else has."""
    for port in range(base, base + count):
        probe = held.enter_context(socket.socket(type=kind))
        if kind == socket.SOCK_STREAM:  # what lingers from a connection that was closed is no one
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
