"""What is taken over from slurm.conf, what is listed as left out, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapleyprio.lab.rehearsal.site_files import LARGEST_FILE, SiteError
from shapleyprio.lab.rehearsal.slurm_conf import SiteConf, read_slurm_conf
from shapleyprio.lab.rehearsal.taken_over import enforced, scheduler_parameters
from tests.lab.rehearsal.site_files import SLURM_CONF, write_site

SMALL = "NodeName=n1 CPUs=4\nPartitionName=all Nodes=n1\n"


def conf_of(folder: Path, text: str = SMALL) -> SiteConf:
    (folder / "slurm.conf").write_text(text)
    return read_slurm_conf(folder / "slurm.conf")


@pytest.fixture
def conf(tmp_path: Path) -> SiteConf:
    write_site(tmp_path)
    return read_slurm_conf(tmp_path / "slurm.conf")


def test_what_orders_jobs_is_taken_over_from_the_file_and_what_it_includes(conf: SiteConf) -> None:
    settings = conf.settings
    assert settings["PriorityWeightFairshare"] == "50000"
    assert settings["PriorityWeightAge"] == "1000"
    assert settings["PriorityWeightQOS"] == "2000"
    assert settings["PriorityWeightTRES"] == "CPU=1000,GRES/gpu=3000"
    assert settings["SelectType"] == "select/cons_tres"
    assert settings["PreemptMode"] == "REQUEUE"
    assert "ClusterName" not in settings
    assert [file.name for file in conf.files] == ["slurm.conf", "weights.conf"]


def test_nodes_have_their_shape_and_partitions_their_nodes(conf: SiteConf) -> None:
    assert {name: node.processors for name, node in conf.nodes.items()} == dict.fromkeys(
        ("a1", "a2", "b1", "b2"), 4
    )
    assert conf.nodes["a1"].options == (
        "Sockets=2 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=60000 Weight=5 Feature=fast"
    )
    assert conf.partitions["short"].nodes == ("a1", "a2", "b1")
    assert conf.partitions["long"].nodes == ("a1", "a2", "b1", "b2")
    assert conf.default == "long"
    assert dict(conf.partitions["short"].options) == {
        "PriorityTier": "10",
        "OverSubscribe": "NO",
        "DefMemPerCPU": "2048",
    }
    assert conf.partitions["long"].options["TRESBillingWeights"] == "CPU=1.0,Mem=0.25G,GRES/gpu=8"


def test_what_is_left_out_and_might_matter_is_listed_with_its_effect(conf: SiteConf) -> None:
    left = conf.left_out
    assert set(left) == {"TopologyPlugin", "PreemptMode", "State=drain"}
    assert left["TopologyPlugin"] == "jobs on several nodes may span more switches"


def test_gpus_are_taken_over_with_their_types_and_nothing_else_of_gres(tmp_path: Path) -> None:
    conf = conf_of(
        tmp_path,
        "AccountingStorageTRES=gres/gpu,GRES/gpu:a100,license/x\n"
        "NodeName=n1 CPUs=4 Gres=gpu:a100:2(S:0-1),gpu:v100:1,bandwidth:lustre:4G\n"
        "NodeName=n2 CPUs=4 Gres=gpu\nPartitionName=p Nodes=ALL\n"
        "NodeName=n3 CPUs=4 Gres=gpu:1g.5gb:7,gpu:3g.20gb,gpu:2080ti:1(S:0)\n",
    )
    assert [node.gpus for node in conf.nodes.values()] == [
        *("gpu:a100:2,gpu:v100:1", "gpu:1", "gpu:1g.5gb:7,gpu:3g.20gb:1,gpu:2080ti:1")
    ]
    assert conf.accounted == {"gres/gpu", "gres/gpu:a100"}
    effect = "generic resources other than GPUs do not count"
    assert conf.left_out == {"Gres=bandwidth:lustre:4G": effect}


def test_a_key_that_nobody_knows_is_listed(tmp_path: Path) -> None:
    assert conf_of(tmp_path, f"Frobnicate=7\n{SMALL}").left_out == {
        "Frobnicate": "is not known to a rehearsal"
    }


def test_parameters_of_the_scheduler_are_kept_but_for_guards_and_users() -> None:
    parameters = "bf_window=9,bf_max_job_user=7,max_rpc_cnt=1,frobnicate,bf_max_time=3,preempt_x"
    kept, left = scheduler_parameters(parameters, speed=50)
    assert kept.split(",") == [
        "bf_window=9",
        "bf_max_job_assoc=7",
        "bf_max_time=1500",
        "preempt_x",
        "max_sched_time=200",
    ]
    assert [key for key, _ in left] == ["bf_max_job_user", "frobnicate"]


def test_limits_of_accounts_are_enforced_as_at_the_site() -> None:
    assert enforced("limits,qos,nojobs") == "associations,limits,qos"
    assert enforced("all") == "associations,limits,qos,safe"
    assert enforced("") == "associations"


def test_sets_of_nodes_and_absent_nodes_are_known(tmp_path: Path) -> None:
    conf = conf_of(
        tmp_path,
        "NodeName=n[1-3] CPUs=2\nNodeName=f[1-9] CPUs=2 State=FUTURE\nNodeSet=some Nodes=n[2-3]\n"
        "PartitionName=p Nodes=some,f[1-9]\n",
    )
    assert conf.partitions["p"].nodes == ("n2", "n3")
    assert set(conf.nodes) == {"n2", "n3"}
    assert conf.left_out == {"NodeName=f[1-9]": "nodes with State=FUTURE are not there"}


def test_a_set_may_be_the_nodes_with_a_feature(tmp_path: Path) -> None:
    conf = conf_of(
        tmp_path,
        "NodeSet=fast Feature=ib\nNodeSet=both Feature=ib Nodes=n4\n"
        "NodeName=n1 Feature=ib,big\nNodeName=n2 Feature=big\nNodeName=n[3-4]\n"
        "PartitionName=p Nodes=fast\nPartitionName=q Nodes=both\n",
    )
    assert conf.partitions["p"].nodes == ("n1",)
    assert conf.partitions["q"].nodes == ("n1", "n4")


WRONG = {
    "no assignment": ("NodeName=n1 CPUs=4\nhello\n", ":2: 'hello' is not a KEY=VALUE"),
    "no nodes": ("ClusterName=x\n", "has no line NodeName="),
    "no partitions": ("NodeName=n1 CPUs=4\n", "has no line PartitionName="),
    "no number": ("NodeName=n1 CPUs=four\n", ":1: CPUs: 'four' is not a number"),
    "too many processors": ("NodeName=n1 CPUs=4194304\n", ":1: CPUs: '4194304' is not a number"),
    "a large product": (
        "NodeName=n1 Sockets=4096 CoresPerSocket=4096\n" + SMALL, ":1: CPUs: 16,777,216 are more"
    ),
    "more GPUs than a node has": ("NodeName=n1 CPUs=1 Gres=gpu:65\n", ":1: Gres: '65' is not a"),
    "no host list": ("NodeName=n[1-\n", ":1: NodeName: 'n[1-' is not a list of hosts"),
    "too many hosts": ("NodeName=n[1-999999999] CPUs=1\n", ":1: NodeName: "),
    "a node that is not there": ("NodeName=n1 CPUs=4\nPartitionName=p Nodes=n2\n", ":2: Nodes: "),
    "a set of nothing": (f"{SMALL}NodeSet=some\n", ":3: Nodes: '' is not a list of hosts"),
    "a second setting": (f'PriorityMaxAge="7-0 PluginDir"\n{SMALL}', ":1: PriorityMaxAge: "),
    "a second line": (f'{SMALL}NodeName=n2 CPUs=4 Feature="a;b"\n', ":3: Feature: "),
    "a strange name": ("NodeName=n1 CPUs=4\nPartitionName=$(id) Nodes=n1\n", ":2: PartitionName: "),
    "itself": ("Include slurm.conf\n", "which is included already"),
    "what is not there": ("Include no.conf\n", "no.conf: no such file"),
    "a device": ("Include /dev/zero\n", "/dev/zero: no such file"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_cannot_be_right_is_refused_with_its_line_and_key(
    tmp_path: Path, name: str
) -> None:
    text, message = WRONG[name]
    with pytest.raises(SiteError) as caught:
        conf_of(tmp_path, text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_or_far_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "slurm.conf"
    file.write_bytes(b"NodeName=\xff\n")
    with pytest.raises(SiteError, match="is not text"):
        read_slurm_conf(file)
    with file.open("wb") as opened:
        opened.truncate(LARGEST_FILE + 1)
    with pytest.raises(SiteError, match="is it the right file"):
        read_slurm_conf(file)


def test_lines_that_a_backslash_joins_are_one(conf: SiteConf) -> None:
    assert "\\\n" in SLURM_CONF
    assert "max_rpc_cnt=160,bf_continue" in conf.settings["SchedulerParameters"]
