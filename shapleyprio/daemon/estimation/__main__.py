"""The worker: answers every request on standard input with a line on standard output.

Its arguments are the cluster, the bytes of memory that it may take, and its lifeline. The store's
URL is in its environment.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from shapleyprio.common.workers import be_worker
from shapleyprio.daemon.estimation.messages import EstimateAnswer, EstimateRequest, EstimateResult
from shapleyprio.daemon.estimation.packages import REMEDY
from shapleyprio.daemon.estimation.worker import STORE
from shapleyprio.store import Store, StoreError

if TYPE_CHECKING:
    from shapleyprio.daemon.estimation.estimating import StoreEstimator


def main() -> None:
    """Answers requests until the daemon is gone."""
    cluster, memory_limit, lifeline = sys.argv[1:]
    be_worker(int(lifeline), int(memory_limit))
    worker = _Worker(os.environ[STORE], cluster, int(memory_limit))
    for line in sys.stdin:
        print(worker.answer(EstimateRequest.from_json(line)).as_json(), flush=True)


class _Worker:
    """Opens the store at the first request, and keeps it open as long as it can be read."""

    def __init__(self, url: str, cluster: str, memory_limit: int) -> None:
        self._url = url
        self._cluster = cluster
        self._memory_limit = memory_limit
        self._estimator: StoreEstimator | None = None

    def answer(self, request: EstimateRequest) -> EstimateAnswer:
        try:
            return self._opened().answer(request)
        except ModuleNotFoundError as error:
            return EstimateAnswer(
                result=EstimateResult.UNAVAILABLE,
                why=f"the Python package {error.name} is missing; {REMEDY}",
            )
        except MemoryError:
            self._estimator = None
            return EstimateAnswer(
                result=EstimateResult.TOO_LARGE,
                why=f"{self._memory_limit / 2**30:.3g} GiB of memory were not enough; "
                'raise estimation.memory_limit, or set fairness.rule to "directcontr"',
            )
        except StoreError as error:
            self._estimator = None
            return EstimateAnswer(result=EstimateResult.FAILED, why=str(error))

    def _opened(self) -> StoreEstimator:
        if self._estimator is None:
            from shapleyprio.daemon.estimation.estimating import StoreEstimator

            self._estimator = StoreEstimator(Store.open(self._url).cluster(self._cluster))
        return self._estimator


if __name__ == "__main__":
    main()
