from __future__ import annotations

import socket
from pathlib import Path

import psutil
import pytest

from shapleyprio.lab.testbed import machine
from shapleyprio.lab.testbed.machine import SlurmUnavailableHere


def test_reserved_ports_are_given_to_nobody_else_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with machine.reserved_ports(12) as first:
        reserved = range(first, first + 12)
        assert held_ports().issuperset(reserved)
        monkeypatch.setattr(machine, "PORTS", range(first, first + 13))  # these and no others
        with (
            pytest.raises(SlurmUnavailableHere, match="found no 12 adjacent free ports"),
            machine.reserved_ports(12),
        ):
            pass
    assert held_ports().isdisjoint(reserved)


def held_ports() -> set[int]:
    """Those of which this process keeps others away."""
    return {held.laddr.port for held in psutil.Process().net_connections("udp4")}


def test_a_daemon_can_listen_on_a_reserved_port() -> None:
    with machine.reserved_ports(1) as port, socket.create_server(("127.0.0.1", port)):
        assert not machine.all_free(port, 1)


def test_a_port_on_which_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(machine, "PORTS", range(port, port + 2))
        with pytest.raises(SlurmUnavailableHere), machine.reserved_ports(1):
            pass


@pytest.mark.parametrize(
    ("directory", "reason"),
    [
        ("/tmp/a blank", "/tmp/a blank has a blank, which .* choose a directory without one"),
        (
            f"/tmp/{'x' * 100}",
            "/munge.sock is longer than 107 bytes, .* choose a shorter directory",
        ),
    ],
)
def test_a_directory_that_slurm_would_not_take_is_refused_in_one_line(
    directory: str, reason: str
) -> None:
    with pytest.raises(SlurmUnavailableHere, match=reason):
        machine.check_paths(Path(directory), [Path(directory, "munge.sock")])
