"""Shapley values from a few coalitions, and how sure they are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.shapley import shapley
from shapleyprio.replay.coalitions import estimate as module
from shapleyprio.replay.coalitions.contributions import (
    Draws,
    Floats,
    all_coalitions,
    fit,
    rounded_shapley_values,
)
from shapleyprio.replay.coalitions.estimate import Estimate, Estimator, estimate
from shapleyprio.replay.coalitions.first_come import values_of
from shapleyprio.replay.coalitions.fluid import fluid_of
from shapleyprio.replay.coalitions.game import Game
from tests.replay.coalitions.games import games

K = 11


def away_from(found: Estimate, truth: Floats) -> float:
    return float(np.abs(np.array(found.contribution, dtype=np.float64) - truth).sum())


def contended_game(organizations: int = K, jobs: int = 400, seed: int = 1) -> Game:
    """Organizations of different size with bursts of work, about as much as they can do."""
    random = np.random.default_rng(seed)
    owned = random.integers(1, 6, organizations)
    release = np.sort(random.integers(0, 900, jobs))
    return Game(
        organization=random.integers(0, organizations, jobs),
        release=release,
        processing_time=random.integers(1, 80, jobs),
        processors=random.integers(1, 4, jobs),
        since=np.array([0, 500]),
        owned=np.array([owned, owned[::-1]]),
        until=1000,
    )


def exactly(game: Game) -> Floats:
    values = values_of(game, all_coalitions(game.organizations))
    return np.array([float(value) for value in shapley(values[:, 0].tolist())])


@given(games(organizations=5))
def test_few_organizations_are_valued_exactly(game: Game) -> None:
    found = estimate(game, budget=1, most_starts=0)
    values = values_of(game, all_coalitions(game.organizations))
    for column, of_estimate in zip(values.T, zip(*found.numerators, strict=True), strict=True):
        assert shapley(column.tolist()) == tuple(
            Fraction(one, found.denominator) for one in of_estimate
        )
    assert not found.error.any()


@given(st.integers(2, 7), st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_fit_to_all_coalitions_is_the_shapley_value(k: int, seed: int, random: object) -> None:
    sample = Draws(k, seed).sample(2**k)
    assert sample.exact
    assert len(np.unique(sample.coalitions, axis=0)) == 2**k - 2
    values = np.random.default_rng(seed + k).integers(0, 1000, 2**k)
    values[0] = 0
    numbers = sample.coalitions @ (1 << np.arange(k))
    expected = [[float(value)] for value in shapley(values.tolist())]
    fitted = fit(sample, values[numbers, None].astype(float), values[-1:].astype(float))
    assert fitted == pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize("k", [2, 3, 11, 12, 40, 100])
def test_draws_are_spread_evenly_over_sizes_in_pairs_and_never_twice(k: int) -> None:
    draws = Draws(k, seed=7)
    earlier: set[bytes] = set()
    for budget in (10, 60, 300):
        sample = draws.sample(budget)
        rows = {row.tobytes() for row in sample.coalitions}
        assert len(rows) == len(sample.coalitions)
        assert earlier <= rows
        earlier = rows
        assert (sample.coalitions[::2] == ~sample.coalitions[1::2]).all()
        sizes = np.bincount(sample.coalitions.sum(axis=1), minlength=k + 1)
        open_sizes = [n for s, n in enumerate(sizes) if 0 < s < k and n < comb(k, s)]
        assert max(open_sizes, default=0) - min(open_sizes, default=0) <= 2
        assert len(sample.coalitions) <= max(budget, 2 * (k // 2)) + 4
    again = Draws(k, seed=7).sample(300)
    assert (again.coalitions == sample.coalitions).all()


def test_more_coalitions_come_nearer_and_the_error_says_how_near() -> None:
    game = contended_game()
    truth = exactly(game)
    found = [estimate(game, budget=budget, seed=3) for budget in (60, 240, 960)]
    away = [away_from(one, truth) for one in found]
    assert away == sorted(away, reverse=True)
    for one, distance in zip(found, away, strict=True):
        assert float(sum(one.contribution)) == pytest.approx(truth.sum())
        assert distance < 4 * float(one.error.sum())
        assert float(one.error.sum()) < 10 * distance
    assert away_from(estimate(game, budget=5000), truth) <= K


def test_few_coalitions_beat_as_many_random_orderings_by_far() -> None:
    game = contended_game()
    values = values_of(game, all_coalitions(K))[:, 0].astype(float)
    truth = exactly(game)
    budget = 198
    ours = away_from(estimate(game, budget=budget), truth)
    random = np.random.default_rng(5)
    orderings = [random.permutation(K) for _ in range(budget // K)]
    theirs = np.zeros(K)
    for ordering in orderings:
        joined = np.concatenate(([0], np.cumsum(1 << ordering)))
        for u, (before, after) in zip(ordering, pairwise(joined.tolist()), strict=True):
            theirs[u] += (values[after] - values[before]) / len(orderings)
    assert 8 * ours < np.abs(theirs - truth).sum()


def test_an_estimate_depends_on_the_seed_alone_and_stops_when_it_is_good_enough() -> None:
    game = contended_game()
    first, again = (estimate(game, budget=200, seed=9, cores=cores) for cores in (1, 2))
    assert first.numerators == again.numerators
    assert (first.error == again.error).all()
    other = estimate(game, budget=200, seed=10)
    assert first.numerators != other.numerators
    asked: list[Estimate] = []

    def second_time(found: Estimate) -> bool:
        asked.append(found)
        return len(asked) == 2

    assert estimate(game, budget=10**6, good_enough=second_time) is asked[-1]
    assert [one.coalitions for one in asked] == sorted(one.coalitions for one in asked)


def test_an_estimate_in_a_hurry_leaves_later_ones_as_they_are() -> None:
    game = contended_game()
    estimator = Estimator(budget=200, seed=2)
    for until, hurry in ((900, False), (940, True), (980, False), (1000, True)):
        grown = replace(game, until=until)
        enough = (lambda _: True) if hurry else None
        found = estimator.estimate(grown, good_enough=enough)
        assert (found.coalitions < 100) == hurry
        scratch = estimate(grown, budget=200, seed=2, good_enough=enough)
        assert found.numerators == scratch.numerators


@pytest.mark.parametrize("budget", [130, 400, 1500])
def test_the_error_is_honest_where_the_fluid_is_sampled_too(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = contended_game(organizations=13, jobs=300)
    monkeypatch.setattr(module, "FLUID_ORGANIZATIONS", 12)
    monkeypatch.setattr(module, "FLUID_ORDERINGS", 40)
    truth = exactly(game)
    found = [estimate(game, budget=budget, seed=seed) for seed in range(8)]
    away = np.array([np.array(each.contribution, dtype=np.float64) - truth for each in found])
    said = np.sqrt(np.mean([each.error**2 for each in found]))
    real = np.sqrt(np.mean(away**2))
    assert real / 2 < said < 4 * real


@given(games(organizations=4))
def test_where_nothing_waits_the_fluid_completes_what_every_coalition_does(game: Game) -> None:
    ample = replace(game, owned=np.full_like(game.owned, 50), horizon=None)
    every = all_coalitions(game.organizations)
    expected = values_of(ample, every)[:, 1].astype(np.float64)
    assert fluid_of(ample, bins=50).values(every)[:, 1] == pytest.approx(expected, abs=1e-6)


@given(games(organizations=4))
def test_the_fluid_adds_up_to_its_shapley_values_over_all_orderings(game: Game) -> None:
    k, fluid = game.organizations, fluid_of(game, bins=20)
    orderings = np.array(list(permutations(range(k))), dtype=np.int64)
    values = fluid.values(all_coalitions(k))
    assert fluid.all_values() == pytest.approx(values)
    expected = rounded_shapley_values(values)
    assert fluid.contributions(orderings) == pytest.approx(expected, abs=1e-6)
