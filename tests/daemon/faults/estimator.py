"""The estimator of a life: real workers that are killed, stopped, slow and short of memory."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from signal import SIGKILL, SIGSTOP, Signals
from typing import TYPE_CHECKING, Any, Literal, get_args

from shapleyprio.daemon.estimation.estimating import StoreEstimator
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.estimation.messages import WorkResult
from shapleyprio.daemon.estimation.worker import WORKER, EstimationWorker
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.store import Store, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from shapleyprio.daemon.estimation.messages import EstimateAnswer, EstimateRequest
    from shapleyprio.fairness.rule import Contributions
    from shapleyprio.fairness.worth import Trajectory
    from shapleyprio.store import ClusterStore

EstimatorFault = Literal["killed", "killed at work", "stopped", "slow", "short of memory"]
FAULTS: tuple[EstimatorFault, ...] = get_args(EstimatorFault)

PATIENCE_SECONDS = 120.0
STOPPED_SECONDS = 0.5
LITTLE_MEMORY = 64 << 20


@dataclass
class Estimation:
    """The estimates of a life, whichever daemon asked for them.

    Attributes:
        fault: of the next request; None for none.
        to_come: faults that have not happened yet.
        right: second -> contributions that were found from scratch when they were asked for.
        ranked: whether there was an estimate to rank by -> in how many cycles.
    """

    url: str
    name: str
    fault: EstimatorFault | None = None
    to_come: list[EstimatorFault] = field(default_factory=lambda: list(FAULTS))
    right: dict[int, list[Mapping[str, Trajectory]]] = field(default_factory=dict)
    ranked: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})

    def begin(self, store: ClusterStore) -> LiveEstimates:
        """Starts a daemon's estimates."""
        return _CheckedEstimates(self, store)

    def from_scratch(self, request: EstimateRequest) -> None:
        """Notes what is right to answer, by an estimator that reads the store for the first time.

        Its connection is its own, at which no fault happens.
        """
        with suppress(StoreError), Store.open(self.url) as store:
            answer = StoreEstimator(store.cluster(self.name)).answer(request)
            if answer.result is WorkResult.OK:
                found = {row.organization: row.contribution for row in answer.rows}
                self.right.setdefault(answer.rows[0].t, []).append(found)


class _CheckedEstimates(LiveEstimates):
    """Says of no estimate that it can be relied on but of right ones."""

    def __init__(self, estimation: Estimation, store: ClusterStore) -> None:
        self._estimation = estimation
        self._hurt = _HurtWorker(estimation)
        metrics = Metrics(estimation.name)
        super().__init__(store, self._hurt, metrics, PATIENCE_SECONDS, draw_seed=lambda: 7)

    def contributions(self, *arguments: Any, **named: Any) -> Contributions | None:
        self._hurt.late.set()
        if self._running is None:
            self._hurt.answered.clear()
        found = super().contributions(*arguments, **named)
        if found is not None:
            right = self._estimation.right.get(found.t, [])
            assert found.trajectories in right, f"{found} was used; from scratch it is {right}"
        self._estimation.ranked[found is not None] += 1
        return found

    def _await(self, running: Future[tuple[EstimateAnswer, float]]) -> None:
        """Waits until the worker has read the store, which nobody else changes meanwhile."""
        assert self._hurt.answered.wait(PATIENCE_SECONDS), "the worker says nothing"
        if self._hurt.late.is_set():
            super()._await(running)


class _HurtWorker(EstimationWorker):
    """Lets the fault of the life happen to a real worker.

    Attributes:
        answered: set when the worker has given an answer, or has ended.
        late: not set while that answer is held back.
    """

    def __init__(self, estimation: Estimation) -> None:
        super().__init__(estimation.url, estimation.name, WORKER)
        self._estimation = estimation
        self.answered, self.late = threading.Event(), threading.Event()

    def ask(
        self, request: EstimateRequest, *, memory_limit: int, time_limit: float
    ) -> EstimateAnswer:
        fault = self._estimation.fault
        if fault in self._estimation.to_come:
            self._estimation.to_come.remove(fault)
        self._estimation.from_scratch(request)
        later = threading.Timer(0.1, self._signal, [SIGKILL])
        if fault == "killed":
            self._signal(SIGKILL)
        elif fault == "killed at work":
            later.start()
        elif fault == "stopped":
            self._signal(SIGSTOP)
            time_limit = STOPPED_SECONDS
        elif fault == "short of memory":
            memory_limit = LITTLE_MEMORY
        try:
            answer = super().ask(request, memory_limit=memory_limit, time_limit=time_limit)
        finally:
            later.cancel()
            if fault == "slow":
                self.late.clear()
            self.answered.set()
        self.late.wait(PATIENCE_SECONDS)
        return answer

    def stop(self) -> None:
        self.late.set()
        super().stop()

    def _signal(self, number: Signals) -> None:
        process = self._worker._process
        if process is not None:
            process.send_signal(number)
