"""Coalitions that start whole jobs, or those of partitions, first come, first served."""

from __future__ import annotations

from hypothesis import given

from shapleyprio.fairness.shapley import members
from shapleyprio.replay.coalitions.exact import all_coalitions
from shapleyprio.replay.coalitions.first_come import values_of
from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.coalitions.whole_jobs import WholeJobs
from tests.replay.coalitions.games import games, growing_games, kept_whole, literal_first_come_value


@given(kept_whole(games(organizations=3, jobs=8).map(lambda game: [game])))
def test_whole_jobs_start_by_release_and_others_behind_what_does_not_fit(drawn: list[Game]) -> None:
    (game,) = drawn
    k = game.organizations
    expected = [literal_first_come_value(game, set(members(mask))) for mask in range(2**k)]
    assert WholeJobs().values(game, all_coalitions(k)).tolist() == expected


@given(kept_whole(growing_games(organizations=3)))
def test_values_do_not_depend_on_what_was_valued_before(grown: list[Game]) -> None:
    kept, coalitions = WholeJobs(), all_coalitions(grown[0].organizations)
    for game in grown:
        expected = WholeJobs().values(game, coalitions)
        for _ in range(2):
            assert (kept.values(game, coalitions) == expected).all()


@given(games(organizations=3))
def test_jobs_that_are_cut_are_worth_what_one_pass_finds(game: Game) -> None:
    coalitions = all_coalitions(game.organizations)
    assert (WholeJobs().values(game, coalitions) == values_of(game, coalitions)).all()
