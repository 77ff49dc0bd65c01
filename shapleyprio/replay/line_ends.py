"""Counts the lines of long texts, several times as fast as `bytes.count` and without its lock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.compiled import compiled

_LINE_END = 10


def line_ends(text: bytes, begin: int = 0) -> int:
    """Returns how many lines end in a text, from some byte on."""
    return _line_ends(np.frombuffer(text, dtype=np.uint8)[begin:])


@compiled
def _line_ends(text: NDArray[np.uint8]) -> int:
    count = 0
    for byte in text:
        count += byte == _LINE_END
    return count
