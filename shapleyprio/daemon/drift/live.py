"""Replays the last window in a worker process, and stores and publishes what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Protocol

import structlog

from shapleyprio.common.workers import PYTHON, LastingWorker, last_words
from shapleyprio.config import Config
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.drift.figures import unfairness_of
from shapleyprio.daemon.drift.messages import SMALLER, DriftAnswer, DriftRequest, DriftResult
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store import ClusterStore, DriftRow, StoreError


class DriftPublisher(Protocol):
    """Publishes the results of replays, as the daemon's metrics do."""

    def of(self, ledger: str) -> DriftPublisher:
        """Returns what publishes the results of one ledger of the cluster."""

    def publish_drifts(
        self, rows: Sequence[DriftRow], turns: Mapping[str, tuple[int, int]], seconds: float
    ) -> None:
        """Publishes the results of a successful replay.

        Args:
            rows: one for each schedule and organization, at least one.
            turns: schedule -> contested moments, and how many of them were out of turn.
            seconds: duration of the replay.
        """

    def publish_drift_failure(self, result: str) -> None:
        """Withdraws the rows published before, and counts a replay without rows.

        Args:
            result: the word of a `DriftResult` other than ``ok``.
        """

    def withdraw_drifts(self) -> None:
        """Publishes the last rows no more."""


WORKER = (*PYTHON, "-m", "shapleyprio.daemon.drift")

log = structlog.get_logger(__name__)


class LiveDrift:
    """Measures every now and then how far what happened is from what was fair.

    Args:
        store: of the cluster, where the runs are, and where the results are stored.
        url: of the store, which the worker opens for itself.
        publisher: where the results are published.
        worker: the program that answers a request; it gets it on standard input.

    Attributes:
        trouble: why the last window was not replayed; empty if it was, or none has been tried.
    """

    def __init__(
        self,
        store: ClusterStore,
        url: str,
        publisher: DriftPublisher,
        worker: Sequence[str] = WORKER,
    ) -> None:
        self._store = store
        self._url = url
        self._publisher = publisher
        self._program = worker
        self._worker = LastingWorker()
        self.trouble = ""
        self._stopped = False

    def replay(self, config: Config) -> None:
        """Replays the last window of each of the cluster's ledgers, one after the other.

        Whatever goes wrong is counted, logged, and left at that.
        """
        troubles = [
            self._replay(config, self._store.ledger(ledger), publisher)
            for ledger, publisher in self._publishers(config).items()
        ]
        self.trouble = "; ".join(trouble for trouble in troubles if trouble)

    def _replay(self, config: Config, store: ClusterStore, publisher: DriftPublisher) -> str:
        """Replays the last window of a ledger; returns why that was not done, if it was not."""
        began = monotonic()
        try:
            answer = self._ask(config, store.cluster)
            if answer.rows:
                store.transact(lambda transaction: transaction.history.save_drifts(answer.rows))
        except (OSError, StoreError) as error:
            answer = DriftAnswer(result=DriftResult.FAILED, why=str(error))
        except Exception as defect:
            log.exception("defect in a replay of the last window")
            answer = DriftAnswer(result=DriftResult.FAILED, why=repr(defect))
        if not self._stopped:
            self._publish(answer, monotonic() - began, publisher)
        return answer.why

    def withdraw(self, config: Config) -> None:
        """Shows no more what the last replay found; none is going on."""
        self.trouble = ""
        for publisher in self._publishers(config).values():
            publisher.withdraw_drifts()

    def stop(self) -> None:
        """Ends a replay that is going on, and lets none begin."""
        self._stopped = True
        self._worker.stop()

    def _publishers(self, config: Config) -> Mapping[str, DriftPublisher]:
        """Returns ledger -> what publishes its results; a reload may end it during a replay."""
        segments = segments_of(config, cluster_behind(self._store.cluster))
        return {segment.ledger: self._publisher.of(segment.ledger) for segment in segments}

    def _publish(self, answer: DriftAnswer, seconds: float, publisher: DriftPublisher) -> None:
        if answer.result is DriftResult.OK:
            publisher.publish_drifts(answer.rows, answer.turns, seconds)
            sums = {name: float(drift) for name, drift in unfairness_of(answer.rows).items()}
            log.info("drift", t=answer.rows[0].t, unfairness=sums, seconds=round(seconds, 3))
        else:
            publisher.publish_drift_failure(answer.result.value)
            write = log.info if answer.result is DriftResult.NO_JOBS else log.warning
            write("drift not replayed", result=answer.result.value, why=answer.why)

    def _ask(self, config: Config, ledger: str) -> DriftAnswer:
        limit = config.drift.time_limit
        reply = self._worker.ask(self._program, self._request(config, ledger).as_json(), limit)
        if reply is None:
            return DriftAnswer(result=DriftResult.FAILED, why="the daemon is stopping")
        self._worker.end()  # until the next window it would only take memory
        if reply.late:
            return DriftAnswer(
                result=DriftResult.TOO_LONG,
                why=f"it took more than {limit} s; raise drift.time_limit, {SMALLER}",
            )
        with suppress(ValueError, TypeError, KeyError):
            return DriftAnswer.from_json(reply.line)
        why = last_words(reply.code, reply.complaints)
        if reply.starved:
            return DriftAnswer(
                result=DriftResult.TOO_LARGE, why=f"{why}; raise drift.memory_limit, {SMALLER}"
            )
        return DriftAnswer(result=DriftResult.FAILED, why=why)

    def _request(self, config: Config, ledger: str) -> DriftRequest:
        return DriftRequest(
            url=self._url,
            cluster=ledger,
            organizations=tuple(organization.name for organization in config.organizations),
            window=config.drift.window,
            most_organizations=config.drift.most_organizations,
            memory_limit=config.drift.memory_limit,
            parents=config.parents,
        )
