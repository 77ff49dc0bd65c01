"""The worker: reads a request from standard input and answers on standard output."""

from __future__ import annotations

import sys

from shapleyprio.common.workers import be_worker
from shapleyprio.daemon.drift.messages import SMALLER, DriftAnswer, DriftRequest, DriftResult
from shapleyprio.store import StoreError


def main() -> None:
    """Answers one request; the program's argument is its lifeline."""
    request = DriftRequest.from_json(sys.stdin.readline())
    be_worker(int(sys.argv[1]), request.memory_limit)
    print(_answer(request).as_json())


def _answer(request: DriftRequest) -> DriftAnswer:
    try:
        from shapleyprio.daemon.drift.comparison import replay_window

        return replay_window(request)
    except ModuleNotFoundError as error:
        return DriftAnswer(
            result=DriftResult.UNAVAILABLE,
            why=f"the Python package {error.name} is missing; install the package "
            "shapleyprio-replay, or pip install 'shapleyprio[replay]', "
            'or set drift.interval to "off"',
        )
    except MemoryError:
        return DriftAnswer(
            result=DriftResult.TOO_LARGE,
            why=f"{request.memory_limit / 2**30:.3g} GiB of memory were not enough; "
            f"raise drift.memory_limit, {SMALLER}",
        )
    except StoreError as error:
        return DriftAnswer(result=DriftResult.FAILED, why=str(error))


if __name__ == "__main__":
    main()
