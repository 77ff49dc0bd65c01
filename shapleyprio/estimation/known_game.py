"""The game of a cluster's past: whose jobs and processors there were, as far as is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from shapleyprio.estimation.known_runs import KnownPast, PastRun
from shapleyprio.estimation.messages import WaitingJob
from shapleyprio.replay.log import UNKNOWN
from shapleyprio.replay.shapley.game import Game, Ints
from shapleyprio.replay.shapley.predictors import Predictor
from shapleyprio.store import CapacityRow


class KnownGame:
    """Makes the game of the past, and learns from it how long jobs last.

    Jobs and processors of those who are not among the organizations take no part. What ran at the
    begin is released there, with the rest of its processing time.

    Args:
        organizations: names, in the order of the game.
        predictor: of how long jobs last that have not ended; it has learned nothing yet.
    """

    def __init__(self, organizations: Sequence[str], predictor: Predictor) -> None:
        self._code = {name: u for u, name in enumerate(organizations)}
        self._predictor = predictor
        self._users: dict[str, int] = {}

    def game(self, past: KnownPast, waiting: Iterable[WaitingJob]) -> Game:
        """Returns the game from the first second whose runs are known to where the ledger stands.

        Args:
            past: of the cluster, after the first cycle.
            waiting: jobs that have not started.

        Raises:
            GameError: numbers get too large.
        """
        assert past.watermark is not None, "there is no game before the first cycle"
        begin, t = past.begin, past.watermark.accounted_to
        runs = [
            run
            for run in past.runs.values()
            if run.organization in self._code
            and run.processors > 0
            and run.begin <= t
            and (run.behind is None or run.behind > begin)
        ]
        self._learn(past.runs.values())
        rows = [self._row_of_run(run, begin, t) for run in runs]
        rows += [
            self._row_of_waiting(job, begin)
            for job in waiting
            if job.organization in self._code and job.release <= t and job.processors > 0
        ]
        rows.sort()
        table = np.array(rows, dtype=np.int64).reshape(-1, len(_Row._fields)).T
        columns = dict(zip(_Row._fields, table, strict=True))
        since, owned = self._owned(past.capacities, begin, t)
        return Game(
            organization=columns["organization"],
            release=columns["release"],
            processing_time=self._processing_time(columns),
            processors=columns["processors"],
            since=since,
            owned=owned,
            until=t,
            horizon=past.watermark.horizon,
            certain=columns["executed"],
        )

    def _learn(self, runs: Iterable[PastRun]) -> None:
        """Lets the predictor learn from the jobs that ended, in the order of their ends."""
        ended = [
            (run.behind, run.job_id, run.user, run.behind - run.begin)
            for run in runs
            if run.ended and run.behind is not None
        ]
        for _, _, user, seconds in sorted(ended):
            self._predictor.learn(self._user(user), seconds)

    def _user(self, name: str) -> int:
        return self._users.setdefault(name, len(self._users))

    def _row_of_run(self, run: PastRun, begin: int, t: int) -> _Row:
        """Returns what of a run lies in the game."""
        first = max(run.begin, begin)
        behind = t if run.behind is None else run.behind
        return _Row(
            release=begin if run.begin <= begin else max(run.release, begin),
            job=run.job_id,
            organization=self._code[run.organization],
            processors=run.processors,
            user=self._user(run.user),
            limit=UNKNOWN if run.limit is None else run.limit,
            before=first - run.begin,
            executed=max(behind - first, 0),
            ended=run.ended,
        )

    def _row_of_waiting(self, job: WaitingJob, begin: int) -> _Row:
        return _Row(
            release=max(job.release, begin),
            job=job.job_id,
            organization=self._code[job.organization],
            processors=job.processors,
            user=self._user(job.user),
            limit=UNKNOWN if job.limit is None else job.limit,
            before=0,
            executed=0,
            ended=False,
        )

    def _processing_time(self, columns: dict[str, Ints]) -> Ints:
        """Returns how long jobs last within the game; for those that have not ended, a guess."""
        seconds = columns["executed"].copy()
        unfinished = np.flatnonzero(columns["ended"] == 0)
        before = columns["before"][unfinished]
        predicted = self._predictor.predict(
            columns["user"][unfinished],
            columns["limit"][unfinished],
            before + columns["executed"][unfinished],
        )
        seconds[unfinished] = predicted - before
        return np.maximum(seconds, 1)

    def _owned(self, rows: Iterable[CapacityRow], begin: int, t: int) -> tuple[Ints, Ints]:
        """Returns since when there are how many processors of each organization."""
        changes = sorted(
            (max(row.since, begin), row.since, self._code[row.organization], row.processors)
            for row in rows
            if row.organization in self._code and row.since <= t
        )
        now = np.zeros(len(self._code), dtype=np.int64)
        levels = {begin: now.copy()}
        for second, _, u, processors in changes:
            now[u] = processors
            levels[second] = now.copy()
        since = np.array(sorted(levels), dtype=np.int64)
        return since, np.array([levels[second] for second in since.tolist()])


class _Row(NamedTuple):
    """A job; sorted, rows are in the order in which coalitions start them."""

    release: int
    job: int
    organization: int
    processors: int
    user: int
    limit: int
    before: int
    """Seconds executed before the game's begin."""
    executed: int
    """Seconds executed since."""
    ended: bool
