"""Configurations are on record where they differ, and the one in force is never forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from shapleyprio.store import Store

SAID = {"push.channel": "nice", "organization": "physics, b\u00efology"}


def test_only_what_differs_is_noted(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.history.note_configuration(BEGIN, "1", SAID)
        rows.history.note_configuration(BEGIN + 1, "1", dict(SAID))
        rows.history.note_refusal(BEGIN + 2, "1", "push.channel: no")
        rows.history.note_configuration(BEGIN + 3, "1", SAID)
        rows.history.note_configuration(BEGIN + 4, "2", SAID)
        rows.history.note_configuration(BEGIN + 4, "2", {})
    with store.cluster("c").reading() as view:
        found = [
            (row.number, row.at, row.version, row.refused) for row in view.history.configurations(0)
        ]
        assert view.history.configurations(0)[0].written == SAID
    assert found == [
        (1, BEGIN, "1", ""),
        (2, BEGIN + 2, "1", "push.channel: no"),
        (3, BEGIN + 4, "2", ""),
        (4, BEGIN + 4, "2", ""),
    ]
    with store.cluster("another").reading() as view:
        assert view.history.configurations(0) == []


def test_the_one_in_force_at_the_begin_comes_first_and_stays(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        for second, said in ((0, {"a": "1"}), (10, {"a": "2"}), (30, {"a": "3"})):
            rows.history.note_configuration(BEGIN + second, "1", said)
        rows.history.note_refusal(BEGIN + 20, "1", "no")
        assert [row.at - BEGIN for row in rows.history.configurations(BEGIN + 20)] == [10, 30, 20]
        assert rows.prune_history(BEGIN + 25, pushes_before=0) == 1
        assert [row.at - BEGIN for row in rows.history.configurations(0)] == [10, 30, 20]


def test_a_cluster_that_pools_split_has_one_configuration(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.history.note_configuration(BEGIN, "1", SAID)
    with store.cluster("c/gpu").reading() as view:
        assert [row.at for row in view.history.configurations(0)] == [BEGIN]
