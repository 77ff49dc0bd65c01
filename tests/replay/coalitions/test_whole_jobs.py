"""Coalitions that start whole jobs, or those of partitions, first come, first served."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import assume, example, given

from shapleyprio.fairness.shapley import members
from shapleyprio.replay.coalitions.contributions import all_coalitions
from shapleyprio.replay.coalitions.first_come import values_of
from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.coalitions.ways import WholeJobs
from shapleyprio.replay.workloads.bays import Bays
from tests.replay.coalitions.games import games, growing_games, kept_whole, literal_first_come_value

if TYPE_CHECKING:
    from shapleyprio.replay.workloads.choices import Backfill


def changed_at_a_release(backfill: Backfill, owned_in: list[list[list[int]]], **jobs: Any) -> Game:
    """Partitions a and b with nodes of their own; each second of `owned_in` begins a new count."""
    columns: dict[str, Any] = {name: np.array(values) for name, values in jobs.items()}
    bays = Bays(
        partitions=("a", "b"),
        reach=np.eye(2, dtype=np.bool_),
        owned=np.array(owned_in[0]),
        partition=columns.pop("partition").astype(np.int32),
    )
    return Game(
        **columns,
        since=np.arange(len(owned_in)),
        owned=np.array(owned_in).sum(axis=1),
        until=12,
        horizon=None,
        wide="rigid",
        backfill=backfill,
        bays=bays,
        owned_in=np.array(owned_in),
    )


ONE_WAITS = changed_at_a_release(
    "none",
    [[[1], [0]], [[1], [1]], [[2], [1]]],
    organization=[0, 0],
    partition=[0, 1],
    release=[0, 1],
    processing_time=[1, 1],
    processors=[2, 1],
)
"""The first job is too wide for now, and the second one comes with a processor of its own."""

ONE_HAS_A_RESERVATION = changed_at_a_release(
    "easy",
    [[[2, 0], [0, 0]], [[2, 0], [1, 0]]],
    organization=[0, 0, 1],
    partition=[0, 0, 0],
    release=[0, 0, 1],
    processing_time=[5, 1, 9],
    processors=[1, 2, 1],
)
"""The third job would delay the second one, and comes with a processor elsewhere."""


@example([ONE_HAS_A_RESERVATION])
@example([ONE_WAITS])
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


@given(
    kept_whole(games(organizations=3, jobs=8).map(lambda game: [game])),
)
def test_what_partitions_without_common_nodes_are_worth_adds_up(drawn: list[Game]) -> None:
    (game,) = drawn
    assume(game.bays is not None)
    assert game.bays is not None
    apart = replace(
        game.bays,
        partitions=("a", "b"),
        reach=np.eye(2, dtype=np.bool_),
        partition=game.bays.partition % 2,
    )
    game, coalitions = replace(game, bays=apart), all_coalitions(game.organizations)
    parts = [WholeJobs().values(_alone(game, place), coalitions) for place in range(2)]
    assert (WholeJobs().values(game, coalitions) == sum(parts)).all()


def _alone(game: Game, place: int) -> Game:
    """The jobs and processors of a partition that has one bay."""
    assert game.bays is not None
    jobs = game.bays.partition == place
    columns = ("organization", "release", "processing_time", "processors", "limit")
    return replace(
        game,
        bays=None,
        owned_in=None,
        owned=np.broadcast_to(game.by_bay[:, place], game.owned.shape),
        certain=None,
        **{name: getattr(game, name)[jobs] for name in columns},
    )


LATE_PROCESSOR = Game(
    organization=np.array([0, 0]),
    release=np.array([0, 1]),
    processing_time=np.array([1, 1]),
    processors=np.array([1, 1]),
    since=np.array([-1, 1]),  # when the second job is released
    owned=np.array([[0], [1]]),
    until=2,
    horizon=None,
)


@example(LATE_PROCESSOR)
@given(games(organizations=3))
def test_jobs_that_are_cut_are_worth_what_one_pass_finds(game: Game) -> None:
    coalitions = all_coalitions(game.organizations)
    assert (WholeJobs().values(game, coalitions) == values_of(game, coalitions)).all()
