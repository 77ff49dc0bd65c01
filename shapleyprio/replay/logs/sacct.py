"""Reads what sacct prints with ``--parsable2``: fields separated by ``|``, a line each execution.

Lines are converted column by column; only malformed ones are looked at again, to say why.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from shapleyprio.common.wording import HOUR
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.assembling import (
    MALFORMED,
    MALFORMED_KEPT,
    STEPS,
    Joiner,
    check_lines,
    taken,
    with_partition_limits,
)
from shapleyprio.replay.logs.cells import FIELDS, ONE_BY_ONE, JobCells, rows_of
from shapleyprio.replay.logs.column_names import (
    ASK,
    FREE_TEXT,
    HOLDS_SEPARATORS,
    LABELS,
    LIMITS,
    SEPARATOR,
    XDMOD_FIELDS,
    canonical,
    check_names,
    columns_to_read,
    header_of,
    identified_by,
)
from shapleyprio.replay.logs.columns import line_ends, split, surely_hosts
from shapleyprio.replay.logs.sacct_lines import (
    Lines,
    Numbers,
    Rows,
    jobs_of,
    limit_in,
    nodes_in,
    numbering_of,
    processing_time_of,
    processors_of,
)
from shapleyprio.replay.workloads.log import UNKNOWN, Log, MalformedLine
from shapleyprio.slurm.text.accounting import NO_NODES

THREADS = 2
"""More would wait for the interpreter."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Headed(NamedTuple):
    """Whole lines of an export, and what their columns are.

    Attributes:
        text: the lines.
        begin: where the first line of data begins.
        names: of the columns.
        heading: the line by which the file names them itself; empty if it does not.
    """

    text: bytes
    begin: int
    names: Sequence[str]
    heading: bytes


class PieceRecords(NamedTuple):
    """What a piece holds.

    Attributes:
        names: of its columns.
        lines: how many it has; 0 where malformed ones are numbered from the file's first one on.
        records: of its well-formed lines.
        keys: of the records, as `Joiner.add` takes them.
        unread: how much of it has no fields to be read.
        malformed: the first malformed lines, counted from 1 in this piece, and the reasons.
        heads_again: the line of it that is the file's heading once more; 0 if none is.
        headed: whether its file has a heading; without one, files that were put together show no
            second one.
    """

    names: Sequence[str]
    lines: int
    records: Log
    keys: Numbers
    unread: int
    malformed: Sequence[MalformedLine]
    heads_again: int = 0
    headed: bool = True


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
        self._identified: dict[tuple[str, ...], str] = {}
        self._malformed: list[MalformedLine] = []
        self._free_text: set[str] = set()

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
        log = self._joiner.joined(self._source, malformed)
        return with_partition_limits(replace(log, free_text=sorted(self._free_text)))

    def _add(self, file: str, pieces: Iterable[PieceRecords]) -> None:
        passed, well_formed = 0, 0
        malformed: list[MalformedLine] = []
        for piece in pieces:
            self._refuse_other_columns(file, piece.names)
            self._free_text |= FREE_TEXT.intersection(piece.names)
            if piece.heads_again:
                line = passed + piece.heads_again
                raise LogError(f"{file}:{line}: is a second heading line; {ONE_BY_ONE}")
            well_formed += len(piece.records.job) + piece.records.left_out[STEPS]
            malformed += [replace(line, number=passed + line.number) for line in piece.malformed]
            del malformed[MALFORMED_KEPT:]
            self._joiner.several |= not piece.headed
            self._joiner.add(piece.records, piece.keys)
            self._joiner.leave_out(MALFORMED, piece.unread)
            passed += piece.lines
        check_lines(file, well_formed, tuple(malformed), strict=self._strict)
        self._malformed += (
            [replace(line, file=file) for line in malformed] if self._several else malformed
        )

    def _refuse_other_columns(self, file: str, names: Sequence[str]) -> None:
        ours = identified_by(names)
        self._identified.setdefault(ours, file)
        for others, other in self._identified.items():
            if others != ours:
                raise LogError(
                    f"{file}: its records are known by {' and '.join(ours)}, those of {other} by "
                    f"{' and '.join(others)}, so what both have would count twice; ask for the "
                    f"same columns, as in {ASK}"
                )

    def _of_text(self, file: str, piece: Headed) -> PieceRecords:
        """Reads a piece; several threads do so side by side."""
        used = columns_to_read(piece.names)
        rest = piece.names[-1] in HOLDS_SEPARATORS
        rows = Rows(*split(piece.text, piece.begin, SEPARATOR, used, rest=rest))
        rows = self._wanted(rows)
        found = _records(file, rows, piece.names, self._zone, has_header=bool(piece.heading))
        malformed = _explained(piece.text, rows.starts, found.lines)
        again = _line_that_heads_again(piece)
        return PieceRecords(
            piece.names,
            line_ends(piece.text),
            found.records,
            found.keys,
            0,
            malformed,
            again,
            headed=bool(piece.heading),
        )

    def _of_cells(self, file: str, piece: JobCells) -> PieceRecords:
        """Reads a piece; several threads do so side by side."""
        rows = self._wanted(rows_of(piece))
        found = _records(file, rows, FIELDS, self._zone, has_header=True)
        malformed = [
            MalformedLine(piece.numbers[rows.starts[row]], found.lines.reason(row))
            for row in np.flatnonzero(found.lines.malformed())[:MALFORMED_KEPT].tolist()
        ]
        every = sorted((*piece.malformed, *malformed))
        unread = len(piece.malformed)
        return PieceRecords(FIELDS, 0, found.records, found.keys, unread, every)

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
    heading = b""
    for text in texts:
        begin = 0
        if not names:
            header = header_of(text)
            names, begin = header or (canonical(fields), 0)
            check_names(file, names)
            heading = text[:begin].strip()
        yield Headed(text, begin, names, heading)


def _line_that_heads_again(piece: Headed) -> int:
    """Returns which line of a piece, counted from 1, is its file's heading once more; 0 if none."""
    text, begin, _, heading = piece
    if not heading:
        return 0
    if not begin and text.startswith(heading):
        return 1
    place = 1 + text.find(b"\n" + heading, max(begin - 1, 0))
    return 1 + text.count(b"\n", 0, place) if place else 0


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
    job, steps, part = jobs_of(lines)
    submit, eligible = lines.moments("submit", zone), lines.moments("eligible", zone)
    first, end = lines.moments("start", zone), lines.moments("end", zone)
    start = np.where(first == UNKNOWN, UNKNOWN, np.maximum(first, submit))  # of a resized job
    lines.fault(
        np.maximum(submit, eligible) == UNKNOWN, lambda _: "neither submit nor eligible is known"
    )
    lines.check("nodelist", surely_hosts, nodes_in)
    processing_time = processing_time_of(lines, first, start, end)
    back = (processing_time > 0) & (end > 0) & (start + processing_time == end + HOUR)
    if zone is UTC and back.any():
        raise LogError(
            f"{file}: job {job[back][0]} ran an hour longer than from its start to its end, so the "
            "clock of its times was set back; name their time zone, or let sacct print with TZ=UTC"
        )
    log = Log(
        source=file,
        format="sacct",
        epoch=0,
        job=job,
        release=_release(submit, eligible, start),
        start=start,
        processing_time=processing_time,
        processors=processors_of(lines),
        limit=lines.numbers(lines.first_of(LIMITS) or "", limit_in),
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
        (job, part, np.where(submit == UNKNOWN, eligible, submit), numbering_of(lines, job))
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
        return f"{reason}; ask sacct for JobName or Constraints last, for they may hold a separator"
    return reason


def _explained(text: bytes, starts: Numbers, lines: Lines) -> list[MalformedLine]:
    """Returns the first malformed lines of a text, counted from 1, and the reasons."""
    found, number, behind = [], 1, 0
    for row in np.flatnonzero(lines.malformed())[:MALFORMED_KEPT].tolist():
        start = int(starts[row])
        number, behind = number + text.count(b"\n", behind, start), start
        found.append(MalformedLine(number, lines.reason(row)))
    return found


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Yields what a function makes of each item, in their order; a few are computed ahead.

    Args:
        function: called by several threads.
        items: taken by the caller's thread.
    """
    threads = ThreadPoolExecutor(THREADS)
    try:
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(threads.submit(function, item))
            if len(ahead) > THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)
