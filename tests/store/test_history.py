"""Cycles and standings, and how old history goes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.store.examples import BEGIN, cycle, standing

if TYPE_CHECKING:
    from shapleyprio.store import CycleRow, Store


def test_cycles_are_numbered_and_listed_newest_first(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        assert rows.history.next_cycle() == 1
        assert rows.history.last_cycle() is None
        for number in (1, 2, 3):
            rows.history.save_cycle(
                cycle(number, BEGIN + number, "failed" if number == 3 else "done")
            )
        assert rows.history.next_cycle() == 4
        assert rows.history.last_cycle() == cycle(3, BEGIN + 3, "failed")
        assert rows.history.last_cycle(outcome="done") == cycle(2, BEGIN + 2)
        assert rows.history.last_cycle(outcome="never") is None
        assert rows.history.cycle(2) == cycle(2, BEGIN + 2)
        assert rows.history.cycle(9) is None
        assert [row.number for row in rows.history.cycles()] == [3, 2, 1]
        assert [row.number for row in rows.history.cycles(since=BEGIN + 2)] == [3, 2]
        assert [row.number for row in rows.history.cycles(limit=1)] == [3]


def test_interruptions_are_failures_in_a_row_and_times_without_a_cycle(store: Store) -> None:
    def failed(number: int, second: int, outcome: str = "slurm_refused") -> CycleRow:
        return replace(cycle(number, BEGIN + second, outcome), message=f"no {number}")

    with store.cluster("c").transaction() as rows:
        for row in (
            *(failed(1, 0), cycle(4, BEGIN + 500), failed(5, 530), failed(6, 560)),
            *(failed(7, 590, "store_failed"), failed(8, 1000, "store_failed")),
            *(cycle(9, BEGIN + 1030), failed(10, 1060, "store_failed")),
        ):
            rows.history.save_cycle(replace(row, finished=row.started + 1))
        found = rows.history.interruptions(BEGIN, 90)
        assert rows.history.interruptions(BEGIN + 560, 90)[0].cycles == 1
    assert [(one.begin - BEGIN, one.end - BEGIN, one.cycles, one.message) for one in found] == [
        (0, 1, 1, "no 1"),
        (530, 561, 2, "no 6"),
        (590, 591, 1, "no 7"),
        (591, 1000, 0, ""),
        (1000, 1001, 1, "no 8"),
        (1060, 1061, 1, "no 10"),
    ]
    with store.cluster("another").reading() as view:
        assert view.history.interruptions(0, 90) == []


def test_another_release_of_slurm_is_found_behind_cycles_that_did_not_know(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        for number, version in enumerate(("1", "1", "", "2", "1"), start=1):
            rows.history.save_cycle(replace(cycle(number, BEGIN + number), slurm_version=version))
        found = [(BEGIN + 4, "1", "2"), (BEGIN + 5, "2", "1")]
        assert rows.history.slurm_versions(BEGIN) == found
        assert rows.history.slurm_versions(BEGIN + 4) == found[1:]


def test_a_cycle_is_saved_again_when_it_ends(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.history.save_cycle(cycle(1, outcome="started"))
        rows.history.save_cycle(cycle(1))
        assert rows.history.cycles() == [cycle(1)]


def test_standings_are_those_of_the_newest_cycle_that_has_some(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        assert rows.history.latest_standings() == []
        for number in (1, 2):
            for name in ("physics", "biology"):
                rows.history.save_standings([standing(number, name, BEGIN + number)])
        rows.history.save_cycle(cycle(3, outcome="failed"))
        latest = [standing(2, "biology", BEGIN + 2), standing(2, "physics", BEGIN + 2)]
        assert rows.history.latest_standings() == latest
        assert {row.cycle for row in rows.history.latest_standings(BEGIN + 2)} == {1}
        assert rows.history.latest_standings(BEGIN + 1) == []
        assert rows.history.standings(0, limit=2) == latest
        assert rows.history.standings(BEGIN + 2) == latest
        assert [row.cycle for row in rows.history.standings(0, "physics")] == [2, 1]


def test_old_history_goes_but_when_it_last_went_well_stays_known(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.history.save_cycle(cycle(1, BEGIN))
        rows.history.save_cycle(cycle(2, BEGIN + 60))
        rows.history.save_cycle(cycle(3, BEGIN + 120, "failed"))
        rows.history.save_cycle(cycle(4, BEGIN + 180, "failed"))
        rows.history.save_standings([standing(1), standing(2, t=BEGIN + 60)])
        assert rows.prune_history(BEGIN + 10_000, pushes_before=BEGIN + 10_000) == 3
        assert [row.number for row in rows.history.cycles()] == [4, 2]
        assert rows.history.latest_standings() == [standing(2, t=BEGIN + 60)]
        assert rows.history.next_cycle() == 5
        assert rows.prune_history(BEGIN + 10_000, pushes_before=BEGIN + 10_000) == 0


def test_of_much_history_some_of_each_kind_goes_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.scope.PRUNED_AT_ONCE", 4)
    with store.cluster("c").transaction() as rows:
        for number in range(1, 12):
            rows.history.save_cycle(cycle(number, BEGIN + number))
            rows.history.save_standings([standing(number, t=BEGIN + number)])
        numbers = []
        while rows.prune_history(BEGIN + 12, pushes_before=BEGIN + 12):
            left = [row.number for row in rows.history.cycles()]
            assert [row.cycle for row in rows.history.standings(0)] == left
            numbers.append(left)
    assert numbers == [[11, 10, 9, 8, 7, 6, 5], [11, 10, 9], [11]]


def test_recent_history_stays(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.history.save_cycle(cycle(1, BEGIN))
        rows.history.save_cycle(cycle(2, BEGIN))
        rows.history.save_standings([standing(1)])
        assert rows.prune_history(BEGIN, pushes_before=BEGIN) == 0
