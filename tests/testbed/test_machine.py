from __future__ import annotations

import socket

import pytest

from shapleyprio.testbed import machine
from shapleyprio.testbed.errors import SlurmUnavailableHere


def test_reserved_ports_are_given_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PORTS", range(29_000, 29_020))
    with (
        machine.reserved_ports(12),
        pytest.raises(SlurmUnavailableHere, match="found no 12 adjacent free ports"),
        machine.reserved_ports(12),
    ):
        pass
    with machine.reserved_ports(12):
        pass


def test_a_daemon_can_listen_on_a_reserved_port() -> None:
    with machine.reserved_ports(1) as port, socket.create_server(("127.0.0.1", port)):
        assert not machine.all_free(port, 1)


def test_a_port_on_which_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(machine, "PORTS", range(port, port + 2))
        with pytest.raises(SlurmUnavailableHere), machine.reserved_ports(1):
            pass
