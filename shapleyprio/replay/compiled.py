"""The one way functions of this package are compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.dispatcher import Dispatcher

from shapleyprio.replay.kernel_cache import KernelCache

UNCOUNTED: Any = {"_nrt": False}
"""No counting of references: by atomic instructions for every array at every call, it took nine
tenths of the time. Functions without it cannot make arrays."""

DISPATCHERS: list[Any] = []
"""All that was compiled or found compiled in this process, with numba's statistics."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CompileCounts:
    """How many functions this process has compiled, and how many it has found compiled."""

    compiled: int
    found: int


def counts() -> CompileCounts:
    """Counts what was compiled or found compiled so far."""
    every = [dispatcher.stats for dispatcher in DISPATCHERS]
    return CompileCounts(
        compiled=sum(sum(stats.cache_misses.values()) for stats in every),
        found=sum(sum(stats.cache_hits.values()) for stats in every),
    )


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function to machine code at its first call, and keeps the code on disk.

    It runs without the interpreter's lock, so threads work side by side. Its type stays the
    Python function's: numba ships no types.
    """
    return cast("Callable[P, R]", _cached(numba.njit(nogil=True)(function)))


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles as `compiled` does; the code is faster, for functions that make no arrays."""
    return cast("Callable[P, R]", _cached(numba.njit(nogil=True, **UNCOUNTED)(function)))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function a piece of a `kernel`, pasted in wherever it is called."""
    return cast("Callable[P, R]", numba.njit(inline="always", nogil=True, **UNCOUNTED)(function))


def _cached(dispatcher: Any) -> Any:
    if isinstance(dispatcher, Dispatcher):  # NUMBA_DISABLE_JIT leaves a Python function
        vars(dispatcher)["_cache"] = KernelCache(dispatcher.py_func)  # as its enable_caching does
        DISPATCHERS.append(dispatcher)
    return dispatcher
