"""Which organization brought how many processors to which partitions, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from shapleyprio.store import Store, View

BATCH = ("batch",)


def capacities(view: View) -> list[tuple[str, int, int]]:
    return [
        (row.organization, row.since - BEGIN, row.processors.get(BATCH, 0))
        for row in view.observed.capacities()
    ]


def batch(**processors: int) -> dict[str, dict[tuple[str, ...], int]]:
    """What organizations bring if all their nodes are in one partition."""
    return {name: {BATCH: count} if count else {} for name, count in processors.items()}


def test_only_what_changes_has_a_new_row(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        for second, physics in ((0, 8), (5, 8), (10, 12), (15, 12), (20, 8)):
            owned = batch(physics=physics, biology=4)
            rows.observed.observe_capacities(owned, BEGIN + second)
        assert capacities(rows) == [
            ("biology", 0, 4), ("physics", 0, 8), ("physics", 10, 12), ("physics", 20, 8),
        ]  # fmt: skip


def test_one_that_joins_later_brings_nothing_before(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.observed.observe_capacities(batch(physics=8), BEGIN)
        rows.observed.observe_capacities(batch(physics=8, biology=4), BEGIN + 9)
        assert capacities(rows) == [("physics", 0, 8), ("biology", 9, 4)]


def test_one_that_leaves_brings_nothing_any_more(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.observed.observe_capacities(batch(physics=8, biology=4), BEGIN)
        for second in (5, 9):
            rows.observed.observe_capacities(batch(physics=8), BEGIN + second)
        assert capacities(rows) == [("biology", 0, 4), ("physics", 0, 8), ("biology", 5, 0)]


def test_two_changes_in_one_second_leave_the_last(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        for processors in (8, 12, 16):
            rows.observed.observe_capacities(batch(physics=processors), BEGIN)
        assert capacities(rows) == [("physics", 0, 16)]


def test_pruning_leaves_what_was_so_at_that_second_and_what_came_later(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        for second, physics in ((0, 8), (5, 0), (10, 8), (15, 4)):
            rows.observed.observe_capacities(batch(physics=physics, biology=4), BEGIN + second)
        rows.observed.prune_capacities(BEGIN + 9)
        left = [("biology", 0, 4), ("physics", 5, 0), ("physics", 10, 8), ("physics", 15, 4)]
        assert capacities(rows) == left
        rows.observed.prune_capacities(BEGIN + 10)
        assert capacities(rows) == [("biology", 0, 4), ("physics", 10, 8), ("physics", 15, 4)]
        rows.observed.prune_capacities(BEGIN - 1)
        assert len(rows.observed.capacities()) == 3


def test_capacities_of_clusters_are_apart_and_outlive_the_history(store: Store) -> None:
    for cluster, processors in (("c", 8), ("d", 9)):
        with store.cluster(cluster).transaction() as rows:
            rows.observed.observe_capacities(batch(physics=processors), BEGIN)
            rows.prune_history(BEGIN + 9**9, pushes_before=BEGIN + 9**9)
    with store.cluster("c").reading() as view:
        assert capacities(view) == [("physics", 0, 8)]


def test_a_node_that_changes_partitions_makes_a_new_row(store: Store) -> None:
    first = {("batch",): 8, ("batch", "debug"): 2}
    second = {("batch",): 9, ("batch", "debug"): 1}
    with store.cluster("c").transaction() as rows:
        for moment, found in enumerate((first, first, second)):
            rows.observed.observe_capacities({"physics": found}, BEGIN + moment)
        assert [(row.since - BEGIN, row.processors) for row in rows.observed.capacities()] == [
            (0, first),
            (2, second),
        ]
