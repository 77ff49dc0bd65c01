"""Reads what sacct prints with ``--parsable2``: fields separated by ``|``, a line each execution.

Lines are converted column by column; only malformed ones are looked at again, to say why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.runs import UNFINISHED_STATES
from shapleyprio.replay.columns import UNREADABLE, Column, split
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.filtering import (
    MALFORMED,
    MALFORMED_KEPT,
    STEPS,
    check_lines,
    taken,
    usable,
)
from shapleyprio.replay.kernel.running import LARGEST_COUNT
from shapleyprio.replay.log import UNKNOWN, Log, MalformedLine
from shapleyprio.slurm.text import (
    LARGEST_ID,
    NO_TIME,
    UnreadableError,
    amount,
    duration,
    hosts,
    tres_of,
    whole,
)
from shapleyprio.slurm.text_accounting import LONGEST, NO_NODES

XDMOD_FIELDS = (
    *("jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user"),
    *("uid", "submit", "eligible", "start", "end", "elapsed", "exitcode", "state", "nnodes"),
    *("ncpus", "reqcpus", "reqmem", "reqtres", "alloctres", "timelimit", "nodelist", "jobname"),
)
"""The order of fields, without a header line, that Open XDMoD prescribes."""

REQUIRED = {
    "the job's number": ("jobidraw", "jobid"),
    "when it was submitted": ("submit", "eligible"),
    "when it started": ("start",),
    "its processors": ("alloccpus", "ncpus", "alloctres"),
    "how long it ran": ("elapsedraw", "elapsed", "end"),
}
"""What a replay needs -> the fields that have it, the best first."""

LABELS = {
    **{name: name for name in ("account", "user", "group", "partition", "qos")},
    "nodes": "nodelist",
}
ASK = (
    "sacct --allusers --allocations --duplicates --parsable2 --format=JobIDRaw,Account,User,Group,"
    "Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,AllocCPUS,State,Timelimit,NodeList"
)
SEPARATOR = "|"

_USED = frozenset({*sum(REQUIRED.values(), ()), *LABELS.values(), "state", "timelimit"})
_KNOWN = frozenset({*XDMOD_FIELDS, *_USED})
_NOTHING = NO_TIME | {""}
_NO_LIMIT = _NOTHING | {"UNLIMITED", "Partition_Limit", "INVALID"}
FIRST_LINE = re.compile(rb"\s*([^\n]*)")
_LIMIT_IN_MINUTES = re.compile(r"[0-9]{1,9}")
_LIMIT_IN_DAYS = re.compile(r"[0-9]+-[0-9]{1,2}(:[0-9]{2})?")

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class _Lines:
    """The columns of a file, and what was found wrong with its lines."""

    def __init__(self, columns: dict[str, Column], size: int) -> None:
        self._columns = columns
        self._size = size
        self._faults: list[tuple[Mask, Callable[[int], str]]] = []

    def first_of(self, names: Sequence[str]) -> str | None:
        """Returns the first of these columns that is there."""
        return next((name for name in names if name in self._columns), None)

    def column(self, name: str) -> Column:
        return self._columns[name]

    def numbers(self, name: str, read: Callable[[str], int]) -> Numbers:
        """Returns a column as numbers; UNKNOWN everywhere if it is missing."""
        if name not in self._columns:
            return np.full(self._size, UNKNOWN, dtype=np.int64)
        column = self._columns[name]
        numbers = column.numbers(read)
        self.fault(numbers == UNREADABLE, lambda line: _complaint(read, column.written(line)))
        return numbers

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

    def malformed(self) -> Mask:
        found = np.zeros(self._size, dtype=np.bool_)
        for lines, _ in self._faults:
            found |= lines
        return found

    def reason(self, line: int) -> str:
        return next(explain(line) for lines, explain in self._faults if lines[line])


def read_sacct(
    source: str,
    text: bytes,
    *,
    fields: Sequence[str] = XDMOD_FIELDS,
    zone: tzinfo = UTC,
    strict: bool = False,
) -> Log:
    """Reads an export of sacct.

    Args:
        source: its file, for messages.
        text: all of it, decompressed.
        fields: the columns, where the first line does not name them.
        zone: of the local times in it.
        strict: a malformed line is an error.

    Raises:
        LogError: a column is missing, a line is malformed if `strict`, or no line can be read.
    """
    names, begin = _names(text, fields)
    _check_names(source, names)
    used = [
        name if name in _USED and name not in names[:place] else ""
        for place, name in enumerate(names)
    ]
    columns, starts, counts = split(text, begin, SEPARATOR, used, rest=names[-1] == "jobname")
    lines = _Lines(columns, len(starts))
    lines.fault(counts != len(names), lambda line: _wrong_count(int(counts[line]), names, begin))
    job, steps = _jobs(lines)
    submit, eligible = lines.moments("submit", zone), lines.moments("eligible", zone)
    start, end = lines.moments("start", zone), lines.moments("end", zone)
    release = np.maximum(submit, eligible)
    lines.fault(release == UNKNOWN, lambda _: "neither submit nor eligible is known")
    release = np.where(start == UNKNOWN, release, np.minimum(release, start))
    lines.numbers("nodelist", _nodes)
    log = Log(
        source=source,
        format="sacct",
        epoch=0,
        job=job,
        release=release,
        start=start,
        processing_time=_processing_time(lines, start, end),
        processors=_processors(lines),
        limit=lines.numbers("timelimit", _limit),
        labels={
            label: lines.column(name).labels(NO_NODES)
            for label, name in LABELS.items()
            if name in columns
        },
    )
    bad = lines.malformed() & ~steps
    first_bad = np.flatnonzero(bad)[:MALFORMED_KEPT].tolist()
    malformed = tuple(_explained(text, starts, lines, first_bad))
    check_lines(source, int((~bad).sum()), malformed, strict=strict)
    left_out = {STEPS: int(steps.sum()), MALFORMED: int(bad.sum())}
    kept = taken(log, np.flatnonzero(~bad & ~steps))
    return usable(replace(kept, left_out=left_out, malformed=malformed))


def _names(text: bytes, fields: Sequence[str]) -> tuple[list[str], int]:
    """Returns the columns' names in small letters, and where the data begin.

    A header names at least two known columns, and none of its cells begins with a digit, as the
    job's number in a line of data does.
    """
    first = FIRST_LINE.match(text)
    begin, end = first.span(1) if first else (0, 0)
    cells = _small(text[begin:end].decode(errors="replace").split(SEPARATOR))
    is_header = len(_KNOWN.intersection(cells)) >= 2 and not any(c[:1].isdigit() for c in cells)
    return (cells, end) if is_header else (_small(fields), 0)


def _small(names: Sequence[str]) -> list[str]:
    """Returns names as they are compared: in small letters, without sacct's ``%width``."""
    return [name.partition("%")[0].strip().casefold() for name in names]


def _check_names(source: str, names: Sequence[str]) -> None:
    missing = [
        f"{what} ({' or '.join(alternatives)})"
        for what, alternatives in REQUIRED.items()
        if not set(alternatives).intersection(names)
    ]
    if missing:
        raise LogError(f"{source}: no column has {', nor '.join(missing)}; ask for it: {ASK}")


def _wrong_count(count: int, names: Sequence[str], begin: int) -> str:
    reason = f"{count} fields instead of {len(names)}"
    if begin == 0:
        return f"{reason}; name the fields, or let sacct print its header line"
    if count > len(names):
        return f"{reason}; ask sacct for JobName as the last one, for names may hold a separator"
    return reason


def _jobs(lines: _Lines) -> tuple[Numbers, Mask]:
    """Returns the jobs' numbers, and which lines are steps such as ``12.batch``.

    Tasks of arrays (``12_3``) and components of heterogeneous jobs (``12+1``) are jobs.
    """
    column = lines.column(lines.first_of(REQUIRED["the job's number"]) or "")
    numbers, behind = column.leading_numbers()
    proper = (numbers >= 1) & (numbers <= LARGEST_ID) & np.isin(behind, list(b"\0_+."))
    lines.fault(
        ~proper, lambda line: f"{column.name}: {column.written(line)[:80]!r} is no number of a job"
    )
    return numbers, proper & column.holds(".")


def _processing_time(lines: _Lines, start: Numbers, end: Numbers) -> Numbers:
    """Returns how long ended jobs ran, without suspension if sacct has it; UNKNOWN for others."""
    name = lines.first_of(REQUIRED["how long it ran"])
    if name == "end":
        known = (start != UNKNOWN) & (end != UNKNOWN)
        lines.fault(known & (end < start), lambda _: "end: lies before start")
        time = np.where(known, end - start, UNKNOWN)
    else:
        time = lines.numbers(name or "", _elapsed)
    unfinished = lines.numbers("state", _is_unfinished) == 1
    if lines.first_of(["end"]):
        unfinished |= end == UNKNOWN
    return np.where(unfinished, UNKNOWN, time)


def _processors(lines: _Lines) -> Numbers:
    name = lines.first_of(REQUIRED["its processors"]) or ""
    return lines.numbers(name, _cpus_of_tres if name == "alloctres" else partial(_cpus, name))


def _explained(text: bytes, starts: Numbers, lines: _Lines, rows: list[int]) -> list[MalformedLine]:
    """Returns the reasons why some lines, in the file's order, are malformed."""
    found, number, behind = [], 1, 0
    for row in rows:
        start = int(starts[row])
        number, behind = number + text.count(b"\n", behind, start), start
        found.append(MalformedLine(number, lines.reason(row)))
    return found


def _elapsed(text: str) -> int:
    if text in _NOTHING:
        return UNKNOWN
    return whole("elapsed", text, 0, LONGEST) if text.isdigit() else duration("elapsed", text)


def _is_unfinished(text: str) -> int:
    return text.partition(" ")[0] in UNFINISHED_STATES


def _cpus(name: str, text: str) -> int:
    return UNKNOWN if text in _NOTHING else _believable(name, text, amount(name, text))


def _cpus_of_tres(text: str) -> int:
    cpus = tres_of("alloctres", text, "cpu")
    return UNKNOWN if cpus is None else _believable("alloctres", text, cpus)


def _believable(name: str, text: str, processors: int) -> int:
    if processors > LARGEST_COUNT:
        raise UnreadableError(f"{name}: {text[:80]!r} is more than {LARGEST_COUNT} processors")
    return processors


def _nodes(text: str) -> int:
    return 0 if text in NO_NODES else len(hosts("nodelist", text))


def _limit(text: str) -> int:
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


def _complaint(read: Callable[[str], int], text: str) -> str:
    try:
        read(text)
    except UnreadableError as error:
        return str(error)
    raise AssertionError(text)
