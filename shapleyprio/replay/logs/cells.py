"""Jobs whose fields were found one by one, as in CSV with its quotes and in JSON."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import islice, zip_longest
from typing import NamedTuple

import numpy as np

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.column_names import Header, columns_to_read
from shapleyprio.replay.logs.columns import column_of
from shapleyprio.replay.logs.sacct_lines import Rows
from shapleyprio.replay.workloads.log import MalformedLine

AT_ONCE = 10_000
"""Jobs that are read together."""

ONE_BY_ONE = "give the files one by one, so that a record that several have counts once"
"""What to do with files that were put together."""


class JobCells(NamedTuple):
    """Some jobs of a file.

    Attributes:
        names: of the columns, as `column_names` has them.
        jobs: the fields of each.
        numbers: the line of the file where each of them ends.
        malformed: what the file has among them that has no fields.
    """

    names: Sequence[str]
    jobs: Sequence[Sequence[str]]
    numbers: Sequence[int]
    malformed: tuple[MalformedLine, ...] = ()


def rows_of(cells: JobCells) -> Rows:
    """Returns them as columns; fields that a job lacks are empty, and too many are passed over."""
    fields = zip_longest(*cells.jobs, fillvalue="") if cells.jobs else ((),) * len(cells.names)
    return Rows(
        columns={
            name: column_of(name, texts)
            for name, texts in zip(columns_to_read(cells.names), fields, strict=False)
            if name
        },
        starts=np.arange(len(cells.jobs)),
        counts=np.array([len(job) for job in cells.jobs], dtype=np.int64),
    )


def cells_of_csv(source: str, header: Header, pieces: Iterable[bytes]) -> Iterator[JobCells]:
    """Reads text whose fields may be in quotes.

    Args:
        source: the file, for messages.
        header: its first line.
        pieces: its text, in whole lines.

    Raises:
        LogError: quotes do not end, or its first line comes again.
    """
    texts = (piece.decode(errors="replace") for piece in pieces)
    lines = (line for text in texts for line in StringIO(text, newline="\n"))
    reader = csv.reader(lines, delimiter=header.separator)
    found = ((reader.line_num, job) for job in reader if job)
    try:
        _, heading = next(found)
        while jobs := list(islice(found, AT_ONCE)):
            again = next((number for number, job in jobs if job == heading), None)
            if again is not None:
                raise LogError(f"{source}:{again}: is a second heading line; {ONE_BY_ONE}")
            yield JobCells(header.names, [job for _, job in jobs], [number for number, _ in jobs])
        yield JobCells(header.names, (), ())  # there need be no job
    except csv.Error as error:
        raise LogError(
            f"{source}:{reader.line_num}: is not CSV ({error}); is a quote before it left open?"
        ) from None
