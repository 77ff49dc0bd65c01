"""What keeps a guarantee where priorities alone do not, as the lines for Slurm in the documents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from tests.end_to_end.conftest import add_members
from tests.end_to_end.consortium import ALL_CPUS, SETTINGS, Consortium, clear, spec
from tests.end_to_end.test_guarantees import GUARANTEE, MINUTE
from tests.processes import DAEMON

pytestmark = pytest.mark.real_slurm

SPEED = 60
LONG = 6 * GUARANTEE
PREEMPTION = {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}
Remedy = Callable[[PrivateSlurm], AbstractContextManager[tuple[str, ...]]]
"""While it lasts, the others submit with these arguments."""

UPDATE = ("scontrol", "update", "PartitionName=all")


@pytest.fixture(scope="module")
def cluster(
    prepared_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrivateSlurm]:
    folder = tmp_path_factory.mktemp("slurm")
    shape = replace(spec(SPEED), extra={**SETTINGS, **PREEMPTION})
    with PrivateSlurm(folder / "c", shape, prepared=prepared_database) as slurm:
        add_members(slurm)
        slurm.run("sacctmgr", "-i", "add", "qos", "guest")
        slurm.run("sacctmgr", "-i", "modify", "account", "set", "qos+=guest")
        yield slurm


@contextmanager
def longest_limit(slurm: PrivateSlurm) -> Iterator[tuple[str, ...]]:
    """Nobody stays for longer than the guarantee says."""
    slurm.run(*UPDATE, f"MaxTime={GUARANTEE // MINUTE}")
    try:
        yield (f"--time={GUARANTEE // MINUTE}",)
    finally:
        slurm.run(*UPDATE, "MaxTime=UNLIMITED")


@contextmanager
def preemption(slurm: PrivateSlurm) -> Iterator[tuple[str, ...]]:
    """The owner's jobs end those of guests."""
    slurm.run(*UPDATE, "AllowQos=guest,gamma")
    slurm.run("sacctmgr", "-i", "modify", "qos", "gamma", "set", "preempt=guest")
    try:
        yield ("--qos=guest",)
    finally:
        slurm.run(*UPDATE, "AllowQos=ALL")


@contextmanager
def reservation(slurm: PrivateSlurm) -> Iterator[tuple[str, ...]]:
    """The owner's nodes are lent to nobody but, by newer releases, root."""
    if os.geteuid() != 0:
        pytest.skip("only root can submit jobs of another user")
    slurm.run("sacctmgr", "-i", "add", "user", "daemon", "account=alpha,beta")
    words = ("ReservationName=gamma", "Accounts=gamma", "Nodes=c1", "StartTime=now")
    slurm.run("scontrol", "create", "reservation", *words, "Duration=UNLIMITED", "Flags=MAGNETIC")
    try:
        yield (f"--uid={DAEMON}",)
    finally:
        clear(slurm)
        slurm.run("scontrol", "delete", "ReservationName=gamma")


@pytest.mark.parametrize("remedy", [longest_limit, preemption, reservation])
def test_with_it_the_guarantee_is_not_broken_by_others_who_want_the_nodes_for_hours(
    consortium: Consortium,
    remedy: Remedy,
) -> None:
    cluster = consortium.cluster
    consortium.configure(poll_seconds=60, guarantee=f"{GUARANTEE}s")
    with ExitStack() as stack:
        hostile = stack.enter_context(remedy(cluster))
        stack.callback(clear, cluster)
        checked = consortium.run("check").stdout
        assert ("partition all" in checked) == (remedy is not longest_limit), checked
        seconds = GUARANTEE - MINUTE if remedy is longest_limit else LONG
        for name in ("alpha", "beta"):
            cluster.submit(name, seconds, processors=2, extra=("--array=1-20", *hostile))
        taken = ALL_CPUS - 2 * (remedy is reservation)
        consortium.until(lambda: cpus_at_work(cluster) == taken, what="others to have the nodes")
        own = ("--qos=gamma",) if remedy is preemption else ()
        job = cluster.submit("gamma", MINUTE, processors=2, extra=own)
        with consortium.daemon() as daemon:
            consortium.await_start(job)
            consortium.await_cycles(2)
            assert daemon.end() == 0
        with consortium.reading() as view:
            rows = [row for row in view.orders.exceptions(since=0) if row.organization == "gamma"]
        assert "its time was up" not in [row.ended_by for row in rows]


def cpus_at_work(cluster: PrivateSlurm) -> int:
    return sum(map(int, cluster.run("squeue", "-h", "-t", "running", "-o", "%C").split()))
