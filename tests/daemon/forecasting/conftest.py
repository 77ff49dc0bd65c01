"""Cycles on a simulated cluster with a real worker beside that forecasts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.estimation.worker import WORKER as ESTIMATOR
from shapleyprio.daemon.estimation.worker import EstimationWorker
from shapleyprio.daemon.forecasting.forecasting import StoreForecaster
from shapleyprio.daemon.forecasting.live import WORKER, ForecastingWorker, LiveForecasts
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.store import Store
from tests.daemon.consortium import NAME, Cluster, config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shapleyprio.config import Config
    from shapleyprio.daemon.forecasting.messages import ForecastAnswer, ForecastRequest
    from shapleyprio.daemon.steering.report import CycleReport
    from shapleyprio.store import ForecastRow
    from tests.store.servers import Databases

PATIENCE_SECONDS = 120.0
"""On a busy machine a worker takes long to start."""


@dataclass
class Foreseeing:
    """A daemon without its schedule that forecasts after each cycle."""

    store: Store
    url: str
    slurm: Cluster = field(default_factory=Cluster)
    program: Sequence[str] = WORKER
    config: Config = field(default_factory=config)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begins anew, with nothing in memory."""
        metrics = Metrics(NAME)
        self.registry = metrics.registry
        self.forecasts = LiveForecasts(
            self.store.cluster(NAME),
            ForecastingWorker(self.url, NAME, self.program),
            metrics,
            clock=lambda: self.now,
        )
        self.estimates = LiveEstimates(
            self.store.cluster(NAME),
            EstimationWorker(self.url, NAME, ESTIMATOR),
            metrics,
            PATIENCE_SECONDS,
        )
        self.cycle = Cycle(
            self.config,
            self.slurm,
            self.store.cluster(NAME),
            clock=lambda: self.slurm.now,
            estimates=self.estimates,
            forecasts=self.forecasts,
        )

    def stop(self) -> None:
        """Ends what works beside the cycles."""
        self.cycle.end()

    def run(self, pause: float = 600) -> CycleReport:
        """One cycle, and what goes on beside it; in ten minutes the worker has rested."""
        self._settle()
        self.now += pause
        report = self.cycle.run()
        self._settle()
        return report

    def _settle(self) -> None:
        running = self.forecasts._running
        if running is not None:
            running.result(PATIENCE_SECONDS)

    def answer(self, request: ForecastRequest) -> ForecastAnswer:
        """What a worker answers a request that needs no cycle."""
        return StoreForecaster(self.store.cluster(NAME)).answer(request)

    def known(self) -> dict[int, ForecastRow]:
        """Job -> its forecast."""
        with self.store.cluster(NAME).reading() as view:
            return {row.job_id: row for row in view.forecasts.latest()}

    def count(self, result: str) -> float | None:
        """How many rounds of forecasts came to that."""
        return self.registry.get_sample_value(
            "shapleyprio_forecasts_total", {"cluster": NAME, "result": result}
        )


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    with databases.made("sqlite") as url:
        yield url


@pytest.fixture
def daemon(url: str) -> Iterator[Foreseeing]:
    with Store.open(url, create=True) as store:
        daemon = Foreseeing(store, url)
        yield daemon
        daemon.stop()


def learn(daemon: Foreseeing, seconds: int, *, jobs: int = 12) -> None:
    """Lets physics' jobs last as long, one after the other, while nothing waits."""
    for _ in range(jobs):
        daemon.slurm.submit("physics", processors=12, processing_time=seconds, limit=10 * seconds)
        daemon.slurm.wait(seconds + 1)
        daemon.cycle.run()
