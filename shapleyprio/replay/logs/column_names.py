"""What sacct calls its columns, and which of them a replay needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from shapleyprio.replay.errors import LogError

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
    "its processors": ("alloccpus", "ncpus", "alloctres", "reqcpus"),
    "how long it ran": ("elapsedraw", "elapsed", "end"),
}
"""What a replay needs -> the fields that have it, the best first."""

IDENTIFYING = ("the job's number", "when it was submitted")
"""By which it is known that a record is in several files."""

LABELS = {
    "account": ("account",),
    "user": ("user", "uid"),
    "group": ("group", "gid"),
    "partition": ("partition",),
    "qos": ("qos",),
    "cluster": ("cluster",),
    "nodes": ("nodelist",),
    "request": ("reqtres",),
    "features": ("constraints",),
}
"""Label of a log -> the fields that have it, the best first."""

HOLDS_SEPARATORS = frozenset({"jobname", "constraints"})
"""Fields that may have more separators, if they are the last ones."""

FREE_TEXT = frozenset({"jobname", "comment", "submitline", "workdir", "extra"})
"""Fields in which users may write what they like, line ends too."""

LIMITS = ("timelimit", "timelimitraw")

ASK = (
    "sacct --allusers --allocations --duplicates --parsable2 --format=JobIDRaw,Account,User,Group,"
    "Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,AllocCPUS,State,Timelimit,NodeList,Cluster"
)

USED = frozenset({*sum(REQUIRED.values(), ()), *sum(LABELS.values(), ()), *LIMITS, "state"})

_KNOWN = frozenset({*XDMOD_FIELDS, *USED})

SEPARATOR = "|"

FIRST_LINE = re.compile(rb"(?:[^\S\n]*\n)*([^\n]*)")
"""Finds the first line that is not blank."""


class Header(NamedTuple):
    """The line that names the columns.

    Attributes:
        names: of the columns, in small letters.
        end: where the line ends in the text.
    """

    names: Sequence[str]
    end: int


def header_of(text: bytes) -> Header | None:
    """Returns what the first line of a text names; None if that is a line of data.

    A header names at least two known columns, and none of its cells begins with a digit, as the
    job's number in a line of data does.
    """
    first = FIRST_LINE.match(text)
    begin, end = first.span(1) if first else (0, 0)
    cells = canonical(text[begin:end].decode(errors="replace").split(SEPARATOR))
    known = _KNOWN.intersection(cells)
    if len(known) >= 2 and not any(cell[:1].isdigit() for cell in cells):
        return Header(cells, end)
    return None


def canonical(names: Sequence[str]) -> list[str]:
    """Returns names in small letters, without sacct's ``%width``.

    >>> canonical(["JobID%20", "AllocCPUS"])
    ['jobid', 'alloccpus']
    """
    return [name.partition("%")[0].strip().casefold() for name in names]


def check_names(source: str, names: Sequence[str]) -> None:
    """Checks that a log has all that a replay needs.

    Raises:
        LogError: it lacks a column.
    """
    missing = [
        f"{what} ({' or '.join(alternatives)})"
        for what, alternatives in REQUIRED.items()
        if not set(alternatives).intersection(names)
    ]
    if missing:
        raise LogError(f"{source}: no column has {', nor '.join(missing)}; ask for it: {ASK}")


def identified_by(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the columns, of those that a log has, that tell its records apart."""
    return tuple(next(one for one in REQUIRED[what] if one in names) for what in IDENTIFYING)


def columns_to_read(names: Sequence[str]) -> list[str]:
    """Returns the names, "" for columns that are not needed or that are there before."""
    return [
        name if name in USED and name not in names[:place] else ""
        for place, name in enumerate(names)
    ]
