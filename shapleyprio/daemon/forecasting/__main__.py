"""The worker that forecasts when jobs will start."""

from __future__ import annotations

from shapleyprio.daemon.estimation.worker import Answerer, answer_requests
from shapleyprio.daemon.forecasting.messages import ForecastAnswer, ForecastRequest
from shapleyprio.store import ClusterStore


def main() -> None:
    """Answers requests until the daemon is gone."""
    answer_requests(_forecaster_of, ForecastAnswer)


def _forecaster_of(store: ClusterStore) -> Answerer:
    from shapleyprio.daemon.forecasting.forecasting import StoreForecaster

    forecaster = StoreForecaster(store)
    return lambda request: forecaster.answer(ForecastRequest.from_json(request))


if __name__ == "__main__":
    main()
