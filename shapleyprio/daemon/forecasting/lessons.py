"""What the last weeks' runs say of jobs to come: how long they last, and when they are released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from shapleyprio.common.wording import DAY
from shapleyprio.daemon.estimation.known_game import NOWHERE, limit_of
from shapleyprio.daemon.estimation.known_runs import KnownPast, PastRun, user_in_account
from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.forecasts.futures import MOST_WEEKS, Columns, ReleasedJobs
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.store import View

WEEK = 7 * DAY
REACH_SECONDS = (MOST_WEEKS + 1) * WEEK
"""Runs of so long are read, and forgotten a week later."""


class Lessons:
    """Knows the last weeks' runs as the store does, and learns from those that have ended.

    Attributes:
        past: the runs.
        predictor: that has learned of them.
    """

    def __init__(self) -> None:
        self.past, self.predictor = KnownPast(), Survivors()
        self._since, self._edition, self._taken = 0, -1, 0
        self._users: dict[str, int] = {}

    def update(self, view: View, overlap: int, t: int) -> None:
        """Takes in what has changed in the store.

        Args:
            view: of the cluster.
            overlap: seconds of accounting that every cycle reads again.
            t: now.
        """
        if not 0 <= t - REACH_SECONDS - self._since < WEEK:
            self._since, self._edition = t - REACH_SECONDS, -1
            self.past = KnownPast(self._since)
        self.past.update(view, overlap)
        if self.past.edition != self._edition:
            self._edition, self._taken, self.predictor = self.past.edition, 0, Survivors()
        news = self.past.ended[self._taken :]
        self._taken += len(news)
        for run in sorted(news, key=lambda run: run.behind or 0):
            length = (run.behind or run.begin) - run.begin
            user, limit = self.user(run.user), limit_of(run.limit)
            self.predictor.learn(user, limit, run.processors, length)

    def user(self, name: str) -> int:
        """Returns the code of a user in an account."""
        return self._users.setdefault(name, len(self._users))

    def released(
        self,
        place_of: Callable[[str], int],
        waiting: Iterable[WaitingJob],
        organizations: Mapping[str, int],
        base: int,
    ) -> ReleasedJobs:
        """Returns the jobs that were released lately, and how long those lasted that have ended.

        Args:
            place_of: returns the code of a job's partition; NOWHERE if its jobs are left out.
            waiting: jobs that have not started.
            organizations: name -> its code; others' jobs are left out.
            base: second at which the clock of what is returned shows 0.
        """
        rows = [
            (
                run.release - base,
                organizations[run.organization],
                run.processors,
                limit_of(run.limit),
                self.user(run.user),
                run.behind - run.begin if run.ended and run.behind is not None else UNKNOWN,
                place_of(run.partition),
            )
            for run in self.past.runs.values()
            if run.organization in organizations
            and place_of(run.partition) != NOWHERE
            and run.processors > 0
            and run.behind != run.begin
            and run.release >= self._since
        ]
        rows += [
            (
                job.release - base,
                organizations[job.organization],
                job.processors // max(job.tasks, 1),
                limit_of(job.limit),
                self.user(user_in_account(job.user, job.account)),
                UNKNOWN,
                place_of(job.partition),
            )
            for job in waiting
            if place_of(job.partition) != NOWHERE and job.processors > 0
        ]
        table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 7)
        release, whose, processors, limit, user, length, partition = table.T.copy()
        order = np.arange(len(table))
        jobs = Columns(release, whose, processors, limit, user, length, order, partition)
        return ReleasedJobs(jobs, max(self.past.begin, self._since) - base)


def busy(runs: Iterable[PastRun], t: int) -> Sequence[PastRun]:
    """Returns the runs that hold processors: suspended ones do not."""
    return [run for run in runs if run.behind is None and run.begin <= t]
