"""Reads what sacct prints with ``--parsable2``: fields separated by ``|``, a line each execution.

Lines are converted column by column; only malformed ones are looked at again, to say why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import lru_cache, partial
from typing import NamedTuple
from zlib import crc32

import numpy as np

from shapleyprio.fairness.runs import UNFINISHED_STATES
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.columns import split, surely_hosts
from shapleyprio.replay.logs.filtering import MALFORMED, MALFORMED_KEPT, STEPS, check_lines, taken
from shapleyprio.replay.logs.joining import Joiner
from shapleyprio.replay.logs.line_ends import line_ends
from shapleyprio.replay.logs.partition_limits import with_partition_limits
from shapleyprio.replay.logs.sacct_lines import Lines, Mask, Numbers, Rows
from shapleyprio.replay.logs.side_by_side import in_order
from shapleyprio.replay.workloads.log import UNKNOWN, Log, MalformedLine
from shapleyprio.replay.workloads.running import LARGEST_COUNT
from shapleyprio.slurm.text.accounting import LONGEST, NO_NODES
from shapleyprio.slurm.text.federation import FIRST_FEDERATED
from shapleyprio.slurm.text.values import (
    LARGEST_ID,
    NO_TIME,
    UnreadableError,
    amount,
    duration,
    hosts,
    tres_of,
    whole,
)

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
    **{name: name for name in ("account", "user", "group", "partition", "qos", "cluster")},
    "nodes": "nodelist",
}
ASK = (
    "sacct --allusers --allocations --duplicates --parsable2 --format=JobIDRaw,Account,User,Group,"
    "Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,AllocCPUS,State,Timelimit,NodeList,Cluster"
)
SEPARATOR = "|"
MOST_DIGITS = 18
MOST_REMEMBERED, LONGEST_REMEMBERED = 1 << 17, 500
"""Texts of which it is kept what they mean: the same ones come in every piece of a file."""

_USED = frozenset({*sum(REQUIRED.values(), ()), *LABELS.values(), "state", "timelimit"})
_KNOWN = frozenset({*XDMOD_FIELDS, *_USED})
_NOTHING = NO_TIME | {""}
_NO_LIMIT = _NOTHING | {"UNLIMITED", "Partition_Limit", "INVALID"}
FIRST_LINE = re.compile(rb"\s*([^\n]*)")
_LIMIT_IN_MINUTES = re.compile(r"[0-9]{1,9}")
_LIMIT_IN_DAYS = re.compile(r"[0-9]+-[0-9]{1,2}(:[0-9]{2})?")


def _remembered(read: Callable[[str], int]) -> Callable[[str], int]:
    remembered = lru_cache(MOST_REMEMBERED)(read)
    return lambda text: (remembered if len(text) <= LONGEST_REMEMBERED else read)(text)


class Piece(NamedTuple):
    """Whole lines of an export.

    Attributes:
        text: the lines; those of the first piece of a file are not all blank.
        numbers: the line of the file where each of them comes from; None if they are the file's
            own.
        malformed: what the file has among these lines that cannot be written as such.
    """

    text: bytes
    numbers: Sequence[int] | None = None
    malformed: tuple[MalformedLine, ...] = ()


class Headed(NamedTuple):
    """A piece, and what its columns are.

    Attributes:
        piece: it.
        begin: where its first line of data begins.
        names: of the columns.
        has_header: whether the file names them itself.
    """

    piece: Piece
    begin: int
    names: Sequence[str]
    has_header: bool


class PieceRecords(NamedTuple):
    """What a piece holds.

    Attributes:
        piece: it.
        records: of its well-formed lines.
        keys: of the records, as `Joiner.add` takes them.
        malformed: the first malformed lines, counted from 1 in this piece, and the reasons.
    """

    piece: Piece
    records: Log
    keys: Numbers
    malformed: list[tuple[int, str]]


class SacctReader:
    """Reads exports of sacct as one log, piece by piece.

    Args:
        source: what they are called together.
        fields: the columns, where a file's first line does not name them.
        zone: of the local times in them.
        strict: a malformed line is an error.
        several: whether there are several files; records that come twice then count once.
        since, until: seconds since the epoch; jobs released before the one, or from the other on,
            are not read any further. None for no such bound.
    """

    def __init__(
        self,
        source: str,
        *,
        fields: Sequence[str] = XDMOD_FIELDS,
        zone: tzinfo = UTC,
        strict: bool = False,
        several: bool = False,
        since: int | None = None,
        until: int | None = None,
    ) -> None:
        self._source = source
        self._fields = fields
        self._zone = zone
        self._strict = strict
        self._since = since
        self._until = until
        self._several = several
        self._joiner = Joiner(several=several)
        self._malformed: list[MalformedLine] = []

    def read(self, file: str, pieces: Iterable[Piece], *, separator: str = SEPARATOR) -> None:
        """Reads one more file.

        Args:
            file: its name.
            pieces: its text.
            separator: what stands between its fields.

        Raises:
            LogError: a column is missing, a line is malformed if `strict`, or no line can be read.
        """
        passed, well_formed = 0, 0
        malformed: list[MalformedLine] = []
        parse = partial(self._parsed, file, separator)
        with closing(in_order(parse, _headed(file, pieces, self._fields, separator))) as parsed:
            for piece, records, keys, found in parsed:
                numbers = piece.numbers
                well_formed += len(records.job) + records.left_out[STEPS]
                lines = [
                    MalformedLine(passed + row if numbers is None else numbers[row - 1], reason)
                    for row, reason in found
                ]
                malformed += sorted((*piece.malformed, *lines))
                del malformed[MALFORMED_KEPT:]
                self._joiner.add(records, keys)
                self._joiner.leave_out(MALFORMED, len(piece.malformed))
                passed += line_ends(piece.text)
        check_lines(file, well_formed, tuple(malformed), strict=self._strict)
        self._malformed += (
            [replace(line, file=file) for line in malformed] if self._several else malformed
        )

    def log(self) -> Log:
        """Returns all that was read."""
        malformed = tuple(self._malformed[:MALFORMED_KEPT])
        return with_partition_limits(self._joiner.joined(self._source, malformed))

    def _parsed(self, file: str, separator: str, headed: Headed) -> PieceRecords:
        """Reads a piece; several threads do so side by side."""
        text, names = headed.piece.text, headed.names
        rows = self._rows(text, headed.begin, names, separator)
        records, keys, bad = _records(file, rows, names, self._zone, has_header=headed.has_header)
        return PieceRecords(headed.piece, records, keys, _explained(text, rows.starts, bad))

    def _rows(self, text: bytes, begin: int, names: Sequence[str], separator: str) -> Rows:
        """Returns the lines of a piece that are wanted."""
        used = [
            name if name in _USED and name not in names[:place] else ""
            for place, name in enumerate(names)
        ]
        rows = Rows(*split(text, begin, separator, used, rest=names[-1] == "jobname"))
        if self._since is None and self._until is None:
            return rows
        submit, eligible, start = (
            rows.columns[name].moments(self._zone)
            if name in rows.columns
            else np.full(len(rows.starts), UNKNOWN, dtype=np.int64)
            for name in ("submit", "eligible", "start")
        )
        release = _release(submit, eligible, start)
        outside = release < (0 if self._since is None else self._since)
        if self._until is not None:
            outside |= release >= self._until
        # what cannot be read is shown wherever it lies
        return rows.taken(np.flatnonzero(~outside | (release < 0)))


def _headed(
    file: str, pieces: Iterable[Piece], fields: Sequence[str], separator: str
) -> Iterator[Headed]:
    """Finds out at the first piece of a file what its columns are."""
    names: list[str] = []
    has_header = False
    for piece in pieces:
        begin = 0
        if not names:
            names, begin = _names(piece.text, fields, separator)
            _check_names(file, names)
            has_header = begin > 0
        yield Headed(piece, begin, names, has_header)


def _records(
    file: str, rows: Rows, names: Sequence[str], zone: tzinfo, *, has_header: bool
) -> tuple[Log, Numbers, Lines]:
    """Returns the records of well-formed lines, their keys, and what is wrong with the others."""
    lines = Lines(rows)
    lines.fault(
        rows.counts != len(names),
        lambda line: _wrong_count(int(rows.counts[line]), names, has_header=has_header),
    )
    job, steps, part = _jobs(lines)
    submit, eligible = lines.moments("submit", zone), lines.moments("eligible", zone)
    start, end = lines.moments("start", zone), lines.moments("end", zone)
    lines.fault(
        np.maximum(submit, eligible) == UNKNOWN, lambda _: "neither submit nor eligible is known"
    )
    lines.check("nodelist", surely_hosts, _nodes)
    log = Log(
        source=file,
        format="sacct",
        epoch=0,
        job=job,
        release=_release(submit, eligible, start),
        start=start,
        processing_time=_processing_time(lines, start, end),
        processors=_processors(lines),
        limit=lines.numbers("timelimit", _limit),
        labels={
            label: lines.column(name).labels(NO_NODES)
            for label, name in LABELS.items()
            if name in rows.columns
        },
    )
    lines.leave_out(steps)
    kept = np.flatnonzero(~lines.malformed() & ~steps)
    left_out = {STEPS: int(steps.sum()), MALFORMED: int(lines.malformed().sum())}
    keys = np.column_stack(
        (job, part, np.where(submit == UNKNOWN, eligible, submit), _numbering(lines, job))
    )
    return replace(taken(log, kept), left_out=left_out), keys[kept], lines


def _release(submit: Numbers, eligible: Numbers, start: Numbers) -> Numbers:
    """Returns when jobs could have started at the earliest, which is not after they did."""
    release: Numbers = np.maximum(submit, eligible)
    return np.where(start == UNKNOWN, release, np.minimum(release, start))


def _names(text: bytes, fields: Sequence[str], separator: str) -> tuple[list[str], int]:
    """Returns the columns' names in small letters, and where the data begin.

    A header names at least two known columns, and none of its cells begins with a digit, as the
    job's number in a line of data does.
    """
    first = FIRST_LINE.match(text)
    begin, end = first.span(1) if first else (0, 0)
    cells = _small(text[begin:end].decode(errors="replace").split(separator))
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


def _wrong_count(count: int, names: Sequence[str], *, has_header: bool) -> str:
    reason = f"{count} fields instead of {len(names)}"
    if not has_header:
        return f"{reason}; name the fields, or let sacct print its header line"
    if count > len(names):
        return f"{reason}; ask sacct for JobName as the last one, for names may hold a separator"
    return reason


def _jobs(lines: Lines) -> tuple[Numbers, Mask, Numbers]:
    """Returns the jobs' numbers, which lines are steps such as ``12.batch``, and jobs' parts.

    Tasks of arrays (``12_3``) and components of heterogeneous jobs (``12+1``) are jobs.
    """
    column = lines.column(lines.first_of(REQUIRED["the job's number"]) or "")
    numbers, behind = column.leading_numbers()
    proper = (numbers >= 1) & (numbers <= LARGEST_ID) & np.isin(behind, list(b"\0_+."))
    lines.fault(
        ~proper, lambda line: f"{column.name}: {column.written(line)[:80]!r} is no number of a job"
    )
    parts = np.zeros(len(numbers), dtype=np.int64)
    for line in np.flatnonzero(np.isin(behind, list(b"_+"))).tolist():
        parts[line] = _part(column.written(line))
    return numbers, proper & column.holds("."), parts


def _numbering(lines: Lines, job: Numbers) -> Numbers:
    """Returns by which clusters jobs are numbered: a digest of one's name, 0 for a federation."""
    if lines.first_of(["cluster"]) is None:
        return np.zeros(len(job), dtype=np.int64)
    labels = lines.column("cluster").labels(frozenset({""}))
    digests = np.array([*(crc32(name.encode()) for name in labels.names), 0], dtype=np.int64)
    return np.where(job < FIRST_FEDERATED, digests[labels.codes], 0)


def _part(job_id: str) -> int:
    """Returns a number for what follows the number of an array or a heterogeneous job."""
    which = job_id.lstrip("0123456789")
    if which[1:].isdigit() and len(which) < MOST_DIGITS:
        return 2 * int(which[1:]) + (which[0] == "+")
    return -crc32(which.encode())


def _processing_time(lines: Lines, start: Numbers, end: Numbers) -> Numbers:
    """Returns how long ended jobs ran, without suspension if sacct has it; UNKNOWN for others."""
    name = lines.first_of(REQUIRED["how long it ran"])
    if name == "end":
        known = (start != UNKNOWN) & (end != UNKNOWN)
        lines.fault(known & (end < start), lambda _: "end: lies before start")
        time = np.where(known, end - start, UNKNOWN)
    else:
        time = lines.numbers(name or "", _elapsed, plain=LONGEST)
    unfinished = lines.numbers("state", _is_unfinished) == 1
    if lines.first_of(["end"]):
        unfinished |= end == UNKNOWN
    return np.where(unfinished, UNKNOWN, time)


def _processors(lines: Lines) -> Numbers:
    name = lines.first_of(REQUIRED["its processors"]) or ""
    read = _cpus_of_tres if name == "alloctres" else partial(_cpus, name)
    return lines.numbers(name, read, plain=LARGEST_COUNT if name != "alloctres" else -1)


def _explained(text: bytes, starts: Numbers, lines: Lines) -> list[tuple[int, str]]:
    """Returns the numbers of the first malformed lines of a text, and the reasons."""
    found, number, behind = [], 1, 0
    for row in np.flatnonzero(lines.malformed())[:MALFORMED_KEPT].tolist():
        start = int(starts[row])
        number, behind = number + text.count(b"\n", behind, start), start
        found.append((number, lines.reason(row)))
    return found


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
    cpus = tres_of("alloctres", text, "cpu")
    return UNKNOWN if cpus is None else _believable("alloctres", text, cpus)


def _believable(name: str, text: str, processors: int) -> int:
    if processors > LARGEST_COUNT:
        raise UnreadableError(f"{name}: {text[:80]!r} is more than {LARGEST_COUNT} processors")
    return processors


@_remembered
def _nodes(text: str) -> int:
    return 0 if text in NO_NODES else len(hosts("nodelist", text))


@_remembered
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
