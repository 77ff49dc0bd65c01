"""Forecasts of starts, renewed beside the cycles, kept, and judged when jobs start."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from time import monotonic
from typing import Protocol

import structlog

from shapleyprio.common.workers import PYTHON
from shapleyprio.config import Config
from shapleyprio.daemon.estimation.messages import WorkResult
from shapleyprio.daemon.estimation.worker import StoreWorker
from shapleyprio.daemon.forecasting.messages import ForecastAnswer, ForecastRequest
from shapleyprio.daemon.forecasting.scores import ForecastScore, scores_of, to_judge
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.fairness.runs import Run
from shapleyprio.store import ClusterStore, ForecastRow, StoreError, Transaction

WORKER = (*PYTHON, "-m", "shapleyprio.daemon.forecasting")

REST = 9
"""So many times as long as forecasts took the worker rests: it has a tenth of a core."""

LONGEST_SECONDS = 900
"""So long forecasts stay where nothing happens, and none are tried after a failure."""

LOST_SECONDS = 8.0
"""Who stops waits no longer for a store that does not answer."""

log = structlog.get_logger(__name__)


class ForecastingWorker(StoreWorker[ForecastRequest, ForecastAnswer]):
    """A process that forecasts when jobs will start."""

    kind = ForecastAnswer


class ForecastPublisher(Protocol):
    """Publishes what became of forecasts, as the daemon's metrics do."""

    def publish_forecasts(self, t: int, seconds: float, waits: Mapping[str, int]) -> None:
        """Publishes that there are forecasts.

        Args:
            t: second that they are of.
            seconds: that they took.
            waits: organization -> wait in seconds that a small job is expected to have.
        """

    def publish_forecast_failure(self, result: str) -> None:
        """Counts forecasts that failed.

        Args:
            result: the word of a `WorkResult` other than ``ok``.
        """

    def publish_scores(self, scores: Sequence[ForecastScore]) -> None:
        """Publishes what the last month's forecasts were worth."""

    def withdraw(self) -> None:
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
        self._asked: ForecastRequest | None = None
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
        for run in started:
            self._starts += [(number, run.begin) for number in {run.key.job_id, run.array_job_id}]
        self._changed |= changed
        if self._running is not None and not self._running.done():
            return
        due = self._due(request) if self._clock() >= self._rests_until else None
        if due is not None or self._starts:
            self._running = self._thread.submit(self._work, config, due)

    def stop(self) -> None:
        """Ends forecasts that are being made, and lets none begin."""
        self.is_stopped = True
        self._worker.stop()
        if self._running is not None:
            wait([self._running], LOST_SECONDS)
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._worker.close()
        self._publisher.withdraw()

    def _due(self, make: Callable[[], ForecastRequest]) -> ForecastRequest | None:
        """Returns what to ask; None where nothing has happened since it was asked."""
        request, last = make(), self._asked
        same = last is not None and not self._changed and request.waiting == last.waiting
        if same and last is not None and 0 <= request.t - last.t < LONGEST_SECONDS:
            return None
        self._asked, self._changed = request, False
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
        rows: Sequence[ForecastRow] = ()
        waits: Mapping[str, int] = {}
        if request.waiting:
            answer = self._worker.ask(
                request,
                memory_limit=config.estimation.memory_limit,
                time_limit=config.estimation.time_limit,
            )
            if answer.result is not WorkResult.OK:
                self._fail(answer)
                return
            rows, waits, self._failure = answer.rows, answer.small_waits, None

        def save(transaction: Transaction) -> None:
            transaction.forecasts.save(rows, to_judge(rows, transaction.forecasts.unjudged()))

        if rows or self._has_rows:
            self._store.transact(save)
            self._has_rows = bool(rows)
        seconds = self._clock() - began
        self._rests_until = self._clock() + REST * seconds
        with self._store.reading() as view:
            self._publisher.publish_scores(scores_of(view, request.t))
        self._publisher.publish_forecasts(request.t, seconds, waits)
        log.debug("starts forecast", t=request.t, jobs=len(rows), seconds=round(seconds, 3))

    def _fail(self, answer: ForecastAnswer) -> None:
        self._rests_until = self._clock() + LONGEST_SECONDS
        if self.is_stopped:
            return
        self._publisher.publish_forecast_failure(answer.result.value)
        # what is wrong for hours is said once
        write = log.debug if answer == self._failure else log.warning
        write("starts not forecast", result=answer.result.value, why=answer.why)
        self._failure = answer
