"""Python's search for unreachable cycles of objects, kept out of a cycle's way.

A cycle makes some million records of a large cluster and keeps most of them. None is in a circle,
so counting references frees them; to look through all of them again and again, while they are
being made, took a sixth of the first cycle's time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collecting_afterwards() -> Iterator[None]:
    """Looks for circles when it is left, once through what is new since, and not before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        gc.collect(1)
