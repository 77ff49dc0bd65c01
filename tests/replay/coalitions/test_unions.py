"""Owen values of games in which organizations stand together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.shapley import owen
from shapleyprio.replay.coalitions import estimate as module
from shapleyprio.replay.coalitions.contributions import (
    OrderingDraws,
    all_coalitions,
    needed,
    needed_coalitions,
    random_orderings,
    rounded_owen_values,
)
from shapleyprio.replay.coalitions.estimate import Estimate, Estimator, estimate
from shapleyprio.replay.coalitions.first_come import values_of
from shapleyprio.replay.coalitions.fluid import fluid_of
from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.coalitions.ways import DecidingCoalitions, can_decide
from shapleyprio.replay.policies import Estimation, run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.certificate import processors_started
from tests.replay.coalitions.games import (
    check_growing,
    games,
    growing_games,
    kept_whole,
    literal_decided_values,
)
from tests.replay.coalitions.test_estimate import contended_game
from tests.replay.literal_unions import orderings_of
from tests.replay.test_turns import CUT, WHOLE
from tests.replay.test_unions import numbered, united

EIGHT = (0, 0, 0, 1, 1, 1, 2, 2)
SMALL = games(organizations=3, jobs=8).map(lambda game: [game])
GROWING = growing_games(organizations=3)


@st.composite
def in_unions(draw: st.DrawFn, drawn: st.SearchStrategy[list[Game]]) -> list[Game]:
    """The same games with some organizations in unions."""
    grown = draw(drawn)
    k = grown[0].organizations
    unions = numbered(draw(st.lists(st.integers(0, 2), min_size=k, max_size=k)))
    return [replace(game, unions=unions) for game in grown]


def values_in(found: Estimate) -> list[tuple[Fraction, ...]]:
    """Contributions, their rates and accelerations."""
    columns = zip(*found.numerators, strict=True)
    return [tuple(Fraction(one, found.denominator) for one in column) for column in columns]


@given(in_unions(games(organizations=6).map(lambda game: [game])))
def test_few_coalitions_are_valued_exactly(drawn: list[Game]) -> None:
    (game,) = drawn
    found = estimate(game, budget=1, most_starts=0)
    every = values_of(game, all_coalitions(game.organizations))
    assert values_in(found) == [owen(column, game.unions) for column in every.T.tolist()]
    assert not found.error.any()


def test_more_organizations_than_subsets_allow_are_valued_exactly() -> None:
    unions = tuple(u // 3 for u in range(15))
    game = replace(contended_game(15), unions=unions)
    found = estimate(game, budget=1)
    assert found.coalitions == len(needed_coalitions(unions)) == 2**5 + 5 * 2**4 * 6
    assert needed(15, unions) == 640
    every = values_of(game, all_coalitions(15))[:, 0]
    assert found.contribution == owen(every.tolist(), unions)
    assert sum(found.contribution) == every[-1]


@settings(deadline=None)
@given(in_unions(SMALL | kept_whole(SMALL)))
def test_coalitions_decide_as_under_ref(drawn: list[Game]) -> None:
    (game,) = drawn
    assume(can_decide(game))
    assert DecidingCoalitions().values(game).tolist() == literal_decided_values(game)


@settings(deadline=None)
@given(in_unions(GROWING | kept_whole(GROWING)), st.integers(1, 9))
def test_values_do_not_depend_on_what_was_decided_before(grown: list[Game], block: int) -> None:
    check_growing(grown, block)


@settings(deadline=None)
@given(united(CUT | WHOLE).filter(lambda workload: workload.horizon is None))
def test_who_always_computes_anew_decides_as_ref_does(workload: Workload) -> None:
    found = run_policy(workload, "shapley", estimation=Estimation(recompute=1))
    assert processors_started(found) == processors_started(run_policy(workload, "ref"))


# sampled


def away_from(found: Estimate, truth: Estimate) -> float:
    return float(
        sum(abs(a - b) for a, b in zip(found.contribution, truth.contribution, strict=True))
    )


@pytest.mark.parametrize("unions", [EIGHT, tuple(u // 3 for u in range(15))])
def test_more_coalitions_come_nearer_and_the_error_says_how_near(unions: tuple[int, ...]) -> None:
    game = replace(contended_game(len(unions)), unions=unions)
    truth = estimate(game, budget=1, most_starts=0)
    away, said = [], []
    for budget in (60, 240, 960):
        drawn = [
            estimate(game, budget=budget, seed=seed, exact_organizations=0) for seed in range(8)
        ]
        assert all(
            float(sum(one.contribution)) == pytest.approx(float(sum(truth.contribution)))
            for one in drawn
        )
        away.append(np.mean([away_from(one, truth) for one in drawn]))
        said.append(np.mean([one.error.sum() for one in drawn]))
    assert away == sorted(away, reverse=True)
    assert all(
        distance / 2 < error < 4 * distance for distance, error in zip(away, said, strict=True)
    )


def test_an_estimate_depends_on_the_seed_alone_and_larger_ones_go_on() -> None:
    unions = tuple(u % 8 for u in range(30))
    game = replace(contended_game(30), unions=unions)
    asked: list[Estimate] = []

    def second_time(found: Estimate) -> bool:
        asked.append(found)
        return len(asked) == 2

    estimator = Estimator(budget=10**5, seed=3)
    assert estimator.estimate(game, good_enough=second_time) is asked[-1]
    again = estimate(game, budget=128, seed=3)
    assert again.numerators == asked[-1].numerators
    assert again.numerators != estimate(game, budget=128, seed=4).numerators
    small, large = (OrderingDraws(unions, 1).sample(budget) for budget in (130, 700))
    assert (large.orderings[: len(small.orderings)] == small.orderings).all()
    assert len(large.coalitions) <= 700


@given(in_unions(games(organizations=5).map(lambda game: [game])))
def test_the_fluid_adds_up_to_its_owen_values_over_all_orderings(drawn: list[Game]) -> None:
    (game,) = drawn
    assert game.unions is not None
    fluid, of = fluid_of(game, bins=20), np.array(game.unions)
    blocks = tuple(frozenset(np.flatnonzero(of == one).tolist()) for one in range(of.max() + 1))
    orderings = np.array(orderings_of(blocks), dtype=np.int64)
    expected = fluid.contributions(orderings)
    assert rounded_owen_values(fluid, game.unions) == pytest.approx(expected, abs=1e-6)


def test_where_the_fluid_is_sampled_too_the_error_counts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unions = tuple(u // 3 for u in range(15))
    game = replace(contended_game(15), unions=unions)
    truth = estimate(game, budget=1)
    monkeypatch.setattr(module, "FLUID_ORGANIZATIONS", 5)
    monkeypatch.setattr(module, "FLUID_ORDERINGS", 40)
    drawn = [estimate(game, budget=900, seed=seed, exact_organizations=0) for seed in range(8)]
    away = np.mean([away_from(one, truth) for one in drawn])
    assert away / 2 < np.mean([one.error.sum() for one in drawn]) < 4 * away


def test_orderings_keep_unions_together_and_are_equally_likely() -> None:
    drawn = random_orderings((0, 1, 0, 2), 6000, np.random.default_rng(1))
    counts = Counter(map(tuple, drawn.tolist()))
    blocks = (frozenset({0, 2}), frozenset({1}), frozenset({3}))
    assert set(counts) == set(orderings_of(blocks))
    assert all(380 < count < 620 for count in counts.values())  # 500 expected
