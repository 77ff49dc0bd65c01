"""Attacks on the ledger that take a real Slurm: jobs over nodes of unlike sizes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapleyprio.fairness.worth import worth
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.store import StandingRow
from tests.end_to_end.consortium import CLUSTER, NODES, SETTINGS, Consortium, clear

pytestmark = pytest.mark.real_slurm

LARGE, SMALL = 8, 2


@pytest.fixture(scope="module")
def cluster(prepared_database: Path) -> Iterator[PrivateSlurm]:
    """Alpha's node is large, beta's small; both are one cluster's for all tests here."""
    spec = ClusterSpec(
        name=CLUSTER,
        partitions={name: NODES[name] for name in ("alpha", "beta")},
        cpus={"a1": LARGE, "b1": SMALL},
        extra=SETTINGS,
    )
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder, "c"), spec, prepared=prepared_database) as slurm,
    ):
        slurm.add_accounts(dict.fromkeys(("alpha", "beta")))
        yield slurm


@pytest.fixture
def consortium(cluster: PrivateSlurm, tmp_path: Path) -> Iterator[Consortium]:
    consortium = Consortium(cluster, tmp_path)
    consortium.configure(organizations=("alpha", "beta"))
    try:
        yield consortium
    finally:
        consortium.close()
        clear(cluster)


def standings(consortium: Consortium) -> dict[str, StandingRow]:
    """What stands after one more cycle."""
    consortium.once()
    with consortium.reading() as view:
        return {row.organization: row for row in view.history.latest_standings()}


def test_have_a_small_node_credited_like_a_large_one(consortium: Consortium) -> None:
    cluster = consortium.cluster
    lines = "x\nNodes=b1 CPU_IDs=0-127 Mem=0 GRES= "
    wide = cluster.submit("alpha", 3600, processors=LARGE - 1, partition="all", nodes=2)
    consortium.await_start(wide)
    forged = cluster.submit("alpha", 3600, processors=2, nodes=2, job_name=lines)
    consortium.await_start(forged)
    consortium.await_accounted(wide, forged)
    rows = standings(consortium)
    with consortium.reading() as view:
        runs = {run.key.job_id: run for run, _ in view.runs.all_runs()}
    assert (runs[wide].counted, runs[forged].counted) == (True, False)
    assert runs[wide].processors == {"a1": LARGE - 2, "b1": 1}
    assert runs[forged].processors == {"a1": 2, "b1": 0}  # in proportion, since it is unclear
    t = rows["beta"].t
    assert rows["beta"].contribution == worth(runs[wide].begin, None, t)
    assert rows["alpha"].balance == -rows["beta"].balance
