"""The worker that estimates contributions."""

from __future__ import annotations

from shapleyprio.daemon.estimation.messages import EstimateAnswer, EstimateRequest
from shapleyprio.daemon.estimation.worker import INSTEAD, Answerer, answer_requests
from shapleyprio.store import ClusterStore


def main() -> None:
    """Answers requests until the daemon is gone."""
    answer_requests(_estimator_of, EstimateAnswer, instead=INSTEAD)


def _estimator_of(store: ClusterStore) -> Answerer:
    from shapleyprio.daemon.estimation.estimating import StoreEstimator

    estimator = StoreEstimator(store)
    return lambda request: estimator.answer(EstimateRequest.from_json(request))


if __name__ == "__main__":
    main()
