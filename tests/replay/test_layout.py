"""What is known of a log's cluster beside its jobs."""

from __future__ import annotations

from shapleyprio.replay.workloads.layout import LoggedNode, LogLayout


def test_a_node_of_two_partitions_is_in_both_and_one_of_none_in_none() -> None:
    layout = LogLayout(
        nodes={
            "n1": LoggedNode(4, ("batch", "gpu")),
            "n2": LoggedNode(8, ("batch",)),
            "n3": LoggedNode(8),
        }
    )
    assert layout.nodes_of_partitions == {"gpu": {"n1"}, "batch": {"n1", "n2"}}
