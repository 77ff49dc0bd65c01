"""What is remembered of a game that grows."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.coalitions import first_come as module
from shapleyprio.replay.coalitions.contributions import all_coalitions
from shapleyprio.replay.coalitions.estimate import Estimator, estimate
from shapleyprio.replay.coalitions.first_come import (
    FIXED,
    NOW,
    Valuation,
    advance,
    arrays_of,
    room_for,
    still_true,
    values_of,
)
from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.engine.keys import Ints
from tests.replay.coalitions.games import growing_games


@given(growing_games(), st.randoms())
def test_values_do_not_depend_on_what_was_valued_before(games: list[Game], random: Random) -> None:
    valuation = Valuation()
    for game in games:
        coalitions = all_coalitions(game.organizations)
        coalitions = coalitions[[random.random() < 0.8 for _ in coalitions]]
        expected = values_of(game, coalitions)
        for _ in range(2):
            assert (valuation.values(game, coalitions) == expected).all()


@given(growing_games(), st.integers(0, 10))
def test_estimates_do_not_depend_on_what_was_estimated_before(games: list[Game], most: int) -> None:
    estimator = Estimator(budget=8, exact_organizations=most)
    for game in games:
        if game.organizations == 1 > most:
            continue
        expected = estimate(game, budget=8, exact_organizations=most)
        found = estimator.estimate(game)
        assert found.numerators == expected.numerators
        assert (found.error == expected.error).all()


def game_of_jobs(*jobs: tuple[int, int, int, int], until: int) -> Game:
    """Organizations 0 and 1 with a processor each; release, organization, seconds, certain."""
    release, organization, seconds, certain = np.array(jobs, dtype=np.int64).T
    return Game(
        organization=organization,
        release=release,
        processing_time=seconds,
        processors=np.ones(len(jobs), dtype=np.int64),
        since=np.zeros(1, dtype=np.int64),
        owned=np.ones((1, 2), dtype=np.int64),
        until=until,
        certain=certain,
    )


BOTH, FIRST, SECOND = (bytes(members) for members in ([True, True], [True, False], [False, True]))
"""Coalitions of organizations 0 and 1, as they are remembered."""


def states_of(game: Game) -> dict[bytes, Ints]:
    """States of the coalitions of organizations 0 and 1, of 0 and of 1."""
    arrays = arrays_of(game)
    found = {}
    for key in (BOTH, FIRST, SECOND):
        after, ends, nothing = np.zeros(100, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
        coalition = np.frombuffer(key, dtype=np.bool_)[None]
        values = np.zeros((1, 3), dtype=np.int64)
        advance(
            arrays, coalition, game.until, after, nothing, room_for(arrays), after, ends, values
        )
        found[key] = after[: ends[1]].copy()
    return found


def reached(game: Game, key: bytes) -> tuple[int, list[int]]:
    """The moment that a state has come to, and how many jobs of each organization are in it."""
    state = states_of(game)[key]
    return int(state[NOW]), state[FIXED : FIXED + 2].tolist()


LONG_WAIT = game_of_jobs(
    (0, 0, 5, 5), (0, 1, 4, 4), (1, 0, 9, 0), (2, 1, 3, 3), (30, 1, 3, 3), (40, 0, 3, 3), until=90
)


def test_a_job_that_waits_for_long_holds_back_only_coalitions_with_its_organization() -> None:
    assert reached(LONG_WAIT, SECOND) == (30, [0, 3])
    assert reached(LONG_WAIT, FIRST) == (0, [1, 0])
    assert reached(LONG_WAIT, BOTH) == (0, [1, 1])


def test_a_running_job_is_certain_for_as_long_as_it_has_run() -> None:
    jobs = [(0, 0, 100, 20), (0, 0, 5, 5), (12, 1, 3, 3), (19, 1, 2, 2), (21, 1, 2, 2)]
    game = game_of_jobs(*jobs, until=90)
    assert reached(game, BOTH) == (19, [2, 2])
    assert reached(game, FIRST) == (0, [2, 0])
    longer = game_of_jobs((0, 0, 100, 22), *jobs[1:], until=90)
    assert reached(longer, BOTH) == (21, [2, 3])


def kept(game: Game, *, time: int | None = None) -> set[bytes]:
    """The coalitions of which a state in the game of the long wait is one in another game too."""
    old, new = arrays_of(LONG_WAIT), arrays_of(game)
    return set(still_true(states_of(LONG_WAIT), old, new, game.until if time is None else time))


def with_job(game: Game, place: int, *job: int) -> Game:
    """The game with one more job: release, organization, seconds and what is certain of them."""
    columns = [game.release, game.organization, game.processing_time, game.certain]
    rows = [row.tolist() for row in np.array(columns, dtype=np.int64).T]
    return game_of_jobs(*(tuple(row) for row in [*rows[:place], job, *rows[place:]]), until=90)


def test_what_changed_after_a_state_was_reached_does_not_matter_to_it() -> None:
    everybody = {BOTH, FIRST, SECOND}
    assert kept(LONG_WAIT) == everybody
    assert kept(replace(LONG_WAIT, until=95, horizon=7)) == everybody
    assert kept(with_job(LONG_WAIT, 6, 80, 1, 9, 0)) == everybody
    more = replace(LONG_WAIT, since=np.array([0, 31]), owned=np.array([[1, 1], [0, 9]]))
    assert kept(more) == everybody
    shorter = replace(LONG_WAIT, processing_time=np.array([5, 4, 2, 3, 3, 3]))
    assert kept(shorter) == everybody


def test_what_was_wrong_is_forgotten_with_all_that_rests_on_it() -> None:
    assert kept(with_job(LONG_WAIT, 3, 2, 1, 9, 9)) == {BOTH, FIRST}
    assert kept(with_job(LONG_WAIT, 1, 0, 0, 9, 9)) == {FIRST, SECOND}
    seconds = LONG_WAIT.processing_time + np.array([1, 0, 0, 0, 0, 0])
    assert kept(replace(LONG_WAIT, processing_time=seconds, certain=seconds)) == {SECOND}
    less = replace(LONG_WAIT, since=np.array([0, 20]), owned=np.array([[1, 1], [1, 0]]))
    assert kept(less) == {BOTH, FIRST}
    assert kept(replace(LONG_WAIT, owned=np.array([[1, 2]]))) == set()
    assert kept(LONG_WAIT, time=29) == {BOTH, FIRST}


def test_a_job_that_waited_and_vanished_is_forgotten_by_nobody_else() -> None:
    gone = game_of_jobs(
        (0, 0, 5, 5), (0, 1, 4, 4), (2, 1, 3, 3), (30, 1, 3, 3), (40, 0, 3, 3), until=90
    )
    assert kept(gone) == {BOTH, FIRST, SECOND}
    assert reached(gone, BOTH) == (40, [2, 3])


@given(
    st.lists(st.tuples(st.integers(1, 99), st.integers(1, 9)), min_size=1, max_size=200),
    st.integers(1, 60),
)
def test_ends_come_in_their_order(jobs: list[tuple[int, int]], processors: int) -> None:
    until, expected, ends = 5000, 0, [0] * processors
    for seconds, width in jobs:
        for _ in range(width):
            start = heappop(ends)
            expected += sum(until - second for second in range(start, min(start + seconds, until)))
            heappush(ends, start + seconds)
    zeros = np.zeros(len(jobs), dtype=np.int64)
    seconds_of, width_of = np.array(jobs, dtype=np.int64).T
    owned = np.full((1, 1), processors, dtype=np.int64)
    game = Game(zeros, zeros, seconds_of, width_of, np.zeros(1, np.int64), owned, until)
    assert values_of(game, np.ones((1, 1), dtype=np.bool_))[0, 0] == expected


def test_a_budget_of_memory_bounds_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    valuation, coalitions = Valuation(), np.ones((1, 2), dtype=np.bool_)
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    expected = values_of(LONG_WAIT, coalitions)
    assert (valuation.values(LONG_WAIT, coalitions) == expected).all()
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    assert (valuation.values(LONG_WAIT, coalitions) == expected).all()
