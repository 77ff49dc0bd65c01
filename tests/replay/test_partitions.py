"""Which nodes the partitions of a log have, and whose these are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shapleyprio.config import Organization
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.nodes import kept_to_partitions
from shapleyprio.replay.workloads.organizations import consortium_of
from shapleyprio.replay.workloads.workload import Workload, workload_of
from tests.replay.test_workload import consortium, log_of

PHYSICS = Organization(name="physics", accounts=("physics",), nodes=("n[1-2]",))
BIOLOGY = Organization(name="biology", accounts=("biology",), nodes=("n3",))


def kept(**columns: Any) -> Workload:
    log = log_of(
        [0, 0, 20, 40],
        start=[0, 0, 20, 40],
        processors=[2, 1, 4, 1],
        account=["physics", "biology", "physics", "biology"],
        **columns,
    )
    members = consortium_of(log, [PHYSICS, BIOLOGY])
    return kept_to_partitions(log, members, workload_of(log, members))


def test_a_bay_is_nodes_that_are_in_exactly_the_same_partitions() -> None:
    bays = kept(partition=["a", "b", "b", "a"], nodes=["n1", "n3", "n[2-3]", "n2"]).bays
    assert bays is not None
    assert bays.partitions == ("", "a", "b")
    # n1 is in a alone, n3 in b alone, n2 in both, which comes last
    assert bays.reach.tolist() == [[True] * 3, [True, False, True], [False, True, True]]
    assert bays.owned.tolist() == [[2, 0], [0, 2], [2, 0]]
    assert [bays.partitions[code] for code in bays.partition] == [
        "a",
        "b",
        "b",
        "a",
    ]
    assert bays.named == {"a": 4, "b": 4}


def test_jobs_without_a_partition_may_run_anywhere() -> None:
    bays = kept(partition=["a", "b", None, "a"], nodes=["n1", "n3", "n[2-3]", "n2"]).bays
    assert bays is not None
    assert bays.processors[bays.partition].tolist() == [4, 6, 2, 4]


def test_where_every_partition_has_all_nodes_nothing_is_confined() -> None:
    assert kept(partition=["a", "a", "a", "a"], nodes=["n1", "n3", "n[2-3]", "n2"]).bays is None


def test_processors_that_the_file_gives_are_spread_as_those_in_use() -> None:
    log = log_of(
        [0, 0, 20],
        start=[0, 0, 20],
        processors=[2, 1, 1],
        partition=["a", "b", "b"],
        nodes=["n1", "n2", "n2"],
    )
    members = consortium([0, 1, 1], owned=[6, 3])
    bays = kept_to_partitions(log, members, workload_of(log, members)).bays
    assert bays is not None
    assert bays.owned.tolist() == [[4, 2], [2, 1]]


def test_what_cannot_run_in_its_partition_is_left_out() -> None:
    log = log_of(
        [0, 0, 20],
        start=[0, 0, 20],
        processors=[2, 1, 1],
        partition=["a", "b", "b"],
        nodes=["n1", "n3", "n3"],
        account=["physics", "physics", "biology"],
    )
    members = consortium_of(log, [PHYSICS])
    workload = kept_to_partitions(log, members, workload_of(log, members, wide="rigid"))
    assert workload.left_out["partition_without_processors"] == 1
    assert workload.processors.tolist() == [2]


def test_a_rigid_job_wider_than_its_partition_is_left_out() -> None:
    log = log_of(
        [0, 0, 20],
        start=[0, 0, -1],
        processors=[2, 1, 2],
        partition=["a", "b", "b"],
        nodes=["n1", "n3", "n3"],
    )
    members = consortium([0, 0, 0], owned=[3])
    workload = kept_to_partitions(log, members, workload_of(log, members, wide="rigid"))
    assert workload.left_out["too_wide"] == 1
    assert np.sort(workload.processors).tolist() == [1, 2]


@pytest.mark.parametrize("columns", [{}, {"partition": ["a", "b"]}, {"nodes": ["n1", "n2"]}])
def test_a_log_without_nodes_and_partitions_is_refused(columns: dict[str, Any]) -> None:
    log = log_of([0, 0], **columns)
    members = consortium([0, 0])
    with pytest.raises(WorkloadError, match="leave --respect-partitions out"):
        kept_to_partitions(log, members, workload_of(log, members))
