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
from shapleyprio.replay.logs.cells import JobCells, rows_of
from shapleyprio.replay.logs.column_names import (
    LABELS,
    LIMITS,
    REQUIRED,
    SEPARATOR,
    XDMOD_FIELDS,
    canonical,
    check_names,
    columns_to_read,
    header_of,
)
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
    tres,
    whole,
)

_CPU_IN_TABLES = "1"
"""By which slurmdbd's tables know a CPU among other resources."""

MOST_DIGITS = 18
MOST_REMEMBERED, LONGEST_REMEMBERED = 1 << 17, 500
"""Texts of which it is kept what they mean: the same ones come in every piece of a file."""

_NOTHING = NO_TIME | {""}
_NO_LIMIT = _NOTHING | {"UNLIMITED", "Partition_Limit", "INVALID"}
_LIMIT_IN_MINUTES = re.compile(r"[0-9]{1,9}")
_LIMIT_IN_DAYS = re.compile(r"[0-9]+-[0-9]{1,2}(:[0-9]{2})?")


def _remembered(read: Callable[[str], int]) -> Callable[[str], int]:
    remembered = lru_cache(MOST_REMEMBERED)(read)
    return lambda text: (remembered if len(text) <= LONGEST_REMEMBERED else read)(text)


class Headed(NamedTuple):
    """Whole lines of an export, and what their columns are.

    Attributes:
        text: the lines.
        begin: where the first line of data begins.
        names: of the columns.
        has_header: whether the file names them itself.
    """

    text: bytes
    begin: int
    names: Sequence[str]
    has_header: bool


class PieceRecords(NamedTuple):
    """What a piece holds.

    Attributes:
        lines: how many it has; 0 where malformed ones are numbered from the file's first one on.
        records: of its well-formed lines.
        keys: of the records, as `Joiner.add` takes them.
        unread: how much of it has no fields to be read.
        malformed: the first malformed lines, counted from 1 in this piece, and the reasons.
    """

    lines: int
    records: Log
    keys: Numbers
    unread: int
    malformed: Sequence[MalformedLine]


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

    def read(self, file: str, texts: Iterable[bytes]) -> None:
        """Reads one more file.

        Args:
            file: its name.
            texts: whole lines of it; the first ones are not all blank.

        Raises:
            LogError: a column is missing, a line is malformed if `strict`, or no line can be read.
        """
        parse = partial(self._of_text, file)
        with closing(in_order(parse, _headed(file, texts, self._fields))) as found:
            self._add(file, found)

    def read_cells(self, file: str, pieces: Iterable[JobCells]) -> None:
        """Reads one more file whose fields were found already; it raises what `read` does."""
        with closing(in_order(partial(self._of_cells, file), pieces)) as found:
            self._add(file, found)

    def log(self) -> Log:
        """Returns all that was read."""
        malformed = tuple(self._malformed[:MALFORMED_KEPT])
        return with_partition_limits(self._joiner.joined(self._source, malformed))

    def _add(self, file: str, pieces: Iterable[PieceRecords]) -> None:
        passed, well_formed = 0, 0
        malformed: list[MalformedLine] = []
        for piece in pieces:
            well_formed += len(piece.records.job) + piece.records.left_out[STEPS]
            malformed += [replace(line, number=passed + line.number) for line in piece.malformed]
            del malformed[MALFORMED_KEPT:]
            self._joiner.add(piece.records, piece.keys)
            self._joiner.leave_out(MALFORMED, piece.unread)
            passed += piece.lines
        check_lines(file, well_formed, tuple(malformed), strict=self._strict)
        self._malformed += (
            [replace(line, file=file) for line in malformed] if self._several else malformed
        )

    def _of_text(self, file: str, piece: Headed) -> PieceRecords:
        """Reads a piece; several threads do so side by side."""
        used = columns_to_read(piece.names)
        rest = piece.names[-1] == "jobname"
        rows = Rows(*split(piece.text, piece.begin, SEPARATOR, used, rest=rest))
        rows = self._wanted(rows)
        found = _records(file, rows, piece.names, self._zone, has_header=piece.has_header)
        malformed = _explained(piece.text, rows.starts, found.lines)
        return PieceRecords(line_ends(piece.text), found.records, found.keys, 0, malformed)

    def _of_cells(self, file: str, piece: JobCells) -> PieceRecords:
        """Reads a piece; several threads do so side by side."""
        check_names(file, piece.names)
        rows = self._wanted(rows_of(piece))
        found = _records(file, rows, piece.names, self._zone, has_header=True)
        malformed = [
            MalformedLine(piece.numbers[rows.starts[row]], found.lines.reason(row))
            for row in np.flatnonzero(found.lines.malformed())[:MALFORMED_KEPT].tolist()
        ]
        every = sorted((*piece.malformed, *malformed))
        return PieceRecords(0, found.records, found.keys, len(piece.malformed), every)

    def _wanted(self, rows: Rows) -> Rows:
        """Returns the lines of a piece that are wanted."""
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


def _headed(file: str, texts: Iterable[bytes], fields: Sequence[str]) -> Iterator[Headed]:
    """Finds out at the first piece of a file what its columns are."""
    names: Sequence[str] = ()
    has_header = False
    for text in texts:
        begin = 0
        if not names:
            header = header_of(text)
            has_header = header is not None
            names, _, begin = header or (canonical(fields), SEPARATOR, 0)
            check_names(file, names)
        yield Headed(text, begin, names, has_header)


class _Found(NamedTuple):
    """The records of well-formed lines, their keys, and what is wrong with the others."""

    records: Log
    keys: Numbers
    lines: Lines


def _records(
    file: str, rows: Rows, names: Sequence[str], zone: tzinfo, *, has_header: bool
) -> _Found:
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
        limit=lines.numbers(lines.first_of(LIMITS) or "", _limit),
        labels={
            label: lines.column(name).labels(NO_NODES)
            for label, names_of_it in LABELS.items()
            if (name := lines.first_of(names_of_it))
        },
    )
    lines.leave_out(steps)
    kept = np.flatnonzero(~lines.malformed() & ~steps)
    left_out = {STEPS: int(steps.sum()), MALFORMED: int(lines.malformed().sum())}
    keys = np.column_stack(
        (job, part, np.where(submit == UNKNOWN, eligible, submit), _numbering(lines, job))
    )
    return _Found(replace(taken(log, kept), left_out=left_out), keys[kept], lines)


def _release(submit: Numbers, eligible: Numbers, start: Numbers) -> Numbers:
    """Returns when jobs could have started at the earliest, which is not after they did."""
    release: Numbers = np.maximum(submit, eligible)
    return np.where(start == UNKNOWN, release, np.minimum(release, start))


def _wrong_count(count: int, names: Sequence[str], *, has_header: bool) -> str:
    if count == 1:
        return "has no separator; let sacct print with --parsable2, and a header line"
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


def _explained(text: bytes, starts: Numbers, lines: Lines) -> list[MalformedLine]:
    """Returns the first malformed lines of a text, counted from 1, and the reasons."""
    found, number, behind = [], 1, 0
    for row in np.flatnonzero(lines.malformed())[:MALFORMED_KEPT].tolist():
        start = int(starts[row])
        number, behind = number + text.count(b"\n", behind, start), start
        found.append(MalformedLine(number, lines.reason(row)))
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
    found = tres("alloctres", text)
    cpus = found.get("cpu", found.get(_CPU_IN_TABLES))
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
