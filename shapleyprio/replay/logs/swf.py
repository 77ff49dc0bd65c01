"""Reads the Standard Workload Format, version 2.2, of the Parallel Workloads Archive.

Chapin et al., *Benchmarks and standards for the evaluation of parallel job schedulers* (JSSPP
1999): a job a line, 18 numbers separated by blanks, −1 for what is not known; lines that begin
with a semicolon are comments, and those before the first job describe the log.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.assembling import (
    MALFORMED,
    MALFORMED_KEPT,
    check_lines,
    taken,
    usable,
    with_partition_limits,
)
from shapleyprio.replay.native import native
from shapleyprio.replay.workloads.bays import LARGEST_COUNT
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log, MalformedLine
from shapleyprio.slurm.text.accounting import LONGEST
from shapleyprio.slurm.text.values import LARGEST_NUMBER

Ints = NDArray[np.int64]

FIELDS = (
    *("job", "submit time", "wait time", "run time", "allocated processors", "average CPU time"),
    *("used memory", "requested processors", "requested time", "requested memory", "status"),
    *("user", "group", "executable", "queue", "partition", "preceding job", "think time"),
)
LOWEST = {
    **dict.fromkeys(("job", "submit time"), 0),
    **dict.fromkeys(("wait time", "run time", "requested time"), UNKNOWN),
    **dict.fromkeys(("allocated processors", "requested processors"), UNKNOWN),
    **dict.fromkeys(("status", "user", "group", "queue", "partition"), -LARGEST_NUMBER),
}
"""The fields that a replay needs -> the lowest value that means something there."""

HIGHEST = {
    **dict.fromkeys(("submit time", "wait time", "run time"), LONGEST),
    "requested time": 60 * LONGEST,  # what Slurm takes, in minutes
    **dict.fromkeys(("allocated processors", "requested processors"), LARGEST_COUNT),
}
"""The fields that mean nothing above this; others may be as large as `LARGEST_NUMBER`."""

FIELD_COUNT = len(FIELDS)

PARTIAL = (2, 3, 4)
"""Status of what was executed up to a checkpoint, which the job's own line, if any, has as well."""

PARTIAL_EXECUTIONS = "partial_executions"

# what is wrong with a line, as in swf.c
_FINE, _NO_NUMBER, _NOT_WHOLE, _TOO_LARGE, _TOO_LOW, _TOO_FEW = range(6)

_HEADER = re.compile(rb"(?:\s*;[^\n]*)*")
_MAX_PROCS = re.compile(rb"^\s*;\s*MaxProcs:\s*([0-9]{1,15})\s*$", re.MULTILINE | re.IGNORECASE)
_UNIX_START = re.compile(
    rb"^\s*;\s*UnixStartTime:\s*([0-9]{1,10})\s*$", re.MULTILINE | re.IGNORECASE
)


def read_swf(source: str, text: bytes, *, strict: bool = False) -> Log:
    """Reads a log in SWF.

    Args:
        source: its file, for messages.
        text: all of it, decompressed.
        strict: a malformed line is an error.

    Raises:
        LogError: a malformed line if `strict`, no line can be read, or its seconds begin at
            several times.
    """
    if text.count(b"UnixStartTime") > 1 and len(set(_UNIX_START.findall(text))) > 1:
        raise LogError(f"{source}: has several UnixStartTime; give one of the files put together")
    lowest = np.array([LOWEST.get(name, 0) for name in FIELDS], dtype=np.int64)
    highest = np.array([HIGHEST.get(name, LARGEST_NUMBER) for name in FIELDS], dtype=np.int64)
    slots = np.full(FIELD_COUNT, UNKNOWN, dtype=np.int64)
    slots[[FIELDS.index(name) for name in LOWEST]] = np.arange(len(LOWEST))
    values = np.empty((len(LOWEST), text.count(b"\n") + 1), dtype=np.int64)
    faults = np.empty((MALFORMED_KEPT, 4), dtype=np.int64)
    fields, count = _Format(lowest, highest, slots), np.zeros(1, dtype=np.int64)
    data = np.frombuffer(text, dtype=np.uint8)
    rows = _parse(data, fields, LARGEST_NUMBER, values, faults, count)
    faulty = int(count[0])
    malformed = tuple(_explained(text, *fault) for fault in faults[:faulty].tolist())
    check_lines(source, rows, malformed, strict=strict)
    columns = dict(zip(LOWEST, values[:, :rows], strict=True))
    submit, wait = columns["submit time"], columns["wait time"]
    allocated, limit = columns["allocated processors"], columns["requested time"]
    partial = np.isin(columns["status"], PARTIAL)
    partial &= np.isin(columns["job"], columns["job"][~partial])
    log = Log(
        source=source,
        format="swf",
        job=columns["job"],
        release=submit,
        start=np.where(wait == UNKNOWN, UNKNOWN, submit + wait),
        processing_time=columns["run time"],
        processors=np.where(allocated > 0, allocated, columns["requested processors"]),
        limit=np.where(limit > 0, limit, UNKNOWN),
        labels={name: _numbered(columns[name]) for name in ("user", "group", "queue", "partition")},
        system_processors=_in_header(text, _MAX_PROCS),
        epoch=_in_header(text, _UNIX_START),
        left_out={MALFORMED: faulty, PARTIAL_EXECUTIONS: int(partial.sum())},
        malformed=malformed,
    )
    return with_partition_limits(usable(taken(log, np.flatnonzero(~partial))))


class _Format(NamedTuple):
    """What fields may hold.

    Attributes:
        lowest, highest: for each field, the lowest and the highest value that mean something.
        slots: for each field, where it goes in values; UNKNOWN if it is not needed.
    """

    lowest: Ints
    highest: Ints
    slots: Ints


def _numbered(column: Ints) -> Labels:
    numbers = np.unique(column)
    codes = np.searchsorted(numbers, column).astype(np.int32)  # faster than unique's own inverse
    return Labels(codes, tuple(str(number) for number in numbers.tolist()))


def _in_header(text: bytes, field: re.Pattern[bytes]) -> int | None:
    header = _HEADER.match(text)
    found = field.search(header.group()) if header else None
    return int(found.group(1)) or None if found else None


def _explained(text: bytes, number: int, begin: int, field: int, fault: int) -> MalformedLine:
    """Puts a fault into words: its line, where that begins, its field and its kind."""
    end = text.find(b"\n", begin)
    line = text[begin : len(text) if end < 0 else end]
    if fault == _TOO_FEW:
        return MalformedLine(number, f"{field} fields instead of {FIELD_COUNT}")
    name = FIELDS[field]
    reason = {
        _NO_NUMBER: "is not a number",
        _NOT_WHOLE: "is not a whole number",
        _TOO_LARGE: f"is beyond {HIGHEST.get(name, LARGEST_NUMBER)}",
        _TOO_LOW: f"is below {LOWEST.get(name)}",
    }[fault]
    written = line.split()[field].decode(errors="replace")[:80]
    return MalformedLine(number, f"field {field + 1} ({name}): {written!r} {reason}")


@native("swf_parse")
def _parse(
    text: NDArray[np.uint8],
    fields: _Format,
    largest: int,
    values: Ints,
    faults: Ints,
    malformed: Ints,
) -> int:
    """Reads all lines in one pass, and returns how many are well-formed.

    Args:
        text: the log.
        fields: what they may hold.
        largest: no number is larger.
        values: int64[slots, lines], filled from the left.
        faults: int64[kept, 4], filled from the top: line number, its first byte, field, kind.
        malformed: int64[1], how many lines are.
    """
