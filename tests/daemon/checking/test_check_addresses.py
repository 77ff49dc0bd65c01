"""Addresses that the daemon's unit does not let it reach are pointed out."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network

import pytest

from shapleyprio.daemon.checking.check_host import allowed_networks, check_addresses
from shapleyprio.slurm.findings import Severity
from tests.daemon.consortium import Cluster, config

PUBLIC, PUBLIC_6 = "192.0.2.7", "2001:db8::7"


def subjects(*hosts: str, url: str = "sqlite:////s.db", metrics: str = "off") -> list[str]:
    """What the hints are about."""
    layout = replace(Cluster().layout(), daemon_hosts=hosts)
    found = list(check_addresses(config(store={"url": url}, metrics={"address": metrics}), layout))
    assert all(one.severity is Severity.NOTICE for one in found)
    assert all("IPAddressAllow=" in one.remedy for one in found)
    return [one.message.partition(" has an address")[0] for one in found]


def test_the_networks_are_those_of_the_unit_that_ships() -> None:
    for network in ("10.0.0.0/8", "127.0.0.0/8", "fc00::/7", "100.64.0.0/10"):
        assert ip_network(network) in allowed_networks()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "10.1.2.3", "fd00::1", "no.such.host."])
def test_hosts_of_private_networks_and_unknown_ones_are_passed_over(host: str) -> None:
    assert subjects(host) == []


def test_public_addresses_are_pointed_out_once_each() -> None:
    assert subjects(PUBLIC, "10.1.2.3", PUBLIC, PUBLIC_6) == [
        f"Slurm's daemon at {PUBLIC}",
        f"Slurm's daemon at {PUBLIC_6}",
    ]


def test_so_are_those_of_the_database_and_of_metrics() -> None:
    pytest.importorskip("psycopg")
    database = f"postgresql://fair@{PUBLIC}/fair"
    assert subjects(url=database) == [f"the database at {PUBLIC}"]
    assert subjects(metrics=f"{PUBLIC}:9817") == [f"metrics.address at {PUBLIC}"]
    assert subjects(url="postgresql://fair@10.0.0.1/fair", metrics="0.0.0.0:9817") == []
