"""The table of points: a small file from which slurmctld's Lua script gives new jobs their points.

The daemon writes it, ``slurm_conf/shapleyprio_points.lua`` reads it, and
``slurm_conf/README.md`` describes its format to administrators.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.common.errors import OutputError
from shapleyprio.common.output import whole_file
from shapleyprio.slurm.channels.jobs import SiteFactor

CHANNEL = SiteFactor.name
"""The channel whose values the table gives: a job_submit script can set no other but nice."""

LARGEST_TABLE = 2**20
"""Bytes; the script reads no more of it. Some 40,000 accounts fit in."""

PERMISSIONS = 0o644
"""Whoever slurmctld runs as reads it; it says no more than `sprio` does."""

_HEADER = re.compile(
    r"shapleyprio-points 1 written=([0-9]{1,12}) lasts=([0-9]{1,9}) accounts=([0-9]{1,9})"
)
_ROW = re.compile(r"([^\t]+)\t(-?[0-9]{1,10})")


class TableError(Exception):
    """There is no table, or it is not as it must be; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsTable:
    """What the table says.

    Attributes:
        written: when, seconds since the epoch by the clock of slurmctld's host.
        lasts: seconds after which it counts no more.
        points: account -> site factor of its new jobs. Others get none.
    """

    written: int
    lasts: int
    points: Mapping[str, int]

    def text(self) -> str:
        """Returns the content of the file.

        >>> table = PointsTable(written=1700000000, lasts=900, points={"physics": 200000})
        >>> print(table.text().expandtabs(), end="")
        shapleyprio-points 1 written=1700000000 lasts=900 accounts=1
        physics 200000
        end 1
        """
        rows = {name: points for name, points in self.points.items() if name.isprintable()}
        head = f"shapleyprio-points 1 written={self.written} lasts={self.lasts}"
        lines = [f"{name}\t{points}\n" for name, points in rows.items()]
        return "".join([f"{head} accounts={len(rows)}\n", *lines, f"end {len(rows)}\n"])


def write_table(path: Path, table: PointsTable) -> None:
    """Puts the table in the place of the one before, as a whole.

    Raises:
        OutputError: it cannot be written, or would be too long; the one before stays.
    """
    text = table.text()
    if len(text.encode()) > LARGEST_TABLE:
        raise OutputError(
            f"{path}: {len(table.points):,} accounts take more than {LARGEST_TABLE:,} bytes; "
            "leave push.table out"
        )
    with whole_file(path) as file:
        os.fchmod(file.fileno(), PERMISSIONS)
        file.write(text)


def read_table(path: Path) -> PointsTable:
    """Reads the table.

    Raises:
        TableError: there is none, or it is not as it must be.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_TABLE + 1)
    except OSError as error:
        raise TableError(f"cannot be read ({error.strerror})") from None
    if len(content) > LARGEST_TABLE:
        raise TableError(f"is longer than {LARGEST_TABLE:,} bytes")
    lines = content.decode("utf-8", "replace").split("\n")
    header = _HEADER.fullmatch(lines[0])
    if header is None:
        raise TableError("does not begin like a table of version 1")
    written, lasts, accounts = map(int, header.groups())
    if lines[-2:] != [f"end {accounts}", ""] or len(lines) != accounts + 3:
        raise TableError(f"is cut short, or does not list the {accounts} accounts it announces")
    rows = [_ROW.fullmatch(line) for line in lines[1:-2]]
    if None in rows:
        raise TableError(f"line {rows.index(None) + 2} is not an account with its points")
    points = {row[1]: int(row[2]) for row in rows if row is not None}
    return PointsTable(written=written, lasts=lasts, points=points)


def remove_table(path: Path) -> None:
    """Removes the table, so that new jobs get no points any more.

    Raises:
        OutputError: it is still there.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be removed ({error.strerror}), so new jobs still get points from it; "
            "remove it as root and try again"
        ) from None
