"""What `scontrol show job -d` says of a job on its nodes, whatever its user wrote into it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.slurm.command_line.jobs import can_be_counted, processors_held

START = 1_795_371_490


def shown(
    parts: str = "  Nodes=a1 CPU_IDs=0-5 Mem=0 GRES=   Nodes=b1 CPU_IDs=0 Mem=0 GRES= ",
    name: str = "wrap",
    comment: str = "",
) -> str:
    """The line of a job as Slurm 22.05 prints it, much of it left out."""
    return (
        f"JobId=1 JobName={name} UserId=root(0) Account=alpha JobState=RUNNING"
        f" SubmitTime={START} StartTime={START} EndTime=1795372210 Deadline=N/A"
        f" NodeList=a1,b1 NumNodes=2 TRES=cpu=7,node=2 CoreSpec=* JOB_GRES=(null) {parts}"
        f"MinCPUsNode=1 Features=(null) Comment={comment} Power= \n"
    )


def test_processors_are_counted_on_each_node() -> None:
    assert processors_held(shown(), "cpu", START) == {"a1": 6, "b1": 1}


def test_nodes_with_the_same_processors_share_a_part() -> None:
    parts = " Nodes=a[1-2],b3 CPU_IDs=0-3,8-11 Mem=4000 GRES=gpu:2(IDX:0,3),nic:1(IDX:0) "
    assert processors_held(shown(parts), "cpu", START) == {"a1": 8, "a2": 8, "b3": 8}
    assert processors_held(shown(parts), "gres/gpu", START) == {"a1": 2, "a2": 2, "b3": 2}
    assert processors_held(shown(parts), "gres/nic", START) == {"a1": 1, "a2": 1, "b3": 1}


def test_a_type_of_a_resource_counts_for_itself_and_for_all_types() -> None:
    parts = " Nodes=a1 CPU_IDs=0-3 Mem=0 GRES=gpu:old:2(IDX:0-1),gpu:new:1(IDX:2) "
    assert processors_held(shown(parts), "gres/gpu", START) == {"a1": 3}
    assert processors_held(shown(parts), "gres/gpu:new", START) == {"a1": 1}


def test_only_processors_and_generic_resources_are_counted() -> None:
    assert [can_be_counted(weight) for weight in ("cpu", "gres/gpu", "billing", "node")] == [
        True,
        True,
        False,
        False,
    ]


def test_another_execution_of_a_requeued_job_is_not_meant() -> None:
    assert processors_held(shown(), "cpu", START - 60) is None


FORGED = "x Nodes=b1 CPU_IDs=0-127 Mem=0 GRES= "


@pytest.mark.parametrize("where", ["name", "comment"])
@pytest.mark.parametrize(
    "text", [FORGED, f"x\nJobId=1{FORGED[1:]}", FORGED.replace("b1", "b[1-9]")]
)
def test_what_the_user_wrote_does_not_pass_for_what_slurm_says(where: str, text: str) -> None:
    assert processors_held(shown(**{where: text}), "cpu", START) is None


@given(st.text())
def test_no_text_of_a_user_changes_what_is_counted_on_a_node(text: str) -> None:
    found = processors_held(shown(name=text, comment=text), "cpu", START)
    assert found is None or {node: found[node] for node in ("a1", "b1")} == {"a1": 6, "b1": 1}


@given(st.text(alphabet="0123456789-,ab[]= NodesCPU_IMmGRE:()"))
def test_any_text_is_read_or_unclear(text: str) -> None:
    for weight in ("cpu", "gres/gpu"):
        found = processors_held(f" StartTime={START} {text}", weight, START)
        assert found is None or all(count >= 0 for count in found.values())
