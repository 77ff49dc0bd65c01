"""Computes several pieces at once, by threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

THREADS = 2
"""More would wait for the interpreter."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Yields what a function makes of each item, in their order; a few are computed ahead.

    Args:
        function: called by several threads.
        items: taken by the caller's thread.
    """
    threads = ThreadPoolExecutor(THREADS)
    try:
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(threads.submit(function, item))
            if len(ahead) > THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)
