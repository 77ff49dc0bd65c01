"""Puts together what a daemon is made of, out of its configuration."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

import sdnotify
import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_fixed

from shapleyprio.config import Config, connect
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.accounting.moves import called
from shapleyprio.daemon.accounting.tally import Opening
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.estimation.worker import WORKER, EstimationWorker, numpy_is_missing
from shapleyprio.daemon.forecasting.live import WORKER as FORECASTER
from shapleyprio.daemon.forecasting.live import ForecastingWorker, LiveForecasts
from shapleyprio.daemon.ledgers import cluster_of
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY
from shapleyprio.slurm.port import Slurm, SlurmUnavailableError
from shapleyprio.store import ClusterStore, Journal

log = structlog.get_logger(__name__)


class CycleMaker:
    """Makes what runs the cycles, for each ledger of the cluster.

    Args:
        config: to begin with; its cluster is known.
        store: of the cluster.
        journal: with which they go on while the store is away; None if there is none.
        metrics: where estimates and forecasts are shown.
        url: of the store.
        patience: seconds for which a cycle waits for an estimate.
        forecasts: whether to make any.
    """

    def __init__(
        self,
        config: Config,
        store: ClusterStore,
        journal: Journal | None,
        metrics: Metrics,
        url: str,
        patience: float,
        *,
        forecasts: bool,
    ) -> None:
        self._config = config
        self._store = store
        self._journal = journal
        self._metrics = metrics
        self._url = url
        self._patience = patience
        # who has no use for estimates may not have what both need
        self._has_forecasts = forecasts and not numpy_is_missing()
        self._estimates: dict[str, LiveEstimates] = {}
        self._forecasts: dict[str, LiveForecasts] = {}

    def make(self, config: Config, *, quiet: bool) -> list[Cycle]:
        """Makes them from a configuration; quiet ones do not say that a ledger is opened."""
        cluster = cluster_behind(self._store.cluster)
        slurm = connect(config, cluster)
        if config is not self._config:
            cluster_of(config, slurm)
        cycles = []
        for segment in segments_of(config, cluster):
            own, store = segment.configured(config), self._store.ledger(segment.ledger)
            estimates = self._estimates_of(store)
            opening = (lambda _: None) if quiet else partial(_log_opening, own)
            cycles.append(
                Cycle(
                    own,
                    slurm,
                    store,
                    on_opening=opening,
                    estimates=estimates,
                    journal=self._journal,
                    forecasts=self._forecasts_of(store),
                )
            )
        return cycles

    def forecasts_of(self, ledger: str) -> LiveForecasts | None:
        """Returns what forecasts the starts of a ledger's jobs; None where nothing does."""
        return self._forecasts.get(ledger)

    def stop(self) -> None:
        """Ends estimates and forecasts that are going on."""
        for estimates in self._estimates.values():
            estimates.stop()
        for forecasts in self._forecasts.values():
            forecasts.stop()

    def _estimates_of(self, store: ClusterStore) -> LiveEstimates:
        known = self._estimates.get(store.cluster)
        if known is not None and not known.is_stopped:
            return known
        self._estimates[store.cluster] = LiveEstimates(
            store,
            EstimationWorker(self._url, store.cluster, WORKER),
            self._metrics.of(store.cluster),
            patience=self._patience,
        )
        return self._estimates[store.cluster]

    def _forecasts_of(self, store: ClusterStore) -> LiveForecasts | None:
        known = self._forecasts.get(store.cluster)
        if not self._has_forecasts or (known is not None and not known.is_stopped):
            return known
        self._forecasts[store.cluster] = LiveForecasts(
            store,
            ForecastingWorker(self._url, store.cluster, FORECASTER),
            self._metrics.of(store.cluster),
        )
        return self._forecasts[store.cluster]


def _log_opening(config: Config, opening: Opening) -> None:
    """Says once what counts from when, who holds how much of it, and how that is corrected."""
    names = [*(member.name for member in config.organizations), NOBODY]

    def shares(held: Mapping[str, int]) -> str:
        shown = [*names, *([LEFT_OUT] if LEFT_OUT in held else [])]
        return ", ".join(f"{called(name)} {held.get(name, 0)}" for name in shown)

    log.info(
        "a new ledger is open",
        counting_from=datetime.fromtimestamp(opening.since, UTC).isoformat(),
        accounts=shares(opening.accounts),
        nodes=shares(opening.nodes),
        to_correct="shapleyprio ownership recount --since DATE",
    )


def await_cluster(config: Config, slurm: Slurm) -> str:
    """Returns ClusterName as soon as Slurm answers: a daemon that starts before Slurm waits."""

    def report(state: RetryCallState) -> None:
        assert state.outcome is not None
        log.warning("waiting for Slurm", why=str(state.outcome.exception()))
        sdnotify.SystemdNotifier().notify("READY=1\nSTATUS=waiting for Slurm")

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # answered when cycles run
    attempt = Retrying(
        retry=retry_if_exception_type(SlurmUnavailableError),
        wait=wait_fixed(config.service.poll_interval),
        before_sleep=report,
    )
    return attempt(cluster_of, config, slurm)
