"""Columns of separated text: where the fields are, and what numbers, times and names they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.compiled import compiled
from shapleyprio.replay.line_ends import line_ends
from shapleyprio.replay.log import UNKNOWN, Labels
from shapleyprio.slurm.text import LAST_TIME, NO_TIME, UnreadableError

UNREADABLE = -2
"""What stands in a column of numbers where the text is something else."""

_LINE_END, _RETURN, _ZERO, _NINE, _DASH, _COLON = 10, 13, 48, 57, 45, 58
_MOMENT_LENGTH = len("2017-01-31T23:49:29")
_MOST_DIGITS = 10  # of seconds since the epoch and of job ids, which are below 2^32
_QUARTER = 900  # seconds; time zones change their offsets at whole quarters of an hour
_DAY = 86_400


@dataclass(frozen=True)  # with slots nothing can be cached
class Column:
    """One field of every line.

    Attributes:
        name: what the field is called.
        text: the whole file.
        begin, end: int64[lines], where the field begins in it and ends.
    """

    name: str
    text: NDArray[np.uint8]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    def written(self, line: int) -> str:
        """Returns the field of one line, as it is written."""
        return self.text[self.begin[line] : self.end[line]].tobytes().decode(errors="replace")

    def taken(self, lines: NDArray[np.int64]) -> Column:
        """Returns the field of some lines."""
        return replace(self, begin=self.begin[lines], end=self.end[lines])

    @cached_property
    def distinct(self) -> tuple[NDArray[np.int32], list[str]]:
        """For each line the index of its text, and the texts by first appearance."""
        codes, first = _distinct(self.text, self.begin, self.end)
        lines = _lines(self.text, self.begin[first], self.end[first])
        return codes, lines.tobytes().decode(errors="replace").split("\n")[:-1]

    def labels(self, nothing: frozenset[str]) -> Labels:
        """Returns the column as labels.

        Args:
            nothing: texts that name nothing.
        """
        codes, texts = self.distinct
        if len(set(texts)) == len(texts) and nothing.isdisjoint(texts):
            return Labels(codes, tuple(texts))
        # bytes that are no UTF-8 differ, but not as text
        names = [name for name in dict.fromkeys(texts) if name not in nothing]
        numbers = {name: code for code, name in enumerate(names)}
        renumbered = np.array([numbers.get(text, UNKNOWN) for text in texts], dtype=np.int32)
        return Labels(renumbered[codes], tuple(names))

    def numbers(self, read: Callable[[str], int], *, plain: int = -1) -> NDArray[np.int64]:
        """Returns the column as numbers, UNREADABLE where `read` raises UnreadableError.

        Args:
            read: reads a text.
            plain: digits that make a number up to that one are this number, which needs no `read`.
        """
        found, behind = self.leading_numbers()
        others = np.flatnonzero((behind != 0) | (found < 0) | (found > plain))
        if len(others):
            every = len(others) == len(found)
            codes, texts = (self if every else self.taken(others)).distinct
            numbers = [_or_unreadable(read, text) for text in texts]
            found[others] = np.array(numbers, dtype=np.int64)[codes]
        return found

    def leading_numbers(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Reads the numbers of at most ten digits that the fields begin with, else UNREADABLE.

        Returns:
            The numbers, and the byte behind each, 0 where the field ends there.
        """
        return _leading_numbers(self.text, self.begin, self.end)

    def holds(self, character: str) -> NDArray[np.bool_]:
        """Returns in which fields an ASCII character occurs."""
        return _holds(self.text, self.begin, self.end, ord(character))

    def moments(self, zone: tzinfo) -> NDArray[np.int64]:
        """Returns the column as seconds since the epoch.

        It holds them as such, or as local times such as 2017-01-31T23:49:29; UNKNOWN where Slurm
        does not know, UNREADABLE where it is something else. Of a local time that the clock
        showed twice, the first one is meant.

        Args:
            zone: of the local times.
        """
        seconds = _moments(self.text, self.begin, self.end)
        local = (self.end - self.begin == _MOMENT_LENGTH) & (seconds > 0)
        if zone is not UTC:
            quarters, codes = np.unique(seconds[local] // _QUARTER, return_inverse=True)
            offsets = [_offset(zone, quarter * _QUARTER) for quarter in quarters.tolist()]
            seconds[local] -= np.array(offsets, dtype=np.int64)[codes]
        for line in np.flatnonzero(seconds == UNREADABLE).tolist():
            if self.written(line) in {*NO_TIME, ""}:
                seconds[line] = UNKNOWN
        return seconds


def split(
    text: bytes, begin: int, separator: str, names: Sequence[str], *, rest: bool
) -> tuple[dict[str, Column], NDArray[np.int64], NDArray[np.int64]]:
    """Splits lines into columns; empty lines are passed over.

    Args:
        text: the file.
        begin: where its first line of data begins.
        separator: one ASCII character.
        names: of the columns, in their order; "" for those that nobody needs.
        rest: further separators belong to the last column.

    Returns:
        name -> column; for each line where it begins; and how many fields it has. Where these
        are not as many as there are names, every field is empty.
    """
    data = np.frombuffer(text, dtype=np.uint8)
    wanted = [number for number, name in enumerate(names) if name]
    slots = np.full(len(names), UNKNOWN, dtype=np.int64)
    slots[wanted] = np.arange(len(wanted))
    lines = line_ends(text, begin) + 1
    begins, ends = np.zeros((2, len(wanted), lines), dtype=np.int64)
    starts, fields = np.empty((2, lines), dtype=np.int64)
    found = _Fields(slots, begins, ends, starts, fields)
    count = _split(data, begin, ord(separator), rest, found)
    columns = {
        names[number]: Column(names[number], data, begins[slot, :count], ends[slot, :count])
        for slot, number in enumerate(wanted)
    }
    return columns, starts[:count], fields[:count]


class _Fields(NamedTuple):
    """Where fields are in a text.

    Attributes:
        slots: int64[columns], row of the column in begins and ends, UNKNOWN if nobody needs it.
        begins, ends: int64[slots, lines], where the fields begin and end.
        starts: int64[lines], where the lines begin.
        fields: int64[lines], how many fields they have.
    """

    slots: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    fields: NDArray[np.int64]


def _or_unreadable(read: Callable[[str], int], text: str) -> int:
    try:
        return read(text)
    except UnreadableError:
        return UNREADABLE


def _offset(zone: tzinfo, local_second: int) -> int:
    """Returns by how many seconds a time zone's clock is ahead when it shows this time."""
    shown = datetime.fromtimestamp(local_second, UTC).replace(tzinfo=zone)
    offset = shown.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


@compiled
def _split(
    text: NDArray[np.uint8],
    at: int,
    separator: int,
    rest: bool,
    found: _Fields,
) -> int:
    """Fills in the fields of all lines, and returns how many lines there are."""
    slots, begins, ends, starts, fields = found
    line, last = 0, len(slots) - 1
    while at < len(text):
        field, begin = 0, at
        stop = _field_end(text, at, separator)
        while stop < len(text) and text[stop] != _LINE_END:
            if not (rest and field == last):
                if field <= last and slots[field] != UNKNOWN:
                    begins[slots[field], line] = begin
                    ends[slots[field], line] = stop
                field, begin = field + 1, stop + 1
            stop = _field_end(text, stop + 1, separator)
        end = stop - 1 if stop > at and text[stop - 1] == _RETURN else stop
        if end > at:
            if field <= last and slots[field] != UNKNOWN:
                begins[slots[field], line] = begin
                ends[slots[field], line] = end
            if field != last:
                begins[:, line] = 0
                ends[:, line] = 0
            starts[line], fields[line] = at, field + 1
            line += 1
        at = stop + 1
    return line


@compiled
def _field_end(text: NDArray[np.uint8], at: int, separator: int) -> int:
    """Returns where the next separator is, or the end of the line."""
    # an index without sign is not looked at as one that counts from the end
    while at < len(text) and text[np.uint64(at)] != separator and text[np.uint64(at)] != _LINE_END:
        at += 1
    return at


@compiled
def _distinct(
    text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Numbers the different texts by first appearance; returns also each one's first line."""
    lines, count, size = len(begin), 0, 1024
    codes = np.empty(lines, dtype=np.int32)
    first = np.empty(lines, dtype=np.int64)
    hashes = np.empty(lines, dtype=np.uint64)
    table = np.full(size, UNKNOWN, dtype=np.int64)  # open addressing, by hash
    for line in range(lines):
        if line > 0 and _same(text, begin[line], end[line], begin[line - 1], end[line - 1]):
            codes[line] = codes[line - 1]
            continue
        key = np.uint64(5381)
        for at in range(begin[line], end[line]):
            key = key * np.uint64(33) + np.uint64(text[np.uint64(at)])
        key ^= key >> np.uint64(21)
        place = _place(key, size)
        while table[place] != UNKNOWN:
            known = first[table[place]]
            if hashes[table[place]] == key and _same(
                text, begin[line], end[line], begin[known], end[known]
            ):
                break
            place = (place + 1) & (size - 1)
        if table[place] == UNKNOWN:
            table[place] = count
            first[count], hashes[count] = line, key
            count += 1
        codes[line] = table[place]
        if count * 2 > size:
            size *= 4
            table = _rehashed(hashes[:count], size)
    return codes, first[:count].copy()


@compiled
def _place(key: np.uint64, size: int) -> np.int64:
    """Returns where to look for a hash first in a table of a size that is a power of two."""
    return np.int64(key & np.uint64(size - 1))


@compiled
def _rehashed(hashes: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    table = np.full(size, UNKNOWN, dtype=np.int64)
    for code in range(len(hashes)):
        place = _place(hashes[code], size)
        while table[place] != UNKNOWN:
            place = (place + 1) & (size - 1)
        table[place] = code
    return table


@compiled
def _lines(
    text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Returns fields as a text with a line each."""
    lines = np.full((end - begin).sum() + len(begin), _LINE_END, dtype=np.uint8)
    to = 0
    for field in range(len(begin)):
        for at in range(begin[field], end[field]):
            lines[np.uint64(to)] = text[np.uint64(at)]
            to += 1
        to += 1
    return lines


@compiled
def _same(text: NDArray[np.uint8], a: int, a_end: int, b: int, b_end: int) -> bool:
    if a_end - a != b_end - b:
        return False
    for step in range(a_end - a):  # noqa: SIM110  # numba makes a slow generator of all()
        if text[np.uint64(a + step)] != text[np.uint64(b + step)]:
            return False
    return True


@compiled
def _moments(
    text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Reads seconds since the epoch; local times as if they were UTC; else UNREADABLE."""
    seconds = np.empty(len(begin), dtype=np.int64)
    for line in range(len(begin)):
        first, length = begin[line], end[line] - begin[line]
        if length == _MOMENT_LENGTH:
            seconds[line] = _local_moment(text, first)
        else:
            seconds[line] = (
                digits(text, first, length) if 0 < length <= _MOST_DIGITS else UNREADABLE
            )
        if not 0 < seconds[line] <= LAST_TIME:
            seconds[line] = UNREADABLE
    return seconds


@compiled
def _local_moment(text: NDArray[np.uint8], at: int) -> int:
    """Reads YYYY-MM-DD, any byte, HH:MM:SS as if it were UTC."""
    year, month, day = digits(text, at, 4), digits(text, at + 5, 2), digits(text, at + 8, 2)
    hour, minute = digits(text, at + 11, 2), digits(text, at + 14, 2)
    second = digits(text, at + 17, 2)
    if not (text[at + 4] == text[at + 7] == _DASH and text[at + 13] == text[at + 16] == _COLON):
        return UNREADABLE
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    long = 31 if month in (1, 3, 5, 7, 8, 10, 12) else 30
    if month == 2:
        long = 29 if leap else 28
    if not (year > 1970 and 1 <= month <= 12 and 1 <= day <= long):
        return UNREADABLE
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return UNREADABLE
    # years begin in March, so that the leap day is the last one
    since = year - (month <= 2)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = 365 * since + since // 4 - since // 100 + since // 400 + of_year - 719_468
    return days * _DAY + hour * 3600 + minute * 60 + second


@compiled
def digits(text: NDArray[np.uint8], at: int, length: int) -> int:
    """Reads a number of so many digits, else UNREADABLE."""
    value = 0
    for place in range(at, at + length):
        if not _ZERO <= text[np.uint64(place)] <= _NINE:
            return UNREADABLE
        value = value * 10 + (text[np.uint64(place)] - _ZERO)
    return value


@compiled
def digits_end(text: NDArray[np.uint8], at: int, end: int) -> int:
    """Returns where the digits end that begin here."""
    while at < end and _ZERO <= text[np.uint64(at)] <= _NINE:
        at += 1
    return at


@compiled
def _leading_numbers(
    text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    numbers = np.full(len(begin), UNREADABLE, dtype=np.int64)
    behind = np.zeros(len(begin), dtype=np.uint8)
    for line in range(len(begin)):
        at = digits_end(text, begin[line], end[line])
        if 0 < at - begin[line] <= _MOST_DIGITS:
            numbers[line] = digits(text, begin[line], at - begin[line])
        if at < end[line]:
            behind[line] = text[at]
    return numbers, behind


@compiled
def _holds(
    text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64], byte: int
) -> NDArray[np.bool_]:
    found = np.zeros(len(begin), dtype=np.bool_)
    for line in range(len(begin)):
        for at in range(begin[line], end[line]):
            found[line] |= text[at] == byte
    return found
