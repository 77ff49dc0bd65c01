"""Lines of an export of sacct: their fields, and what is found wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.logs.columns import UNREADABLE, Column
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.slurm.text.values import UnreadableError

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rows:
    """Lines whose fields are found.

    Attributes:
        columns: the fields.
        starts: where the lines begin in the text.
        counts: how many fields they have.
    """

    columns: Mapping[str, Column]
    starts: Numbers
    counts: Numbers

    def taken(self, kept: Numbers) -> Rows:
        """Returns some of the lines."""
        columns = {name: column.taken(kept) for name, column in self.columns.items()}
        return Rows(columns, self.starts[kept], self.counts[kept])


class Lines:
    """The columns of some lines, and what was found wrong with these.

    Args:
        rows: the lines.
    """

    def __init__(self, rows: Rows) -> None:
        self._columns = rows.columns
        self._size = len(rows.starts)
        self._left_out = np.zeros(self._size, dtype=np.bool_)
        self._faults: list[tuple[Mask, Callable[[int], str]]] = []

    def first_of(self, names: Sequence[str]) -> str | None:
        """Returns the first of these columns that is there."""
        return next((name for name in names if name in self._columns), None)

    def column(self, name: str) -> Column:
        """Returns a column that is there."""
        return self._columns[name]

    def numbers(self, name: str, read: Callable[[str], int], *, plain: int = -1) -> Numbers:
        """Returns a column as numbers, as `Column.numbers` does; UNKNOWN if it is missing."""
        if name not in self._columns:
            return np.full(self._size, UNKNOWN, dtype=np.int64)
        column = self._columns[name]
        numbers = column.numbers(read, plain=plain)
        self.fault(numbers == UNREADABLE, lambda line: _complaint(read, column.written(line)) or "")
        return numbers

    def check(
        self, name: str, sure: Callable[[Column], Mask], read: Callable[[str], object]
    ) -> None:
        """Notes what is wrong in a column, if it is there.

        Args:
            name: of the column.
            sure: returns fields with which nothing is wrong; it may miss some.
            read: raises UnreadableError at a text with which something is wrong.
        """
        if name not in self._columns:
            return
        column = self._columns[name]
        others = np.flatnonzero(~sure(column))
        codes, texts = column.taken(others).distinct
        wrong = np.array([_complaint(read, text) is not None for text in texts], dtype=np.bool_)
        lines = np.zeros(self._size, dtype=np.bool_)
        lines[others] = wrong[codes]
        self.fault(lines, lambda line: _complaint(read, column.written(line)) or "")

    def moments(self, name: str, zone: tzinfo) -> Numbers:
        """Returns a column as seconds since the epoch; UNKNOWN everywhere if it is missing."""
        if name not in self._columns:
            return np.full(self._size, UNKNOWN, dtype=np.int64)
        column = self._columns[name]
        moments = column.moments(zone)
        self.fault(
            moments == UNREADABLE,
            lambda line: (
                f"{name}: {column.written(line)[:80]!r} is neither a time such as "
                "2017-01-31T23:49:29 nor seconds since the epoch"
            ),
        )
        return moments

    def fault(self, lines: Mask, explain: Callable[[int], str]) -> None:
        """Notes that these lines are malformed; what is noted first explains a line."""
        self._faults.append((lines, explain))

    def leave_out(self, lines: Mask) -> None:
        """Passes over lines, whatever is wrong with them."""
        self._left_out = lines

    def malformed(self) -> Mask:
        """Returns which lines are malformed."""
        found = np.zeros(self._size, dtype=np.bool_)
        for lines, _ in self._faults:
            found |= lines
        return found & ~self._left_out

    def reason(self, line: int) -> str:
        """Returns what is wrong with a malformed line."""
        return next(explain(line) for lines, explain in self._faults if lines[line])


def _complaint(read: Callable[[str], object], text: str) -> str | None:
    """Returns what is wrong with a text, None if nothing is."""
    try:
        read(text)
    except UnreadableError as error:
        return str(error)
    return None
