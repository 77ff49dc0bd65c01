"""Forecasts starts from what the store knows and a cycle found, and tells what limits cost.

All nodes of a partition may be reserved for some time to come, as for a maintenance: it is closed.
Slurm starts no job that may run into such a time by its limit. Futures are played as if the clock
stood still meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from shapleyprio.common.errors import ReplayError
from shapleyprio.daemon.estimation.known_runs import PastRun
from shapleyprio.daemon.estimation.messages import WaitingJob, WorkResult
from shapleyprio.daemon.forecasting.lessons import Lessons, busy
from shapleyprio.daemon.forecasting.messages import (
    Closing,
    ForecastAnswer,
    ForecastRequest,
    LimitCost,
)
from shapleyprio.daemon.forecasting.moment import (
    NOT_SUBMITTED,
    PlayedMoment,
    moment_of,
    with_small_jobs,
)
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.forecast import MOST_ERRORS, StartForecast, forecasts
from shapleyprio.replay.forecasts.futures import FUTURES, play
from shapleyprio.replay.forecasts.present import Present
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.store import LATER, ClusterStore, ForecastRow, ToldForecast

ENDLESS = 2**40
"""Seconds of a job without a limit."""


def with_releases(request: ForecastRequest) -> ForecastRequest:
    """Returns a request whose jobs are not released before a closing that their limit reaches."""

    def released(job: WaitingJob) -> WaitingJob:
        closing = next(iter(request.closings.get(job.partition, ())), None)
        limit = ENDLESS if job.limit is None else job.limit
        if closing is None or request.t + limit <= closing.begin:
            return job
        return replace(job, release=max(job.release, closing.begin))

    if not request.closings:
        return request
    return replace(request, waiting=tuple(map(released, request.waiting)))


def put_off(starts: Ints, limits: Ints, closings: Iterable[Closing]) -> Ints:
    """Returns when jobs start if the clock of their futures stands still in closings.

    Args:
        starts: int64[futures, jobs] of a partition; NEVER for those that do not start.
        limits: int64[jobs], their time limits.
        closings: of the partition.

    >>> put_off(np.array([[5, 8, 10, NEVER]]), np.array([5, 5, 5, 5]), [Closing(10, 30)]).tolist()
    [[5, 30, 30, 4611686018427387904]]
    """
    endings = np.where(limits == UNKNOWN, ENDLESS, limits)
    for begin, end in closings:
        later = np.where(starts < begin, end, starts + (end - begin))
        reaches = (starts != NEVER) & (starts + endings > begin)
        starts = np.where(reaches, later, starts)
    return starts


TOO_LONG = 2
"""A limit is too long that is so many times what such jobs need."""

LEAST_SECONDS = 600
"""What costs less is not worth a word ..."""

CERTAIN = 3
"""... nor is what is less than so many standard errors."""


def cost_of_limit(
    present: Present, job: int, predictor: Survivors, starts_of: Callable[[Present], Ints]
) -> LimitCost | None:
    """Compares futures in which a job has its limit with those in which it has a shorter one.

    Args:
        present: when they begin.
        job: that waits, by its index among the present's.
        predictor: that has learned of all jobs that have ended.
        starts_of: returns int64[futures], when the job starts in futures of a present, the same
            ones each time.

    Returns:
        None if it has no limit or one that suits it, if too few jobs are known, or if the
        difference may be chance.
    """
    jobs = present.jobs
    asked = int(jobs.limit[job])
    compared, longest = predictor.nine_of_ten(
        int(present.user[job]), asked, int(jobs.processors[job])
    )
    limit = -(-longest // 60) * 60
    if not compared or asked < TOO_LONG * limit:
        return None
    limits = jobs.limit.copy()
    limits[job] = limit
    shorter = replace(present, jobs=replace(jobs, limit=limits))
    starts = np.stack([starts_of(present), starts_of(shorter)])
    if (starts == NEVER).any():
        return None
    gains = (starts[0] - starts[1]).astype(float)
    sooner, error = float(gains.mean()), float(gains.std(ddof=1)) / sqrt(len(gains))
    if sooner < max(LEAST_SECONDS, CERTAIN * error):
        return None
    return LimitCost(jobs=compared, limit=limit, sooner=round(sooner))


MANY_WAITING = 10_000
"""Where more jobs wait, of each organization only ..."""

MOST_OF_ONE = 1_000

FEW_FUTURES = 9
"""Futures of jobs that nobody has submitted."""


class StoreForecaster:
    """Answers one request after the other, and keeps what it has learned.

    Args:
        store: of the cluster.
    """

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._lessons = Lessons()
        self._running: tuple[int, Sequence[PastRun]] = -1, ()

    def answer(self, request: ForecastRequest) -> ForecastAnswer:
        """Forecasts when the jobs will start that wait, or answers the question about one.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._store.reading() as view:
            self._lessons.update(view, request.overlap, request.t)
            judged = view.forecasts.judged(0, MOST_ERRORS)
        past = self._lessons.past
        if past.watermark is None:
            why = "no cycle has accounted anything yet"
            return ForecastAnswer(result=WorkResult.FAILED, why=why)
        errors = [_drawn(row).error(row.start or row.t) for row in reversed(judged)]
        if request.t != self._running[0]:  # else some may have ended since
            self._running = request.t, busy(past.unfinished, request.t)
        if not request.nodes:
            return ForecastAnswer(result=WorkResult.NO_PROCESSORS, why="no node has processors")
        try:
            return self._answered(request, errors)
        except ReplayError as error:
            return ForecastAnswer(result=WorkResult.TOO_LARGE, why=str(error))

    def _answered(self, request: ForecastRequest, errors: Sequence[float]) -> ForecastAnswer:
        if request.with_limit is not None:
            return ForecastAnswer(result=WorkResult.OK, cost=self._cost(request))
        rows = self._rows(request, errors, FUTURES)
        if request.asked is not None:
            return ForecastAnswer(result=WorkResult.OK, rows=tuple(rows))
        small = self._rows(with_small_jobs(request), errors, FEW_FUTURES)
        return ForecastAnswer(
            result=WorkResult.OK,
            rows=tuple(rows),
            small_waits={
                row.organization: row.median - row.t
                for row in small
                if row.job_id == NOT_SUBMITTED and row.median != LATER
            },
        )

    def _rows(
        self, request: ForecastRequest, errors: Sequence[float], futures: int
    ) -> list[ForecastRow]:
        """Returns the forecasts of the jobs that wait, or of the one that was asked for."""
        asked = request.asked
        if asked is not None:
            request = replace(request, waiting=(*request.waiting, asked))
        moment = self._moment(with_releases(request))
        places = moment.first.items()
        wanted = [n for n, job in places if asked is None or job.job_id == asked.job_id]
        if not wanted:
            return []
        of_one = None if asked is None else np.array(wanted)
        starts = self._play(request, moment)(moment.present, futures=futures, wanted=of_one)
        lacks = {row: "limit" for one in moment.present.limited for row in one.waiting}
        lacks |= dict.fromkeys(moment.present.after, "dependency")
        lacks = _closed(request, moment, starts) | lacks
        found = forecasts(moment.present, starts)
        return [
            _row(
                moment.first[place],
                replace(found[place], t=request.t - moment.base),
                moment.base,
                errors,
                lacks=lacks.get(place),
            )
            for place in wanted
        ]

    def _cost(self, request: ForecastRequest) -> LimitCost | None:
        """Returns what the limit of one job costs it."""
        moment = self._moment(request)
        places = (n for n, job in moment.first.items() if job.job_id == request.with_limit)
        place = next(places, None)
        if place is None:
            return None
        played, limits = self._play(request, moment), moment.present.jobs.limit
        spans = _spans(request, moment.first[place].partition, moment.base)

        def starts_of(present: Present) -> Ints:
            starts = played(present, wanted=np.array([place]), drawn_by=limits)[:, [place]]
            return put_off(starts, present.jobs.limit[[place]], spans)[:, 0]

        return cost_of_limit(moment.present, place, self._lessons.predictor, starts_of)

    def _moment(self, request: ForecastRequest) -> PlayedMoment:
        many = sum(job.tasks for job in request.waiting) > MANY_WAITING
        return moment_of(request, self._running[1], self._lessons, MOST_OF_ONE if many else None)

    def _play(self, request: ForecastRequest, moment: PlayedMoment) -> Callable[..., Ints]:
        """Returns `play` of presents of a moment, with the same chances each time."""
        lessons = self._lessons
        waiting = [
            job
            for job in request.waiting
            if job.release <= request.t and job.job_id not in request.after
        ]
        codes = moment.organizations
        released = lessons.released(moment.place_of, waiting, codes, moment.base)

        def played(present: Present, **how: Any) -> Ints:
            random = np.random.default_rng(request.t)
            return play(present, moment.order, lessons.predictor, released, random, **how)

        return played


def _closed(request: ForecastRequest, moment: PlayedMoment, starts: Ints) -> dict[int, str]:
    """Puts off starts while partitions are closed; returns which jobs mostly wait for their end."""
    waits_for: dict[int, str] = {}
    for name in request.closings:
        here = [place for place, job in moment.first.items() if job.partition == name]
        spans = _spans(request, name, moment.base)
        starts[:, here] = put_off(starts[:, here], moment.present.jobs.limit[here], spans)
        late = np.median(starts[:, here], axis=0) >= spans[0].begin
        waits_for |= dict.fromkeys(np.array(here)[late].tolist(), "reservation")
    return waits_for


def _spans(request: ForecastRequest, partition: str, base: int) -> list[Closing]:
    """Returns when a partition is closed, on a moment's clock."""
    closings = request.closings.get(partition, ())
    return [Closing(begin - base, end - base) for begin, end in closings]


def _row(
    job: WaitingJob,
    drawn: StartForecast,
    base: int,
    errors: Sequence[float],
    *,
    lacks: str | None,
) -> ForecastRow:
    waits_for = "time" if job.release - base > drawn.t else drawn.waits_for
    told = drawn.widened(errors)

    def second(of_clock: int) -> int:
        return LATER if of_clock == NEVER else of_clock + base

    return ForecastRow(
        job_id=job.job_id,
        t=second(drawn.t),
        organization=job.organization,
        median=second(told.median),
        early=second(told.early),
        late=second(told.late),
        drawn_early=second(drawn.early),
        drawn_late=second(drawn.late),
        within_hour=round(100 * drawn.within_hour),
        waits_for=lacks or waits_for,
    )


def _drawn(row: ToldForecast) -> StartForecast:
    """Returns a forecast as it was before it was widened."""
    return StartForecast(
        t=row.t,
        median=row.median,
        early=row.drawn_early,
        late=row.drawn_late,
        within_hour=row.within_hour / 100,
        waits_for="processors" if row.waits_for == "processors" else "turn",
    )
