"""The one way functions of this package are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

UNCOUNTED: Any = {"_nrt": False}
"""No counting of references: by atomic instructions for every array at every call, it took nine
tenths of the time. Functions without it cannot make arrays."""

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function to machine code at its first call, and keeps the code on disk.

    It runs without the interpreter's lock, so threads work side by side. Its type stays the
    Python function's: numba ships no types.
    """
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True)(function))


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled`, and faster, for functions that make no arrays."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, **UNCOUNTED)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A piece of a `kernel`, pasted in wherever it is called."""
    return cast("Callable[P, R]", numba.njit(inline="always", nogil=True, **UNCOUNTED)(function))
