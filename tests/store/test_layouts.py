"""Which nodes and accounts there were, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shapleyprio.store import Store, Transaction, View

BATCH = ("batch",)


def nodes(view: View) -> list[tuple[str, int, int, tuple[str, ...]]]:
    return [
        (row.name, row.since - BEGIN, row.processors, row.partitions)
        for row in view.observed.node_rows()
    ]


def accounts(view: View) -> list[tuple[str, int, str | None]]:
    return [(row.name, row.since - BEGIN, row.parent) for row in view.observed.account_rows()]


def observe(
    rows: Transaction,
    second: int,
    sizes: Mapping[str, int],
    parents: Mapping[str, str | None] | None = None,
    partitions: tuple[str, ...] = BATCH,
) -> None:
    found = {name: (processors, partitions) for name, processors in sizes.items()}
    rows.observed.observe_layout(found, parents or {}, BEGIN + second, opened=BEGIN)


def test_what_is_first_seen_was_so_since_the_opening_and_what_comes_later_was_not(
    store: Store,
) -> None:
    with store.cluster("c").transaction() as rows:
        observe(rows, 50, {"n1": 8}, {"phys": None})
        observe(rows, 60, {"n1": 8, "n2": 4}, {"phys": None, "lab": "phys"})
        assert nodes(rows) == [("n1", 0, 8, BATCH), ("n2", 60, 4, BATCH)]
        assert accounts(rows) == [("lab", 60, "phys"), ("phys", 0, None)]


def test_a_node_has_a_new_row_only_when_its_size_or_its_partitions_change(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        for second, size in ((0, 8), (5, 8), (10, 12), (15, 12)):
            observe(rows, second, {"n1": size})
        observe(rows, 20, {"n1": 12}, partitions=("batch", "gpu"))
        assert nodes(rows) == [
            ("n1", 0, 8, BATCH), ("n1", 10, 12, BATCH), ("n1", 20, 12, ("batch", "gpu")),
        ]  # fmt: skip


def test_a_node_that_is_gone_has_no_processors_and_an_account_keeps_its_parent(
    store: Store,
) -> None:
    with store.cluster("c").transaction() as rows:
        observe(rows, 0, {"n1": 8, "n2": 8}, {"lab": "phys"})
        for second in (5, 9):
            observe(rows, second, {"n1": 8})
        assert nodes(rows) == [("n1", 0, 8, BATCH), ("n2", 0, 8, BATCH), ("n2", 5, 0, ())]
        assert accounts(rows) == [("lab", 0, "phys")]


def test_pruning_leaves_what_was_so_at_that_second_and_what_came_later(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        for second, size in ((0, 8), (10, 12), (20, 16)):
            observe(rows, second, {"n1": size, "n2": 4}, {"lab": str(second)})
        rows.observed.prune_layout(BEGIN + 10)
        assert nodes(rows) == [("n1", 10, 12, BATCH), ("n1", 20, 16, BATCH), ("n2", 0, 4, BATCH)]
        assert accounts(rows) == [("lab", 10, "10"), ("lab", 20, "20")]
