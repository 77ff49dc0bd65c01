"""A real Slurm whose accounts begin with the usage that they had elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shapleyprio.lab.rehearsal.usage import earn
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec

pytestmark = pytest.mark.real_slurm

USAGE = {"physics": 7_200_000.0, "biology": 1_800_000.0}


def test_accounts_begin_with_the_usage_of_before(
    boot_slurm: Callable[[ClusterSpec], PrivateSlurm],
) -> None:
    spec = ClusterSpec(speed=100, extra={"PriorityWeightFairshare": "1000"})
    slurm = boot_slurm(spec)
    slurm.add_accounts(dict.fromkeys((*USAGE, "guests")))
    slurm.run("sacctmgr", "-i", "add", "qos", "usage")
    for account in USAGE:
        where = ("where", f"name={account}", "set", "qos=normal,usage")
        slurm.run("sacctmgr", "-i", "modify", "account", *where)
    earn(slurm, USAGE, "usage", partition="pa", memory=False)

    def known() -> dict[str, int]:
        rows = slurm.run("sshare", "-a", "-n", "-P", "-o", "Account,User,RawUsage").split()
        cells = (row.split("|") for row in rows)
        return {account: int(used) for account, user, used in cells if not user}

    slurm.wait_until(lambda: known()["biology"] > 0, real_seconds=60, what="usage")
    found = known()
    assert found["guests"] == 0
    tolerance = max(USAGE.values()) / 20  # it decays, and each job ends a moment late
    for account, used in USAGE.items():
        assert found[account] == pytest.approx(used, abs=tolerance)
