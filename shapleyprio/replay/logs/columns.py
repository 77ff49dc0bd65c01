"""Separated text in whole lines, and its columns: where fields are, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.databases import without_password
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.files import BLOCK
from shapleyprio.replay.native import native
from shapleyprio.replay.workloads.log import UNKNOWN, Labels
from shapleyprio.slurm.text.values import LARGEST_HOST_LIST, LAST_TIME, NO_TIME, UnreadableError

PIECE = 1 << 23
"""Bytes of a piece, unless one line is longer; few enough to stay small beside what is kept."""

LONGEST_LINE = BLOCK
"""Bytes; a longer line is found out by having no end in a block."""


def lines_of(source: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Puts blocks together to pieces that end where a line does.

    Args:
        source: the file, for messages.
        blocks: its text.

    Raises:
        LogError: a line is longer than any in a log.
    """
    parts: list[bytes] = []
    size, line, line_length = 0, 1, 0
    for block in blocks:
        first, last = block.find(b"\n") + 1, block.rfind(b"\n") + 1
        if line_length + (first or len(block)) > LONGEST_LINE:
            raise LogError(
                f"{without_password(source)}:{line}: is longer than {LONGEST_LINE >> 20} MiB, as "
                "no line of a log is"
            )
        line += line_ends(block)
        line_length = len(block) - last if last else line_length + len(block)
        end = last if size + len(block) >= PIECE else 0
        if end:
            yield b"".join((*parts, block[:end]))
            parts, size = [], 0
        parts.append(block[end:])
        size += len(block) - end
    if size:
        yield b"".join(parts)


def line_ends(text: bytes, begin: int = 0) -> int:
    """Returns how many lines end in a text, from some byte on."""
    return _line_ends(np.frombuffer(text, dtype=np.uint8)[begin:])


@native("columns_line_ends")
def _line_ends(text: NDArray[np.uint8]) -> int:
    """Counts them."""


def surely_hosts(column: Column) -> NDArray[np.bool_]:
    """Returns which fields are plain lists of hosts, such as ``cn7`` and ``cn[1-3,008],gpu-2``.

    `shapleyprio.slurm.text.values.hosts` reads them; the others it may read or not.
    """
    found = np.empty(len(column.begin), np.bool_)
    _surely(column.fields, LARGEST_HOST_LIST, found)
    return found


@native("host_lists_surely")
def _surely(fields: Fields, most: int, found: NDArray[np.bool_]) -> None:
    """Says which texts are plain lists of so many hosts at most."""


UNREADABLE = -2
"""What stands in a column of numbers where the text is something else."""

_NEVER = frozenset({*NO_TIME, "", "0"})
_MOMENT_LENGTH = len("2017-01-31T23:49:29")

_QUARTER = 900  # seconds; time zones change their offsets at whole quarters of an hour

Ints = NDArray[np.int64]

Words = NDArray[np.uint64]

Bytes = NDArray[np.uint8]


class Fields(NamedTuple):
    """Where texts are in a longer one.

    Attributes:
        text: the longer one.
        begin, end: int64[fields], where each begins in it and ends.
    """

    text: Bytes
    begin: Ints
    end: Ints


@dataclass(frozen=True)  # with slots nothing can be cached
class Column:
    """One field of every line.

    Attributes:
        name: what the field is called.
        text: the whole file.
        begin, end: int64[lines], where the field begins in it and ends.
    """

    name: str
    text: Bytes
    begin: Ints
    end: Ints

    @property
    def fields(self) -> Fields:
        """Where the field is in every line."""
        return Fields(self.text, self.begin, self.end)

    def written(self, line: int) -> str:
        """Returns the field of one line, as it is written."""
        return self.text[self.begin[line] : self.end[line]].tobytes().decode(errors="replace")

    def taken(self, lines: Ints) -> Column:
        """Returns the field of some lines."""
        return replace(self, begin=self.begin[lines], end=self.end[lines])

    @cached_property
    def distinct(self) -> tuple[NDArray[np.int32], list[str]]:
        """For each line the index of its text, and the texts by first appearance."""
        size = len(self.begin)
        codes, table = np.empty(size, np.int32), np.empty(max(1024, 4 * size), np.int32)
        first, hashes = np.empty(size, np.int64), np.empty(size, np.uint64)
        first = first[: _distinct(self.fields, codes, first, hashes, table)]
        begin, end = self.begin[first], self.end[first]
        lines = np.empty((end - begin).sum() + len(first), np.uint8)
        _lines(Fields(self.text, begin, end), lines)
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

    def numbers(self, read: Callable[[str], int], *, plain: int = -1) -> Ints:
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

    def leading_numbers(self) -> tuple[Ints, Bytes]:
        """Reads the numbers of at most ten digits that the fields begin with, else UNREADABLE.

        Returns:
            The numbers, and the byte behind each, 0 where the field ends there.
        """
        numbers, behind = np.empty(len(self.begin), np.int64), np.empty(len(self.begin), np.uint8)
        _leading_numbers(self.fields, numbers, behind)
        return numbers, behind

    def holds(self, character: str) -> NDArray[np.bool_]:
        """Returns in which fields an ASCII character occurs."""
        found = np.empty(len(self.begin), np.bool_)
        _holds(self.fields, ord(character), found)
        return found

    def moments(self, zone: tzinfo) -> Ints:
        """Returns the column as seconds since the epoch.

        It holds them as such, or as local times such as 2017-01-31T23:49:29; UNKNOWN where Slurm
        does not know, UNREADABLE where it is something else. Of a local time that the clock showed
        twice, the first one is meant.

        Args:
            zone: of the local times.
        """
        seconds = np.empty(len(self.begin), np.int64)
        _moments(self.fields, LAST_TIME, seconds)
        local = (self.end - self.begin == _MOMENT_LENGTH) & (seconds > 0)
        if zone is not UTC:
            quarters, codes = np.unique(seconds[local] // _QUARTER, return_inverse=True)
            offsets = [_offset(zone, quarter * _QUARTER) for quarter in quarters.tolist()]
            seconds[local] -= np.array(offsets, dtype=np.int64)[codes]
        for line in np.flatnonzero(seconds == UNREADABLE).tolist():
            if self.written(line) in _NEVER:
                seconds[line] = UNKNOWN
        return seconds


def column_of(name: str, texts: Iterable[str]) -> Column:
    """Returns a column of these texts, which are without line ends."""
    fields = [text.encode(errors="replace") for text in texts]
    end = np.cumsum([0, *map(len, fields)], dtype=np.int64)
    data = np.frombuffer(b"".join(fields) or b"\n", dtype=np.uint8)
    return Column(name, data, end[:-1], end[1:])


def split(
    text: bytes, begin: int, separator: str, names: Sequence[str], *, rest: bool
) -> tuple[dict[str, Column], Ints, Ints]:
    """Splits lines into columns; empty lines are passed over.

    Args:
        text: the file.
        begin: where its first line of data begins.
        separator: one ASCII character.
        names: of the columns, in their order; "" for those that are not needed.
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
    found = _Split(slots, begins, ends, starts, fields)
    count = _split(data, begin, ord(separator), rest, found)
    columns = {
        names[number]: Column(names[number], data, begins[slot, :count], ends[slot, :count])
        for slot, number in enumerate(wanted)
    }
    return columns, starts[:count], fields[:count]


class _Split(NamedTuple):
    """Where fields are in a text.

    Attributes:
        slots: int64[columns], row of the column in begins and ends, UNKNOWN if it is not needed.
        begins, ends: int64[slots, lines], where the fields begin and end.
        starts: int64[lines], where the lines begin.
        fields: int64[lines], how many fields they have.
    """

    slots: Ints
    begins: Ints
    ends: Ints
    starts: Ints
    fields: Ints


def _or_unreadable(read: Callable[[str], int], text: str) -> int:
    try:
        return read(text)
    except UnreadableError:
        return UNREADABLE


def second_of(moment: datetime, zone: tzinfo | None) -> int:
    """Returns the second since the epoch of a moment, in a time zone if it has none itself.

    Args:
        moment: of a calendar.
        zone: None for this host's.
    """
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())


def _offset(zone: tzinfo, local_second: int) -> int:
    """Returns by how many seconds a time zone's clock is ahead when it shows this time."""
    shown = datetime.fromtimestamp(local_second, UTC).replace(tzinfo=zone)
    offset = shown.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


@native("columns_split")
def _split(text: Bytes, at: int, separator: int, rest: bool, found: _Split) -> int:
    """Fills in the fields of all lines, and returns how many lines there are."""


@native("columns_distinct")
def _distinct(
    fields: Fields, codes: NDArray[np.int32], first: Ints, hashes: Words, table: NDArray[np.int32]
) -> int:
    """Numbers the different texts by first appearance, and returns how many there are.

    Args:
        fields: the texts.
        codes: int32[fields], the number of each.
        first: int64[fields], where each different one was first.
        hashes: uint64[fields], room.
        table: int32[max(1024, 4 * fields)], room.
    """


@native("columns_lines")
def _lines(fields: Fields, lines: Bytes) -> None:
    """Writes fields as a text with a line each."""


@native("columns_moments")
def _moments(fields: Fields, last_time: int, seconds: Ints) -> None:
    """Reads seconds since the epoch; local times as if they were UTC; else UNREADABLE."""


@native("columns_leading_numbers")
def _leading_numbers(fields: Fields, numbers: Ints, behind: Bytes) -> None:
    """Does what `Column.leading_numbers` says."""


@native("columns_holds")
def _holds(fields: Fields, byte: int, found: NDArray[np.bool_]) -> None:
    """Says in which fields a byte occurs."""
