"""What steered since when: kept when it changes, as long as history, of each ledger for itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shapleyprio.store import SteeringRow
from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from shapleyprio.store import Store

SHAPLEY = SteeringRow(since=BEGIN, rule="shapley", chosen="shapley", channel="nice")
FALLEN_BACK = replace(SHAPLEY, since=BEGIN + 60, rule="directcontr")
AGAIN = replace(SHAPLEY, since=BEGIN + 120)
OVER = SteeringRow(since=BEGIN + 180, rule="", chosen="", channel="")


def test_what_steers_is_kept_when_it_changes(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        assert rows.history.steering() == []
        for row in (SHAPLEY, replace(SHAPLEY, since=BEGIN + 30), FALLEN_BACK, AGAIN):
            rows.history.note_steering(row)
        assert rows.history.steering() == [SHAPLEY, FALLEN_BACK, AGAIN]
        assert rows.history.steering(since=BEGIN + 60) == [FALLEN_BACK, AGAIN]
        assert rows.history.steering(since=BEGIN + 90, until=BEGIN + 120) == [FALLEN_BACK]
        assert rows.history.steering(since=BEGIN + 500) == [AGAIN]


def test_after_a_rollback_nothing_steers_any_ledger_of_the_cluster(store: Store) -> None:
    ledgers = ("c", "c/gpu", "c_x", "other")
    for name in ledgers:
        store.cluster(name).transact(lambda rows: rows.history.note_steering(SHAPLEY))
    for _ in range(2):
        store.cluster("c").transact(lambda rows: rows.history.nothing_steers(OVER.since))
    for name in ledgers:
        with store.cluster(name).reading() as view:
            ended = name.startswith("c") and name != "c_x"
            assert view.history.steering() == [SHAPLEY, *([OVER] if ended else [])]


def test_what_steers_stays_known_however_old_it_is(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        for row in (SHAPLEY, FALLEN_BACK, AGAIN):
            rows.history.note_steering(row)
        assert rows.prune_history(BEGIN, pushes_before=0) == 0
        assert rows.prune_history(BEGIN + 100, pushes_before=0) == 1
        assert rows.history.steering() == [FALLEN_BACK, AGAIN]
        assert rows.prune_history(BEGIN + 10_000, pushes_before=0) == 1
        assert rows.prune_history(BEGIN + 10_000, pushes_before=0) == 0
        assert rows.history.steering() == [AGAIN]
