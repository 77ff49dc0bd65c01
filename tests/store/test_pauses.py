"""Pauses: one at a time, of the whole cluster, on record for as long as history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shapleyprio.store import PauseRow
from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from shapleyprio.store import Store

FIRST = PauseRow(since=BEGIN, user="ann", reason="an odd queue", keep=False)
SECOND = PauseRow(since=BEGIN + 100, user="bob", reason="a demonstration", keep=True)
OVER = replace(FIRST, until=BEGIN + 50, resumed_by="bob")


def test_one_pause_lasts_at_a_time_in_all_ledgers_of_a_cluster(store: Store) -> None:
    store.cluster("c").transact(lambda rows: rows.orders.begin_pause(FIRST))
    assert store.cluster("c").transact(lambda rows: rows.orders.begin_pause(SECOND)) == FIRST
    for name, found in (("c", FIRST), ("c/gpu", FIRST), ("d", None)):
        with store.cluster(name).reading() as view:
            assert view.orders.pause() == found
    assert (
        store.cluster("c").transact(lambda rows: rows.orders.end_pause(BEGIN + 50, "bob")) == FIRST
    )
    with store.cluster("c/gpu").transaction() as rows:
        assert (rows.orders.pause(), rows.orders.pauses()) == (None, [OVER])
        assert rows.orders.end_pause(BEGIN + 60, "bob") is None
        assert rows.orders.begin_pause(SECOND) is None
        assert rows.orders.pauses() == [OVER, SECOND]
        assert rows.orders.pauses(since=BEGIN + 50) == [SECOND]


def test_a_pause_that_lasts_is_never_forgotten(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.orders.begin_pause(FIRST)
        rows.orders.end_pause(BEGIN + 50, "bob")
        rows.orders.begin_pause(SECOND)
        assert rows.prune_history(BEGIN + 50, pushes_before=0) == 0
        assert rows.prune_history(BEGIN + 10_000, pushes_before=0) == 1
        assert rows.orders.pauses() == [SECOND]
