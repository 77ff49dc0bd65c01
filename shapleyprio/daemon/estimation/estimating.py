"""Estimates contributions from what the store knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import ceil

import numpy as np

from shapleyprio.daemon.estimation.known_game import KnownGame
from shapleyprio.daemon.estimation.known_runs import KnownPast
from shapleyprio.daemon.estimation.messages import EstimateAnswer, EstimateRequest, WorkResult
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.shapley import unions_of
from shapleyprio.fairness.worth import Trajectory
from shapleyprio.replay.coalitions.estimate import Estimate, Estimator
from shapleyprio.replay.coalitions.game import Game, GameError
from shapleyprio.store import ClusterStore, EstimateRow, Watermark


class StoreEstimator:
    """Answers one request after the other, each from what it found before.

    What it answers depends on the store and the request alone.

    Args:
        store: of the cluster.
    """

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._past = KnownPast()
        self._played_by: tuple[tuple[str, ...], Mapping[str, str]] = ((), {})
        self._game = KnownGame(())
        self._drawn_by: tuple[int, int, tuple[int, ...] | None] = (0, 0, None)
        self._estimator = Estimator(budget=0)

    def answer(self, request: EstimateRequest) -> EstimateAnswer:
        """Estimates the contributions of the organizations.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._store.reading() as view:
            self._past.update(view, request.overlap)
            entries = view.ledger.entries()
        watermark = self._past.watermark
        if watermark is None:
            why = "no cycle has accounted anything yet"
            return EstimateAnswer(result=WorkResult.FAILED, why=why)
        ledger = Ledger(watermark.horizon, folded_to=watermark.folded_to, entries=entries)
        if (request.organizations, request.parents) != self._played_by:
            self._played_by = request.organizations, request.parents
            unions = unions_of(request.organizations, request.parents)
            self._game = KnownGame(request.organizations, unions)
        try:
            game = self._game.game(self._past, request.waiting)
        except GameError as error:
            return EstimateAnswer(result=WorkResult.TOO_LARGE, why=str(error))
        if not game.owned.any():
            why = "no organization brings processors; see `shapleyprio check`"
            return EstimateAnswer(result=WorkResult.NO_PROCESSORS, why=why)
        if (request.coalitions, request.seed, game.unions) != self._drawn_by:
            self._drawn_by = request.coalitions, request.seed, game.unions
            self._estimator = Estimator(budget=request.coalitions, seed=request.seed)
        return EstimateAnswer(
            result=WorkResult.OK,
            rows=self._rows(request, game, self._estimator.estimate(game), ledger),
            waiting=self._game.work_of(request.waiting),
        )

    def _rows(
        self, request: EstimateRequest, game: Game, found: Estimate, ledger: Ledger
    ) -> tuple[EstimateRow, ...]:
        names, t = request.organizations, game.until
        assert self._past.watermark is not None, "there is a game"
        everything = self._past.begin == self._past.watermark.opened
        recent = ledger if everything else self._recent(self._past.watermark)
        total, since_begin = ledger.trajectories(t, names), recent.trajectories(t, names)
        single = np.eye(len(names), dtype=np.bool_)
        values = self._estimator.values(game, np.concatenate((single, ~single)))
        alone, without = values[:, 0].reshape(2, -1)
        rows = []
        for u, name in enumerate(names):
            # of what was executed before the game, only on whose processors is still known
            given, got = since_begin[name]
            before = total[name][0] - given
            path = Trajectory(*found.numerators[u], found.denominator) + before
            rows.append(
                EstimateRow(
                    t=t,
                    organization=name,
                    begin=int(game.since[0]),
                    **asdict(path),
                    error=ceil(found.error[u]),
                    utility=got.value,
                    alone=int(alone[u]),
                    without=int(without[u]),
                    parts=got.rate,
                    coalitions=found.coalitions,
                )
            )
        return tuple(rows)

    def _recent(self, watermark: Watermark) -> Ledger:
        """Returns the ledger of what was executed since the game's begin."""
        recent = Ledger(watermark.horizon, folded_to=watermark.folded_to)
        begin = self._past.begin
        for run in self._past.runs.values():
            recent.add(
                replace(place, begin=max(place.begin, begin))
                for place in run.allocations
                if place.end is None or place.end > begin
            )
        return recent
