"""What is remembered of a game that grows."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.shapley.estimate import Estimator, estimate
from shapleyprio.replay.shapley.exact import all_coalitions
from shapleyprio.replay.shapley.first_come import Valuation, values_of
from shapleyprio.replay.shapley.game import Game
from tests.replay.shapley.games import growing_games


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
