"""Lines of an export of sacct: what their fields mean, and what is found wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache, partial
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.runs import UNFINISHED_STATES
from shapleyprio.replay.logs.column_names import REQUIRED
from shapleyprio.replay.logs.columns import UNREADABLE, Column
from shapleyprio.replay.workloads.bays import LARGEST_COUNT
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.slurm.text.accounting import LONGEST, NO_NODES
from shapleyprio.slurm.text.listed import FIRST_FEDERATED
from shapleyprio.slurm.text.values import (
    LARGEST_ID,
    NO_TIME,
    UnreadableError,
    amount,
    duration,
    hosts,
    whole,
)

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


MOST_DIGITS = 18

MOST_REMEMBERED, LONGEST_REMEMBERED = 1 << 17, 500
"""Texts of which it is kept what they mean: the same ones come in every piece of a file."""

_NOTHING = NO_TIME | {""}

_NO_LIMIT = _NOTHING | {"UNLIMITED", "Partition_Limit", "INVALID"}

_LIMIT_IN_MINUTES = re.compile(r"[0-9]{1,10}")

_LIMIT_IN_DAYS = re.compile(r"[0-9]+-[0-9]{1,2}(:[0-9]{2})?")


def _remembered(read: Callable[[str], int]) -> Callable[[str], int]:
    remembered = lru_cache(MOST_REMEMBERED)(read)
    return lambda text: (remembered if len(text) <= LONGEST_REMEMBERED else read)(text)


def jobs_of(lines: Lines) -> tuple[Numbers, Mask, Numbers]:
    """Returns the jobs' numbers, which lines are steps such as ``12.batch``, and jobs' parts.

    Tasks of arrays (``12_3``) and components of heterogeneous jobs (``12+1``) are jobs.
    """
    column = lines.column(lines.first_of(REQUIRED["the job's number"]) or "")
    numbers, behind = column.leading_numbers()
    proper = (numbers >= 1) & (numbers <= LARGEST_ID) & np.isin(behind, list(b"\0_+."))
    lines.fault(
        ~proper, lambda line: f"{column.name}: {column.written(line)[:80]!r} is not a job number"
    )
    parts = np.zeros(len(numbers), dtype=np.int64)
    for line in np.flatnonzero(np.isin(behind, list(b"_+"))).tolist():
        parts[line] = _part(column.written(line))
    return numbers, proper & column.holds("."), parts


def numbering_of(lines: Lines, job: Numbers) -> Numbers:
    """Returns by which clusters jobs are numbered: a digest of one's name, 0 for a federation."""
    if lines.first_of(["cluster"]) is None:
        return np.zeros(len(job), dtype=np.int64)
    labels = lines.column("cluster").labels(frozenset({""}))
    digests = np.array([*(crc32(name.encode()) for name in labels.names), 0], dtype=np.int64)
    return np.where(job < FIRST_FEDERATED, digests[labels.codes], 0)


def _part(job_id: str) -> int:
    """Returns a number for what follows the number of an array or a heterogeneous job."""
    which = job_id.lstrip("0123456789")
    if which[1:].isdecimal() and len(which) < MOST_DIGITS:
        return 2 * int(which[1:]) + (which[0] == "+")
    return -crc32(which.encode())


def processing_time_of(lines: Lines, first: Numbers, start: Numbers, end: Numbers) -> Numbers:
    """Returns how long ended jobs ran, without suspension if sacct has it; UNKNOWN for others.

    Args:
        lines: of sacct.
        first: when each job started, from which sacct counts how long it ran.
        start: when it got the processors of the line, which is later if it was resized.
        end: when it ended.
    """
    name = lines.first_of(REQUIRED["how long it ran"])
    if name == "end":
        known = (start != UNKNOWN) & (end != UNKNOWN)
        lines.fault(known & (end < start), lambda _: "end: lies before start")
        time = np.where(known, end - start, UNKNOWN)
    else:
        elapsed = lines.numbers(name or "", _elapsed, plain=LONGEST)
        time = np.where(elapsed == UNKNOWN, UNKNOWN, np.maximum(elapsed - (start - first), 0))
    unfinished = lines.numbers("state", _is_unfinished) == 1
    if lines.first_of(["end"]):
        unfinished |= end == UNKNOWN
    return np.where(unfinished, UNKNOWN, time)


def processors_of(lines: Lines) -> Numbers:
    """Returns the processors of the jobs."""
    name = lines.first_of(REQUIRED["its processors"]) or ""
    read = _cpus_of_tres if name == "alloctres" else partial(_cpus, name)
    return lines.numbers(name, read, plain=LARGEST_COUNT if name != "alloctres" else -1)


def _elapsed(text: str) -> int:
    if text in _NOTHING:
        return UNKNOWN
    return whole("elapsed", text, 0, LONGEST) if text.isdigit() else duration("elapsed", text)


@_remembered
def _is_unfinished(text: str) -> int:
    return text.partition(" ")[0] in UNFINISHED_STATES


def _cpus(name: str, text: str) -> int:
    return UNKNOWN if text in _NOTHING else _believable(name, text, amount(name, text))


def _cpus_of_tres(text: str) -> int:
    # others may be no amounts: slurmdbd has its "no value" for energy that nobody measured
    items = (item.partition("=") for item in text.split(","))
    cpus = next((cpus for name, _, cpus in items if name == "cpu"), None)
    return UNKNOWN if cpus is None else _cpus("alloctres", cpus)


def _believable(name: str, text: str, processors: int) -> int:
    if processors > LARGEST_COUNT:
        raise UnreadableError(f"{name}: {text[:80]!r} is more than {LARGEST_COUNT} processors")
    return processors


@_remembered
def nodes_in(text: str) -> int:
    """Counts the nodes of a host list."""
    return 0 if text in NO_NODES else len(hosts("nodelist", text))


@_remembered
def limit_in(text: str) -> int:
    """Reads ``days-hours:minutes:seconds`` and the shorter ``minutes`` and ``days-hours``."""
    if text in _NO_LIMIT:
        return UNKNOWN
    if _LIMIT_IN_MINUTES.fullmatch(text):
        seconds = int(text) * 60
    elif shorter := _LIMIT_IN_DAYS.fullmatch(text):
        seconds = duration("timelimit", text + (":00" if shorter.group(1) else ":00:00"))
    else:
        seconds = duration("timelimit", text)
    return seconds or UNKNOWN
