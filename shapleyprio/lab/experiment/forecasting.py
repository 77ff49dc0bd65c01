"""The experiment on forecasts: whether jobs start when the policies' own forecasts say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from shapleyprio.common.errors import Remedy
from shapleyprio.common.wording import duration, percent
from shapleyprio.lab.experiment.cells import (
    Experiment,
    ExperimentError,
    ExperimentTable,
    Row,
    WindowsParameters,
)
from shapleyprio.lab.experiment.general import GROUPS, windows_experiment
from shapleyprio.lab.experiment.logs import log_of
from shapleyprio.lab.experiment.observing import (
    Observer,
    Orders,
    check_forecast,
    schedule_with_orders,
)
from shapleyprio.lab.experiment.scoring import MeanWaits, Score, by_limits, score_of, widened
from shapleyprio.lab.experiment.windows import WindowCell, window_at_random
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.forecast import StartForecast, forecasts
from shapleyprio.replay.forecasts.futures import play
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Consortium, Workload, with_history, workload_of

FEW = 20
"""Futures for a median alone."""

MOST_DRAWS = 200
"""Windows drawn until in one enough jobs wait."""

FUTURES, LIMITS, MEAN_WAIT = "futures", "limits", "mean wait"
"""By what a start is forecast."""

RUNNING_KNOWN = "running known"
"""By futures in which the jobs that run now last as long as they really did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastCell(WindowCell):
    """One window of a log, in which forecasts of some jobs are scored under each policy.

    The schedule goes on for as long again as the window, so that jobs released late in it are seen
    to start as well.

    Attributes:
        releases: of how many jobs forecasts are asked, each when it is released and has to wait.
    """

    releases: int

    def run(self) -> list[Row]:
        """Returns a row for each policy, job and way to forecast.

        Raises:
            ReplayError: the log cannot be read, or has no window as wanted.
        """
        log = log_of(self.source)
        dealt, random = self._dealt(log), self._random()
        for _ in range(MOST_DRAWS):
            window = window_at_random(log, self.length, dealt, random, wide=self.wide)
            twice = replace(window, length=2 * self.length)
            workload = workload_of(log, dealt, window=twice, wide=self.wide, backfill=self.backfill)
            asked = _Asked(self, log, dealt, with_history(workload, log))
            if asked.waits_enough():
                return [row for policy in self.policies for row in asked.rows(policy)]
        raise ExperimentError(
            f"{log.source}: in none of {MOST_DRAWS} windows of {self.length} s drawn do "
            f"{self.releases} jobs wait",
            Remedy.LONGER_WINDOW,
        )

    def drawn_seed(self, purpose: str) -> int:
        """Returns the seed of something that is drawn in this cell."""
        return self._drawn_seed(purpose)


class _Asked:
    """A window in which forecasts are asked for."""

    def __init__(
        self, cell: ForecastCell, log: Log, consortium: Consortium, workload: Workload
    ) -> None:
        self._cell, self._log, self._consortium = cell, log, consortium
        self._workload = workload
        self._first = self._schedule(cell.policies[0])

    def waits_enough(self) -> bool:
        """Returns whether so many jobs wait under the first policy as are to be asked about."""
        return len(self._waiting(self._first[0])) >= self._cell.releases

    def rows(self, policy: str) -> Iterator[Row]:
        """Returns a row for each job that is asked about, and each way to forecast."""
        is_first = policy == self._cell.policies[0]
        schedule, orders = self._first if is_first else self._schedule(policy)
        workload, starts = self._workload, _starts_of(self._workload, schedule)
        observer = Observer(self._log, self._consortium, workload, schedule)
        expected = MeanWaits(workload, schedule)
        random, other_random = (
            np.random.default_rng(self._cell.drawn_seed(f"{what}/{policy}"))
            for what in ("forecasts", "running known")
        )
        for job in self._sampled(self._waiting(schedule)).tolist():
            t = int(workload.release[job])
            known = observer.at(t)
            place = int(np.flatnonzero(known.present.jobs.position == workload.position[job])[0])
            order, present = orders(t), known.present
            futures = play(present, order, known.predictor, known.past, random)
            forecast = forecasts(present, futures)[place]
            lengths = np.where(present.waits, UNKNOWN, present.jobs.processing_time)
            knowing = play(
                *(present, order, known.predictor, known.past, other_random),
                known=lengths,
                futures=FEW,
            )
            by = {
                FUTURES: forecast.median,
                RUNNING_KNOWN: forecasts(present, knowing)[place].median,
                LIMITS: int(by_limits(present, order)[place]),
                MEAN_WAIT: expected.start_of(job, t),
            }
            start = None if starts[job] == NEVER else int(starts[job])
            for way, found in by.items():
                of_futures = way == FUTURES
                yield {
                    "log": self._cell.log,
                    "length": self._cell.length,
                    "shares": self._cell.shares,
                    "organizations": self._cell.organizations,
                    "window": self._cell.window,
                    "deal": self._cell.deal,
                    "window_start": workload.window.start,
                    "policy": policy,
                    "job": int(workload.job[job]),
                    "release": t,
                    "start": start,
                    "by": way,
                    "forecast": found,
                    "early": forecast.early if of_futures else None,
                    "late": forecast.late if of_futures else None,
                    "within_hour": forecast.within_hour if of_futures else None,
                    "waits_for": forecast.waits_for if of_futures else None,
                    "error": None if start is None else abs(found - start),
                }

    def _schedule(self, policy: str) -> tuple[Schedule, Orders]:
        return schedule_with_orders(
            self._workload,
            policy,
            seed=self._cell.drawn_seed("policy"),
            estimation=self._cell.estimation,
        )

    def _waiting(self, schedule: Schedule) -> Ints:
        """Returns jobs of the window that have to wait, in order of release."""
        workload, starts = self._workload, _starts_of(self._workload, schedule)
        jobs = np.flatnonzero((workload.release < self._cell.length) & (starts > workload.release))
        found: Ints = jobs[np.argsort(workload.release[jobs], kind="stable")]
        return found

    def _sampled(self, jobs: Ints) -> Ints:
        count = min(self._cell.releases, len(jobs))
        sampled: Ints = jobs[np.arange(count) * len(jobs) // max(count, 1)]
        return sampled


def _starts_of(workload: Workload, schedule: Schedule) -> Ints:
    """Returns when each job starts; NEVER if it does not."""
    starts = np.full(len(workload.job), NEVER, dtype=np.int64)
    starts[schedule.job[::-1]] = schedule.start[::-1]
    return starts


AHEAD = (600, 3600, 21_600)
"""Bounds of how long ahead forecasts are, in seconds, for a line of each."""

Scored = tuple[StartForecast, int]
"""A forecast and when the job started, in the log's seconds."""


def forecasts_experiment(
    logs: Sequence[str], parameters: WindowsParameters, releases: int
) -> Experiment:
    """Makes an experiment: when jobs will start, forecast in windows drawn at random.

    Args:
        logs: files, or URLs of stores.
        parameters: of windows, deals and policies.
        releases: of how many jobs of each window forecasts are asked.

    Raises:
        PolicyError: there is no such policy, or there are no forecasts under it.
        ExperimentError: as for `windows_experiment`.
    """
    made = windows_experiment(logs, parameters)
    for policy in parameters.policies:
        check_forecast(policy)
    cells = [_with_releases(cell, releases) for cell in made.cells if isinstance(cell, WindowCell)]
    return replace(
        made,
        name="forecasts",
        description="by how many seconds starts were forecast wrongly; "
        f"{releases:,} releases in each of {parameters.windows:,} windows of "
        f"{duration(parameters.length)} of each log",
        cells=cells,
        by=(*GROUPS, "by"),
        value="error",
        paired=(*GROUPS, "window", "deal", "job", "release"),
        share=None,
        parameters={**made.parameters, "forecasts": releases},
        tables=tables_of,
    )


def _with_releases(cell: WindowCell, releases: int) -> ForecastCell:
    same: dict[str, Any] = {field.name: getattr(cell, field.name) for field in fields(cell)}
    return ForecastCell(**same, releases=releases)


def tables_of(rows: Sequence[Row]) -> list[ExperimentTable]:
    """Returns how often intervals held, for each log, deal and policy."""
    of_futures = [row for row in rows if row["by"] == FUTURES and row["start"] is not None]
    groups = groupby(sorted(of_futures, key=_group_of), key=_group_of)
    return [_table_of(key, list(of_group)) for key, of_group in groups]


def _group_of(row: Row) -> tuple[str, ...]:
    return tuple(str(row[column]) for column in GROUPS)


def _table_of(key: tuple[str, ...], rows: Sequence[Row]) -> ExperimentTable:
    scored = sorted(map(_scored, rows), key=lambda one: one[0].t)
    after = list(zip(widened(scored), (start for _, start in scored), strict=True))
    bounds = [0, *AHEAD, None]
    lines = []
    for low, high in [(0, None), *pairwise(bounds)]:
        chosen = [
            number
            for number, (one, _) in enumerate(scored)
            if (low or 0) <= one.median - one.t and (high is None or one.median - one.t < high)
        ]
        before = score_of([scored[number] for number in chosen])
        found = score_of([after[number] for number in chosen])
        lines.append((_ahead(low, high), before.count, *_coverages(before, found), before.error))
    return ExperimentTable(
        title=f"intervals that are to hold in 80 of 100 cases: {', '.join(key)}",
        header=("ahead", "forecasts", "held as played", "held as widened", "median error"),
        lines=lines,
    )


def _ahead(low: int | None, high: int | None) -> str:
    if high is not None:
        return f"{duration(low or 0)} to {duration(high)}" if low else f"under {duration(high)}"
    return f"{duration(low)} and more" if low else "all"


def _coverages(*scores: Score) -> Iterable[str | None]:
    return [None if one.coverage is None else percent(one.coverage) for one in scores]


def _scored(row: Row) -> Scored:
    def second(column: str) -> int:
        return int(row["window_start"] or 0) + int(row[column] or 0)

    forecast = StartForecast(
        t=second("release"),
        median=second("forecast"),
        early=second("early"),
        late=second("late"),
        within_hour=float(row["within_hour"] or 0),
        waits_for="processors" if row["waits_for"] == "processors" else "turn",
    )
    return forecast, second("start")
