"""The readers in C never look beyond a log, whatever it holds.

Each text ends where the memory does: one byte further would end this process.
"""

from __future__ import annotations

import ctypes
import mmap
from datetime import UTC

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shapleyprio.common.errors import ReplayError
from shapleyprio.replay.logs import columns, swf
from shapleyprio.replay.logs import columns as host_lists

PAGES = 4
MEMORY = mmap.mmap(-1, (PAGES + 1) * mmap.PAGESIZE)
ROOM = np.frombuffer(MEMORY, dtype=np.uint8)[: PAGES * mmap.PAGESIZE]
C = ctypes.CDLL(None, use_errno=True)
GUARD = ctypes.c_void_p(ROOM.ctypes.data + len(ROOM))
assert C.mprotect(GUARD, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0, ctypes.get_errno()

FIELDS = [
    *("99999999999999999999", "2026-01-31T23:59:59", "1767225600", "cn[1-3,008],gpu-2"),
    "7 9 0 9 1 -1 -1 1 9 -1 1 3 1 -1 1 -1 -1 -1",
]
MARKS = "\n\r| \t;-.,[]:\0\x0bx01"


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Fields and marks in any order, perhaps cut off within a field."""
    parts = draw(st.lists(st.sampled_from([*FIELDS, *MARKS]), max_size=30))
    last = draw(st.sampled_from(FIELDS))
    parts.append(last[: draw(st.integers(1, len(last)))])
    return "".join(parts).encode() + draw(st.binary(max_size=1))


def at_the_end(text: bytes) -> NDArray[np.uint8]:
    """The text, with nothing behind it."""
    there = ROOM[len(ROOM) - len(text) :]
    there[:] = np.frombuffer(text, dtype=np.uint8)
    return there


def found_in(
    text: bytes | memoryview, separator: str, names: tuple[str, ...], *, rest: bool
) -> list[object]:
    """All that columns of a text have to say."""
    fields, starts, counts = columns.split(text, 0, separator, names, rest=rest)  # type: ignore[arg-type]
    found: list[object] = [starts.tolist(), counts.tolist()]
    for column in fields.values():
        codes, texts = column.distinct
        numbers, behind = column.leading_numbers()
        found += [column.begin.tolist(), column.end.tolist(), codes.tolist(), texts]
        found += [numbers.tolist(), behind.tolist(), column.holds("2").tolist()]
        found += [column.moments(UTC).tolist(), host_lists.surely_hosts(column).tolist()]
    return found


@given(
    texts(),
    st.sampled_from("|, "),
    st.sampled_from([("a",), ("a", "b"), ("a", "", "b")]),
    st.booleans(),
)
def test_what_is_found_in_columns_does_not_depend_on_what_is_behind(
    text: bytes, separator: str, names: tuple[str, ...], rest: bool
) -> None:
    expected = found_in(text, separator, names, rest=rest)
    assert found_in(at_the_end(text).data, separator, names, rest=rest) == expected


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_may_be_cut_off_anywhere(field: str) -> None:
    for length in range(1, len(field) + 1):
        text = field[:length].encode()
        expected = found_in(text, "|", ("a",), rest=False)
        assert found_in(at_the_end(text).data, "|", ("a",), rest=False) == expected


def read(text: bytes) -> object:
    """What a log in SWF says, or why it cannot be read."""
    try:
        log = swf.read_swf("log", text)
    except ReplayError as error:
        return str(error)
    return [log.job.tolist(), log.release.tolist(), log.malformed]


@given(texts())
def test_what_is_read_of_swf_does_not_depend_on_what_is_behind(text: bytes) -> None:
    expected = read(text)
    parse = swf._parse
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(swf, "_parse", lambda text, *more: parse(at_the_end(bytes(text)), *more))
        assert read(text) == expected


@given(texts())
def test_lines_are_counted_up_to_the_end(text: bytes) -> None:
    assert columns._line_ends(at_the_end(text)) == text.count(b"\n")
