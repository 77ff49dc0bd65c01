from __future__ import annotations

from pathlib import Path

import pytest

from shapleyprio.lab.testbed.configuration import (
    ClusterPaths,
    ClusterSpec,
    cgroup_conf,
    slurm_conf,
    slurmdbd_conf,
)
from shapleyprio.slurm.releases import Release

PATHS = ClusterPaths(directory=Path("/d"), base_port=7000, user="ann", host="box")


def settings(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if not line.startswith(("Node", "Partition"))]
    return dict(line.split("=", 1) for line in lines)


def test_every_node_is_listed_once_with_a_port_of_its_own() -> None:
    spec = ClusterSpec(partitions={"x": ["a1", "a2"], "y": ["a2", "b1"]}, cpus_per_node=8)
    nodes = [line for line in slurm_conf(spec, PATHS).splitlines() if line.startswith("NodeName=")]
    assert [line.split()[0] for line in nodes] == ["NodeName=a1", "NodeName=a2", "NodeName=b1"]
    assert [line.split()[3] for line in nodes] == ["Port=7011", "Port=7012", "Port=7013"]
    assert all("CPUs=8 " in line and "NodeHostname=box " in line for line in nodes)
    assert spec.port_count == 14


def test_a_node_may_have_cpus_of_its_own() -> None:
    spec = ClusterSpec(partitions={"x": ["a1", "a2"]}, cpus_per_node=4, cpus={"a2": 9})
    nodes = [line for line in slurm_conf(spec, PATHS).splitlines() if line.startswith("NodeName=")]
    assert [("CPUs=4 " in line, "CoresPerSocket=9 " in line) for line in nodes] == [
        (True, False),
        (False, True),
    ]


def test_a_default_partition_covers_everything() -> None:
    text = slurm_conf(ClusterSpec(partitions={"x": ["a1"], "y": ["b1"]}), PATHS)
    assert "PartitionName=x Nodes=a1 State=UP" in text
    assert "PartitionName=all Nodes=a1,b1 Default=YES" in text


def test_nodes_and_partitions_may_be_as_another_slurm_conf_has_them() -> None:
    spec = ClusterSpec(
        partitions={"all": ["a1"]},
        partition_options={"all": "PriorityTier=3"},
        node_options={"a1": "Sockets=2 CoresPerSocket=3"},
    )
    node, *others = (
        line for line in slurm_conf(spec, PATHS).splitlines() if line.startswith(("Node", "Part"))
    )
    assert "Port=7011 Sockets=2 CoresPerSocket=3 State=UNKNOWN" in node
    assert others == [
        "PartitionName=all Nodes=a1 State=UP MaxTime=INFINITE DefaultTime=60 PriorityTier=3"
    ]


def test_all_state_lies_below_the_directory() -> None:
    conf = settings(slurm_conf(ClusterSpec(), PATHS))
    assert conf["StateSaveLocation"] == "/d/state"
    assert conf["AuthInfo"] == "socket=/d/munge.sock"
    assert conf["SlurmUser"] == conf["SlurmdUser"] == "ann"
    assert (conf["AccountingStoragePort"], conf["SlurmctldPort"]) == ("7000", "7010")


def test_extra_settings_replace_ours_whatever_their_case() -> None:
    extra = {"priorityweightage": "5", "PriorityFlags": "MAX_TRES", "PriorityMaxAge": ""}
    text = slurm_conf(ClusterSpec(extra=extra), PATHS)
    assert settings(text)["PriorityWeightAge"] == "5"
    assert settings(text)["PriorityFlags"] == "MAX_TRES"
    assert text.lower().count("priorityweightage=") == 1
    assert "PriorityMaxAge" not in text  # as Slurm has it


def test_guards_against_slowness_grow_with_the_clock_but_policy_does_not() -> None:
    plain = settings(slurm_conf(ClusterSpec(), PATHS))
    fast = settings(slurm_conf(ClusterSpec(speed=100), PATHS))
    assert (plain["MessageTimeout"], fast["MessageTimeout"]) == ("10", "1000")
    assert fast["SlurmdTimeout"] == "30000"
    assert fast["AuthInfo"].endswith("ttl=3600,cred_expire=12000")
    assert "bf_interval=30,bf_max_time=3000" in fast["SchedulerParameters"]
    assert fast["PriorityCalcPeriod"] == plain["PriorityCalcPeriod"]


def test_no_guard_outgrows_what_slurm_can_hold() -> None:
    fast = settings(slurm_conf(ClusterSpec(speed=1000), PATHS))
    assert fast["SlurmdTimeout"] == "60000"


def test_slurmdbd_meets_slurmctld_where_it_looks_for_it() -> None:
    conf = settings(slurmdbd_conf(ClusterSpec(speed=60), PATHS))
    assert (conf["DbdPort"], conf["StorageUser"]) == ("7000", "ann")
    assert (conf["MessageTimeout"], conf["TCPTimeout"]) == ("600", "120")


@pytest.mark.parametrize(
    ("release", "plugin"),
    [("22.05.8", "cgroup/v1"), ("23.11.0", "disabled"), ("26.05.5", "disabled")],
)
def test_no_release_looks_for_cgroups(release: str, plugin: str) -> None:
    found = Release.parse(release)
    assert found is not None
    assert cgroup_conf(found) == f"CgroupPlugin={plugin}\n"
