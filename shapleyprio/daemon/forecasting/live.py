"""Forecasts of starts, renewed beside the cycles, kept, and judged when jobs start."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Protocol

import structlog

from shapleyprio.common.workers import PYTHON
from shapleyprio.config import Config
from shapleyprio.daemon.estimation.messages import WaitingJob, WorkResult
from shapleyprio.daemon.estimation.worker import StoreWorker
from shapleyprio.daemon.forecasting.messages import (
    FRESH_SECONDS,
    ForecastAnswer,
    ForecastRequest,
    LimitCost,
)
from shapleyprio.daemon.forecasting.scores import ForecastScore, scores_of, to_judge
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.fairness.runs import Run
from shapleyprio.store import ClusterStore, ForecastRow, StoreError, Transaction

WORKER = (*PYTHON, "-m", "shapleyprio.daemon.forecasting")

REST = 9
"""So many times the CPU time that forecasts took the worker rests: it has a tenth of a core."""

LONGEST_SECONDS = 900
"""So long forecasts stay where nothing happens, and none are tried after a failure."""

LOST_SECONDS = 8.0
"""Who stops waits no longer for a store that does not answer."""

QUESTIONS_AT_ONCE = 2
"""Questions about jobs that nobody has submitted: one is answered, one waits for its turn ..."""

PATIENCE_SECONDS = 10.0
"""... for so long."""

BRIEF_SECONDS = 2.0
"""So long what nobody asked for waits for its turn."""

QUICK_SECONDS = 10.0
"""If forecasts of all jobs took no longer, what nobody asked for is found out."""

ANSWER_SECONDS = 60.0
"""So long an answer takes at most; who asks waits for it."""

log = structlog.get_logger(__name__)


class NoForecastsError(Exception):
    """Nothing can be forecast now; the message is one line for who asks."""


class ForecastingWorker(StoreWorker[ForecastRequest, ForecastAnswer]):
    """A process that forecasts when jobs will start."""

    kind = ForecastAnswer


class ForecastPublisher(Protocol):
    """Publishes what became of forecasts, as the daemon's metrics do."""

    def publish_forecasts(
        self, t: int, seconds: float, waits: Mapping[str, int], scores: Sequence[ForecastScore]
    ) -> None:
        """Publishes that there are forecasts.

        Args:
            t: second that they are of.
            seconds: that they took.
            waits: organization -> wait in seconds that a small job is expected to have.
            scores: what the last month's forecasts were worth.
        """

    def publish_forecast_failure(self, result: str) -> None:
        """Counts forecasts that failed.

        Args:
            result: the word of a `WorkResult` other than ``ok``.
        """

    def withdraw_forecasts(self) -> None:
        """Shows the last forecasts no more."""


class LiveForecasts:
    """Forecasts starts in a worker process, on a thread of its own: no cycle waits or fails by it.

    Args:
        store: of the cluster, where forecasts are kept.
        worker: that forecasts.
        publisher: of what became of them.
        clock: seconds that never go back.

    Attributes:
        is_stopped: whether it was stopped.
    """

    def __init__(
        self,
        store: ClusterStore,
        worker: ForecastingWorker,
        publisher: ForecastPublisher,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.is_stopped = False
        self._store = store
        self._worker = worker
        self._publisher = publisher
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="forecasting")
        self._running: Future[None] | None = None
        self._starts: deque[tuple[int, int]] = deque()
        self._rests_until = -float("inf")
        self._asking = Lock()
        self._questions = BoundedSemaphore(QUESTIONS_AT_ONCE)
        self._config: Config | None = None
        self._asked: ForecastRequest | None = None
        self._asked_at = 0.0
        self._seconds = 0.0
        self._costs: dict[int, LimitCost | None] = {}
        self._changed = True
        self._has_rows = True  # of an earlier daemon, perhaps
        self._failure: ForecastAnswer | None = None

    def follow(
        self,
        config: Config,
        request: Callable[[], ForecastRequest],
        started: Iterable[Run],
        *,
        changed: bool,
    ) -> None:
        """Goes on after a cycle, and returns at once.

        Args:
            config: how much memory and time the worker may take.
            request: returns who competes for what; called only when it may be time for forecasts.
            started: runs that were not known before.
            changed: whether any run is other than before.
        """
        self._config = config
        for run in started:
            self._starts += [(number, run.begin) for number in {run.key.job_id, run.array_job_id}]
        self._changed |= changed
        if self._running is not None and not self._running.done():
            return
        due = self._due(request) if self._clock() >= self._rests_until else None
        if due is not None or self._starts:
            self._running = self._thread.submit(self._work, config, due)

    def sizes(self) -> Mapping[str, int]:
        """Returns partition -> its processors.

        Raises:
            NoForecastsError: no cycle has found out lately.
        """
        return self._found()[0].sizes

    def of_one_more(self, job: WaitingJob) -> tuple[ForecastRow, int]:
        """Forecasts when a job would start that is submitted now, behind all that wait.

        Args:
            job: whose release does not matter.

        Returns:
            The forecast, and of how many seconds ago the queue is.

        Raises:
            NoForecastsError: it is not known now.
        """
        answer = self._answered(
            lambda now: replace(now, asked=replace(job, release=now.t)), PATIENCE_SECONDS
        )
        if not answer.rows:
            raise NoForecastsError(
                "too many jobs wait: those far behind, as this would be, are not forecast"
            )
        (row,) = answer.rows
        age = int(self._clock() - self._asked_at)
        return row.not_before(row.t + age), age

    def cost_of_limit(self, job_id: int) -> LimitCost | None:
        """Returns what the limit of a job that waits costs it; None if that is not known now.

        Where forecasts take long this is not found out: nobody asked for it.
        """
        costs = self._costs  # of the queue that a cycle has found last
        if job_id not in costs and self._seconds <= QUICK_SECONDS:
            try:
                answer = self._answered(lambda now: replace(now, with_limit=job_id), BRIEF_SECONDS)
            except NoForecastsError:
                return None
            costs[job_id] = answer.cost
        return costs.get(job_id)

    def _answered(
        self, question: Callable[[ForecastRequest], ForecastRequest], patience: float
    ) -> ForecastAnswer:
        if not self._questions.acquire(blocking=False):
            raise NoForecastsError("others ask for forecasts at this moment; ask again in a minute")
        try:
            if not self._asking.acquire(timeout=patience):
                raise NoForecastsError("forecasts are being made; ask again in a minute")
            try:
                request, config = self._found()
                answer = self._ask(config, question(request), ANSWER_SECONDS)
            finally:
                self._asking.release()
        finally:
            self._questions.release()
        if answer.result is not WorkResult.OK:
            raise NoForecastsError(f"the forecast failed: {answer.why}")
        return answer

    def _found(self) -> tuple[ForecastRequest, Config]:
        """Returns what a cycle found last; see `sizes`."""
        is_old = self._clock() - self._asked_at > FRESH_SECONDS
        if self._asked is None or self._config is None or is_old:
            raise NoForecastsError("no cycle has read the queue in the last hour")
        if self._config.fairness.weight != "cpus":
            raise NoForecastsError("no forecasts, because processors here are not CPUs")
        return self._asked, self._config

    def stop(self) -> None:
        """Ends forecasts that are being made, and lets none begin."""
        self.is_stopped = True
        self._worker.stop()
        if self._running is not None:
            wait([self._running], LOST_SECONDS)
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._worker.close()
        self._publisher.withdraw_forecasts()

    def _due(self, make: Callable[[], ForecastRequest]) -> ForecastRequest | None:
        """Returns what to ask; None where nothing has happened since it was asked."""
        request, last = make(), self._asked
        same = last is not None and not self._changed and request.waiting == last.waiting
        if same and last is not None and 0 <= request.t - last.t < LONGEST_SECONDS:
            return None
        self._asked, self._costs = request, {}
        self._asked_at, self._changed = self._clock(), False
        return request

    def _work(self, config: Config, request: ForecastRequest | None) -> None:
        """Judges and forecasts; whatever goes wrong is logged."""
        try:
            self._judge()
            if request is not None:
                self._forecast(config, request)
        except (StoreError, LeaseHeldError) as why:
            log.warning("no forecasts of starts", why=str(why))
        except Exception:
            log.exception("no forecasts of starts")

    def _judge(self) -> None:
        starts: dict[int, int] = {}
        news = list(self._starts)
        if not news:
            return
        for number, begin in news:
            starts[number] = min(begin, starts.get(number, begin))
        self._store.transact(lambda rows: rows.forecasts.note_starts(starts))
        for _ in news:
            self._starts.popleft()

    def _forecast(self, config: Config, request: ForecastRequest) -> None:
        began = self._clock()
        answer = ForecastAnswer(result=WorkResult.OK)
        if request.waiting:
            with self._asking:
                answer = self._ask(config, request, config.estimation.time_limit)
            if answer.result is not WorkResult.OK:
                self._fail(answer)
                return
            self._failure = None
        rows = answer.rows

        def save(transaction: Transaction) -> None:
            transaction.forecasts.save(rows, to_judge(rows, transaction.forecasts.unjudged()))

        if rows or self._has_rows:
            self._store.transact(save)
            self._has_rows = bool(rows)
        self._seconds = seconds = self._clock() - began
        self._rests_until = self._clock() + REST * answer.cpu_seconds
        with self._store.reading() as view:
            scores = scores_of(view, request.t)
        self._publisher.publish_forecasts(request.t, seconds, answer.small_waits, scores)
        log.debug("starts forecast", t=request.t, jobs=len(rows), seconds=round(seconds, 3))

    def _ask(self, config: Config, request: ForecastRequest, time_limit: float) -> ForecastAnswer:
        estimation = config.estimation
        return self._worker.ask(
            request,
            memory_limit=estimation.memory_limit,
            time_limit=min(time_limit, estimation.time_limit),
        )

    def _fail(self, answer: ForecastAnswer) -> None:
        self._rests_until = self._clock() + LONGEST_SECONDS
        if self.is_stopped:
            return
        self._publisher.publish_forecast_failure(answer.result.value)
        # what is wrong for hours is said once
        write = log.debug if answer == self._failure else log.warning
        write("starts not forecast", result=answer.result.value, why=answer.why)
        self._failure = answer
