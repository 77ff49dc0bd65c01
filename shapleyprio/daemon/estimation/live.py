"""The newest estimate that can be relied on, renewed beside the cycles while it matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from secrets import randbits
from time import monotonic
from typing import Protocol

import structlog

from shapleyprio.config import Config
from shapleyprio.daemon.estimation.messages import (
    EstimateAnswer,
    EstimateRequest,
    WaitingJob,
    WorkResult,
)
from shapleyprio.daemon.estimation.worker import EstimationWorker
from shapleyprio.fairness.rule import Contributions
from shapleyprio.store import ClusterStore, EstimateRow


class EstimatePublisher(Protocol):
    """Publishes what became of estimates, as the daemon's metrics do."""

    def publish_estimate(self, rows: Sequence[EstimateRow], seconds: float) -> None:
        """Publishes an estimate.

        Args:
            rows: one for each organization.
            seconds: that it took.
        """

    def publish_estimate_failure(self, result: str) -> None:
        """Counts an estimate that failed.

        Args:
            result: the word of a `WorkResult` other than ``ok``.
        """

    def withdraw_estimate(self) -> None:
        """Shows the last estimate no more."""


PATIENCE_SECONDS = 1.0
"""A cycle waits so long for an estimate that is on its way."""

SEED_BITS = 63
"""So many fit into every database's integers."""

log = structlog.get_logger(__name__)


class LiveEstimates:
    """Estimates contributions in a worker process, and says which estimate can be relied on.

    An estimate can be relied on until it is older than ``estimation.longest_age``. After that it
    takes one of less than half that age, so that the rule does not go back and forth.

    Args:
        store: of the cluster, where estimates are kept.
        worker: that estimates.
        publisher: of what became of estimates.
        patience: seconds for which a cycle waits for an estimate.
        draw_seed: makes the seed of a cluster's first estimate, which is kept from then on.

    Attributes:
        is_stopped: whether it was stopped.
    """

    def __init__(
        self,
        store: ClusterStore,
        worker: EstimationWorker,
        publisher: EstimatePublisher,
        patience: float = PATIENCE_SECONDS,
        draw_seed: Callable[[], int] = lambda: randbits(SEED_BITS),
    ) -> None:
        self.is_stopped = False
        self._store = store
        self._worker = worker
        self._publisher = publisher
        self._patience = patience
        self._draw_seed = draw_seed
        self._seed: int | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="estimation")
        self._running: Future[tuple[EstimateAnswer, float]] | None = None
        self._asked: tuple[int, tuple[str, ...]] | None = None
        self._rows: Sequence[EstimateRow] | None = None
        self._relied_on = True
        self._failure: EstimateAnswer | None = None

    def contributions(
        self,
        config: Config,
        waiting: Callable[[], Sequence[WaitingJob]],
        t: int,
        since: int = 0,
    ) -> Contributions | None:
        """Returns the newest contributions that can be relied on; None if there are none.

        Args:
            config: whose organizations, and how to estimate.
            waiting: returns the jobs that wait; called only when it may be time for an estimate.
            t: second at which the store's ledger stands.
            since: first second that counts; an estimate whose coalitions were simulated from an
                earlier one on is not relied on.

        Raises:
            StoreError: the estimate cannot be stored, or not be read after a start.
        """
        if self._rows is None:
            with self._store.reading() as view:
                self._rows = view.estimates.latest_estimate(until=t)
        self._take()
        if self._rows and self._rows[0].begin < since:
            self._rows, self._asked = (), None
        if self._running is None and self._may_be_due(config, t):
            self._ask_if_due(config, waiting(), t)
        if self._running is not None:
            self._await(self._running)
            self._take()
        return self._reliable(config, t)

    def stop(self) -> None:
        """Ends an estimate that is on its way, and lets none begin; the last one is withdrawn."""
        self.is_stopped = True
        self._worker.stop()
        self._thread.shutdown(wait=True)
        self._worker.close()
        self._publisher.withdraw_estimate()

    def _await(self, running: Future[tuple[EstimateAnswer, float]]) -> None:
        """Waits for as long as a cycle may, and says so where that is long."""
        short = min(PATIENCE_SECONDS, self._patience)
        wait([running], short)
        if not running.done() and self._patience > short:
            log.info("waiting for an estimate of contributions", at_most_seconds=self._patience)
            wait([running], self._patience - short)

    def _may_be_due(self, config: Config, t: int) -> bool:
        """Returns whether to ask, if several organizations wait."""
        return not self._has_asked(config, t, within=config.estimation.recompute)

    def _ask_if_due(self, config: Config, waiting: Sequence[WaitingJob], t: int) -> None:
        """Asks; while fewer than two organizations wait, only for the estimate to stay young."""
        several = len({job.organization for job in waiting}) > 1
        if several or not self._has_asked(config, t, within=config.estimation.longest_age // 3):
            self._ask(config, waiting, t)

    def _has_asked(self, config: Config, t: int, *, within: int) -> bool:
        """Returns whether an estimate for these organizations was asked for so shortly ago."""
        if self._asked is None or self._asked[1] != _names(config):
            return False
        return 0 <= t - self._asked[0] < within

    def _ask(self, config: Config, waiting: Sequence[WaitingJob], t: int) -> None:
        if self._seed is None:
            seed = self._draw_seed()
            self._seed = self._store.transact(
                lambda transaction: transaction.estimates.keep_sampling_seed(seed)
            )
        self._asked = (t, _names(config))
        request = EstimateRequest(
            organizations=_names(config),
            waiting=tuple(waiting),
            overlap=config.service.overlap,
            coalitions=config.estimation.coalitions,
            seed=self._seed,
            parents=config.parents,
        )

        def ask() -> tuple[EstimateAnswer, float]:
            began = monotonic()
            answer = self._worker.ask(
                request,
                memory_limit=config.estimation.memory_limit,
                time_limit=config.estimation.time_limit,
            )
            return answer, monotonic() - began

        self._running = self._thread.submit(ask)

    def _take(self) -> None:
        """Takes the answer in if it is there."""
        if self._running is None or not self._running.done():
            return
        answer, seconds = self._running.result()
        self._running = None
        if answer.result is WorkResult.OK:
            self._store.transact(
                lambda transaction: transaction.estimates.save_estimate(answer.rows, answer.waiting)
            )
            self._rows, self._failure = answer.rows, None
            self._publisher.publish_estimate(answer.rows, seconds)
            log.debug("contributions estimated", t=answer.rows[0].t, seconds=round(seconds, 3))
        else:
            self._publisher.publish_estimate_failure(answer.result.value)
            # what is wrong for hours is said once, not every recompute interval
            write = log.debug if answer == self._failure else log.warning
            write("contributions not estimated", result=answer.result.value, why=answer.why)
            self._failure = answer

    def _reliable(self, config: Config, t: int) -> Contributions | None:
        found = {row.organization: row for row in self._rows or ()}
        longest = config.estimation.longest_age
        known = bool(found) and set(_names(config)) <= found.keys()
        age = t - next(iter(found.values())).t if known else None
        bound = longest if self._relied_on else longest // 2
        reliable = age is not None and 0 <= age <= bound
        if reliable != self._relied_on:
            self._relied_on = reliable
            write = log.info if reliable else log.warning
            write(
                "ranking by estimated contributions" if reliable else "ranking without estimates",
                age_seconds=age,
                longest_age=longest,
            )
        if not reliable:
            return None
        return Contributions(
            t=found[_names(config)[0]].t,
            trajectories={name: row.contribution for name, row in found.items()},
        )


def _names(config: Config) -> tuple[str, ...]:
    return tuple(organization.name for organization in config.organizations)
