"""What coalitions are worth, and the exact Shapley values of it."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.shapley import members, shapley
from shapleyprio.replay.coalitions.contributions import all_coalitions, shapley_numerators
from shapleyprio.replay.coalitions.first_come import values_of
from shapleyprio.replay.coalitions.game import Game, GameError, game_of
from tests.replay import literal
from tests.replay.coalitions.games import games, literal_value
from tests.replay.strategies import Job, workload_of_jobs


@given(games())
def test_every_coalition_is_worth_what_a_literal_account_says(game: Game) -> None:
    coalitions = all_coalitions(game.organizations)
    values = values_of(game, coalitions)
    for number, value in enumerate(values.tolist()):
        assert value == literal_value(game, list(members(number)))


@given(games())
def test_values_do_not_depend_on_the_number_of_cores(game: Game) -> None:
    coalitions = np.repeat(all_coalitions(game.organizations), 5, axis=0)
    assert (values_of(game, coalitions, cores=3) == values_of(game, coalitions)).all()


@given(st.integers(1, 6).flatmap(lambda k: st.lists(
    st.integers(-(2**61), 2**61), min_size=2**k - 1, max_size=2**k - 1)))  # fmt: skip
def test_shapley_values_are_those_of_the_potential(values: list[int]) -> None:
    everything = [0, *values]
    k = len(everything).bit_length() - 1
    numerators = shapley_numerators(np.array(everything, dtype=np.int64))
    assert tuple(Fraction(one, factorial(k)) for one in numerators) == shapley(everything)


def test_a_game_begins_empty_and_knows_only_what_was_released_by_its_end() -> None:
    jobs = [Job(1, 5, 3), Job(0, 2, 4, processors=2), Job(0, 9, 1), Job(1, 10, 1)]
    game = game_of(workload_of_jobs([1, 2], jobs, length=11), until=9)
    assert game.release.tolist() == [2, 5, 9]
    assert game.organization.tolist() == [0, 1, 0]
    assert game.processors.tolist() == [2, 1, 1]
    assert (game.since.tolist(), game.owned.tolist()) == ([0], [[1, 2]])
    assert (game.until, game.organizations) == (9, 2)


@pytest.mark.parametrize("bits", [20, 29, 30, 31, 32, 36])
def test_values_of_any_size_are_exact(bits: int) -> None:
    length = 2**bits
    jobs = [
        Job(0, 0, length - 5, 2),
        Job(1, 1, length // 3, 3),
        Job(0, length // 2, length, 2),
        Job(1, length // 2 + 1, 7),
    ]
    workload = workload_of_jobs([2, 1], jobs, length)
    values = values_of(game_of(workload), all_coalitions(2))
    coalitions = literal.subsets(frozenset({0, 1}))
    for coalition, value in zip(coalitions, values[:, 0].tolist(), strict=True):
        schedule = literal.CoalitionSchedule(workload, coalition)
        for t in literal.moments(workload, [schedule]):
            schedule.decide(t, literal.first_come(schedule))
        assert value == schedule.value(length)


def test_what_does_not_fit_into_64_bits_is_refused() -> None:
    one = np.ones(1, dtype=np.int64)
    with pytest.raises(GameError, match=r"16777216 processors are more than"):
        Game(one - 1, one, one, one, one - 1, np.array([[2**24]]), until=10_000_000)
    with pytest.raises(GameError, match="ends after"):
        Game(one - 1, one, one * 2**40, one, one - 1, one[None], until=10)
    with pytest.raises(ValueError, match="before the game begins"):
        Game(one - 1, one - 5, one, one, one - 1, one[None], until=10)
    with pytest.raises(ValueError, match="certain"):
        Game(one - 1, one - 1, one, one, one - 1, one[None], until=10, certain=one * 2)
