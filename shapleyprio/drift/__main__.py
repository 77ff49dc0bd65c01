"""The worker: reads a request from standard input and answers on standard output.

It is never in anybody's way: it has the lowest priority, one core, a limit to its memory, and it
ends when the daemon does, however that ends.
"""

from __future__ import annotations

import os
import resource
import sys
import threading

from shapleyprio.drift.messages import SMALLER, DriftAnswer, DriftRequest, DriftResult
from shapleyprio.store import StoreError

LOWEST_PRIORITY = 19


def main() -> None:
    """Answers one request."""
    request = DriftRequest.from_json(sys.stdin.readline())
    threading.Thread(target=_end_with_the_daemon, args=[request.lifeline], daemon=True).start()
    os.nice(LOWEST_PRIORITY)
    _limit_memory(request.memory_limit)
    print(_answer(request).as_json())


def _answer(request: DriftRequest) -> DriftAnswer:
    try:
        import shapleyprio.replay.compiled  # noqa: F401  # finds out what is missing in any case
        from shapleyprio.drift.replaying import replay_window

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
            why=f"{request.memory_limit / 2**30:.3g} GiB of memory did not do; "
            f"raise drift.memory_limit, {SMALLER}",
        )
    except StoreError as error:
        return DriftAnswer(result=DriftResult.FAILED, why=str(error))


def _end_with_the_daemon(lifeline: int) -> None:
    os.read(lifeline, 1)  # nobody writes: it returns when the last one who could is gone
    os._exit(1)


def _limit_memory(most: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()
