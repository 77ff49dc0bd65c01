"""Sees of most lists of hosts that they are such, without writing out the hosts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.columns import Column, digits, digits_end
from shapleyprio.replay.compiled import compiled
from shapleyprio.slurm.text import LARGEST_HOST_LIST

_COMMA, _DASH, _DOT, _ZERO, _OPEN, _CLOSE = b",-.0[]"
_LONGEST_NAME, _MOST_DIGITS = 64, 9


def surely_hosts(column: Column) -> NDArray[np.bool_]:
    """Returns which fields are plain lists of hosts, such as ``cn7`` and ``cn[1-3,008],gpu-2``.

    `shapleyprio.slurm.text.hosts` reads them; the others it may read or not.
    """
    return _surely_hosts(column.text, column.begin, column.end)


@compiled
def _surely_hosts(
    text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    found = np.zeros(len(begin), dtype=np.bool_)
    for line in range(len(begin)):
        hosts, at = 0, begin[line]
        while hosts <= LARGEST_HOST_LIST and at < end[line]:
            count, at = _item(text, at, end[line])
            hosts += count
            if count == 0:
                break
            if at == end[line]:
                found[line] = hosts <= LARGEST_HOST_LIST
            elif text[at] != _COMMA:
                break
            at += 1
    return found


@compiled
def _item(text: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Returns how many hosts an item of a list has, 0 if it is not plain, and where it ends."""
    first = at
    while at < end and _in_name(text[at]):
        at += 1
    if not (0 < at - first <= _LONGEST_NAME and _is_letter(text[first])):
        return 0, at
    if at == end or text[at] != _OPEN:
        return 1, at
    if not _is_letter(text[at - 1]):
        return 0, at
    hosts = 0
    while at < end and text[at] != _CLOSE:
        count, at = _range(text, at + 1, end)
        if count == 0 or at == end or text[at] not in (_COMMA, _CLOSE):
            return 0, at
        hosts += count
    return hosts, at + 1


@compiled
def _range(text: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Returns how many numbers a range such as ``7`` or ``08-12`` has, 0 if it is not plain."""
    low, low_end = at, digits_end(text, at, end)
    high, high_end = low, low_end
    if low_end < end and text[low_end] == _DASH:
        high = low_end + 1
        high_end = digits_end(text, high, end)
    width = low_end - low
    if not (0 < width <= high_end - high <= _MOST_DIGITS):
        return 0, high_end
    if width < high_end - high and (text[high] == _ZERO or (text[low] == _ZERO and width > 1)):
        return 0, high_end  # padded to two widths
    return max(digits(text, high, high_end - high) - digits(text, low, width) + 1, 0), high_end


@compiled
def _in_name(byte: int) -> bool:
    return _is_letter(byte) or 48 <= byte <= 57 or byte in (_DASH, _DOT)


@compiled
def _is_letter(byte: int) -> bool:
    return 97 <= byte <= 122 or 65 <= byte <= 90
