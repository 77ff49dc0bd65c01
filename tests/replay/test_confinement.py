"""How much work of a log was kept on some of the nodes."""

from __future__ import annotations

from typing import Any

import pytest

from shapleyprio.replay.workloads.nodes import confined_share
from shapleyprio.replay.workloads.workload import Window, workload_of
from tests.replay.test_workload import consortium, log_of


def share(window: Window | None = None, **columns: Any) -> float:
    log = log_of([0, 0, 20, 20], processors=[1, 2, 1, 2], **columns)
    return confined_share(log, workload_of(log, consortium([0, 1, 0, 1]), window=window))


def test_work_of_partitions_with_fewer_nodes_than_the_log_is_confined() -> None:
    nodes = ["n[1-2]", "n1", "n3", "n2"]
    assert share(partition=["all", "one", "all", "two"], nodes=nodes) == pytest.approx(4 / 6)
    assert share(partition=["all", "one", "all", None], nodes=nodes) == pytest.approx(2 / 6)


def test_nodes_count_on_which_a_partitions_jobs_ran_outside_of_the_window() -> None:
    window = Window(start=20, length=20)
    partition, nodes = ["a", "b", "a", "b"], ["n1", "n[1-2]", "n1", "n1"]
    assert share(window, partition=partition, nodes=nodes) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"partition": ["a", "b", "a", "b"]},
        {"nodes": ["n1", "n2", "n1", "n2"]},
        {"partition": [None] * 4, "nodes": ["n1", "n2", "n1", "n2"]},
        {"partition": ["a", "b", "a", "b"], "nodes": [None] * 4},
        {"partition": ["a"] * 4, "nodes": ["n1", "n2", "n1", "n2"]},
    ],
)
def test_where_the_log_shows_no_confinement_there_is_none(columns: dict[str, Any]) -> None:
    assert share(**columns) == 0.0
