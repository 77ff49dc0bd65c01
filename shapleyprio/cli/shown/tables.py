"""Tables for terminals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from shapleyprio.common.wording import (
    MISSING,
    clock_time,
    duration,
    magnitude,
    percent,
    signed_duration,
    visible,
    whole,
)
from shapleyprio.daemon.accounting.moves import called
from shapleyprio.daemon.answering.freshness import Steering, sentences_on_guarantees
from shapleyprio.daemon.answering.pool_status import PoolStatus
from shapleyprio.daemon.answering.status import OrganizationStatus
from shapleyprio.store import ExceptionRow, NewPush, PauseRow, Push, UserAfterEnd

WIDEST_TABLE = 10_000

GAP = 2
"""Blanks between columns."""

FIRST_TO_LEAVE = 3
"""Columns of every table of organizations that leave before a command's own."""


class Cells(Enum):
    """Kinds of cells of a column, and how they become narrow.

    Attributes:
        NUMBER: never cut, to the right; times, too.
        NAME: shortened if it must be.
        TEXT: wraps at the end of a word.
    """

    NUMBER = "number"
    NAME = "name"
    TEXT = "text"


LONGEST_WORD = 36
"""Cells of a word that is not broken, such as a key of the configuration; a path may be longer."""

NARROWEST = {Cells.NAME: 12, Cells.TEXT: 20}
"""Cells that a column keeps where there is little room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingColumn:
    """One column of a table.

    Attributes:
        heading: above it.
        cells: texts that may come from outside, row by row.
        kind: what they are.
        leaves: when it is left out where there is little room, 1 first; None for never.
        style: of the cells, row by row; empty for none.
    """

    heading: str
    cells: Sequence[str]
    kind: Cells = Cells.NUMBER
    leaves: int | None = None
    style: Sequence[str] = ()

    @property
    def most(self) -> int:
        """Width with which nothing is shortened or wrapped."""
        return max(cell_len(visible(text)) for text in (self.heading, *self.cells))

    @property
    def least(self) -> int:
        """Width that it needs."""
        most = self.most
        words = (
            [word for text in self.cells for word in visible(text).split()]
            if self.kind is Cells.TEXT
            else []
        )
        longest = max((cell_len(word) for word in words), default=0)
        narrowest = min(
            most,
            max(
                NARROWEST.get(self.kind, most),
                cell_len(self.heading),
                min(longest, LONGEST_WORD),
            ),
        )
        if self.kind is not Cells.NAME or narrowest == most:
            return narrowest
        names = {visible(text) for text in self.cells}
        # names that begin alike must not look alike once they are shortened
        return next(
            width
            for width in range(narrowest, most + 1)
            if len({set_cell_size(name, width - 1) for name in names}) == len(names)
            or width == most
        )

    def shown(self, row: int) -> Text:
        """Returns a cell as it is shown."""
        return Text(visible(self.cells[row]), style=self.style[row] if self.style else "")


class FittingTable:
    """A table that shows as many of its columns as there is room for, and cuts no number.

    Where not even the columns that never leave have room, every cell has a line.

    Args:
        columns: from left to right.
        empty: said if there are no rows.
        spaced: leave a line between rows.
    """

    def __init__(
        self,
        columns: Sequence[FittingColumn],
        *,
        empty: str = "nothing to show",
        spaced: bool = False,
    ) -> None:
        self._columns = columns
        self._rows = len(columns[0].cells)
        self._empty = empty
        self._spaced = spaced

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yields what rich prints."""
        if not self._rows:
            yield Text(self._empty)
            return
        kept = list(self._columns)
        while sum(column.least + GAP for column in kept) - GAP > options.max_width:
            leaving = [column for column in kept if column.leaves is not None]
            if not leaving:
                yield from self._lines()
                return
            kept.remove(min(leaving, key=lambda column: column.leaves or 0))
        yield self._table(kept, options.max_width)
        if len(kept) < len(self._columns):
            names = ", ".join(column.heading for column in self._columns if column not in kept)
            yield Text(f"no room for: {names}; wider terminals and --json show all", style="dim")

    def _table(self, columns: Sequence[FittingColumn], room: int) -> Table:
        table = Table(
            box=None,
            padding=(0, GAP, 1 if self._spaced else 0, 0),
            pad_edge=False,
            header_style="underline",
        )
        for column, width in zip(columns, _widths(columns, room), strict=True):
            number, text = column.kind is Cells.NUMBER, column.kind is Cells.TEXT
            table.add_column(
                column.heading,
                width=width,
                no_wrap=not text,
                justify="right" if number else "left",
                overflow="fold" if text else "ellipsis",
            )
        for row in range(self._rows):
            table.add_row(*(column.shown(row) for column in columns))
        return table

    def _lines(self) -> Iterator[Text]:
        for row in range(self._rows):
            for number, column in enumerate(self._columns):
                indent = "  " if number else ""
                yield Text.assemble(f"{indent}{column.heading}: ", column.shown(row))


def _widths(columns: Sequence[FittingColumn], room: int) -> list[int]:
    """Shares out what the columns do not need: names become whole first, then texts."""
    widths = [column.least for column in columns]
    room -= sum(widths) + GAP * (len(columns) - 1)
    for kind in (Cells.NAME, Cells.TEXT):
        wanting = [n for n, column in enumerate(columns) if column.kind is kind]
        wanting.sort(key=lambda n: columns[n].most)
        for done, n in enumerate(wanting):
            more = min(columns[n].most - widths[n], room // (len(wanting) - done))
            widths[n] += more
            room -= more
    return widths


def standard_output(*, highlight: bool = True) -> Console:
    """Returns the console of standard output; a pipe or a file has room for everything.

    Args:
        highlight: let rich color numbers in sentences.
    """
    console = Console(highlight=highlight)
    if not console.is_terminal:
        console.width = WIDEST_TABLE
    return console


def table_of(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    kept: Collection[str] = (),
    texts: Collection[str] = (),
) -> FittingTable:
    """Returns a table whose first column has names, and the others numbers.

    Where there is little room, the last columns leave first.

    Args:
        headings: of the columns.
        rows: cells for each.
        kept: headings of columns that never leave.
        texts: headings of columns with sentences or lists of names, which never leave either.
    """
    columns = []
    for number, heading in enumerate(headings):
        kind = Cells.TEXT if heading in texts else Cells.NUMBER if number else Cells.NAME
        stays = kind is not Cells.NUMBER or heading in kept
        columns.append(
            FittingColumn(
                heading=heading,
                cells=[row[number] for row in rows],
                kind=kind,
                leaves=None if stays else len(headings) - number,
            )
        )
    return FittingTable(columns)


def standings_table(
    rows: Sequence[OrganizationStatus],
    columns: Sequence[tuple[str, Sequence[str]]],
    pool: PoolStatus | None = None,
    *,
    balanced: bool = True,
) -> FittingTable:
    """Returns a table of organizations: what each gave and got, and a command's own columns.

    Scores are shown where they are not the balances, those of a pool as the balances in it.

    Args:
        rows: in the order of service.
        columns: heading and cells of each further column, the least important last.
        pool: by which they are ordered, if it is more than the cluster.
        balanced: whether contributions are those of the chosen rule; if not, what rests on them is
            left open, lest it jumps once they are.
    """
    if not balanced:
        pass
    elif pool is not None and pool.spans_others:
        in_pool = [signed_duration(pool.balance_per_part(row.organization)) for row in rows]
        columns = [("in the pool", in_pool), *columns]
    elif any(row.score != row.balance for row in rows):
        columns = [("score", [magnitude(row.score) for row in rows]), *columns]
    if any(row.parent for row in rows):
        columns = [("part of", [row.parent or "" for row in rows]), *columns]
    own = [
        FittingColumn(heading=heading, cells=cells, leaves=FIRST_TO_LEAVE + len(columns) - number)
        for number, (heading, cells) in enumerate(columns)
    ]
    return FittingTable(
        [
            FittingColumn(
                heading="organization", cells=[row.organization for row in rows], kind=Cells.NAME
            ),
            FittingColumn(heading="nodes", cells=[percent(row.share) for row in rows], leaves=1),
            FittingColumn(
                heading="earned",
                cells=[_share(row.contribution_share if balanced else None) for row in rows],
                leaves=2,
            ),
            FittingColumn(
                heading="got", cells=[_share(row.utility_share) for row in rows], leaves=3
            ),
            FittingColumn(
                heading="balance",
                cells=[signed_duration(row.balance_per_part if balanced else None) for row in rows],
            ),
            *own,
        ]
    )


def _share(part: float | None) -> str:
    return MISSING if part is None else percent(part)


def plan_table(
    pushes: Sequence[NewPush], *, dated: bool = False, empty: str = "nothing to write"
) -> FittingTable:
    """Returns writes, made or planned: the value before, the one after, and why.

    One that puts back what was found is for no organization.

    Args:
        pushes: in their order.
        dated: show when they were made.
        empty: said if there are none.
    """
    states = [push.state.value if isinstance(push, Push) else "planned" for push in pushes]
    times = FittingColumn(heading="time", cells=[clock_time(push.at) for push in pushes], leaves=3)
    return FittingTable(
        [
            *([times] if dated else []),
            FittingColumn(
                heading="channel",
                cells=[push.channel for push in pushes],
                kind=Cells.NAME,
                leaves=1,
            ),
            FittingColumn(
                heading="target", cells=[push.target for push in pushes], kind=Cells.NAME
            ),
            FittingColumn(
                heading="organization",
                cells=[push.organization or MISSING for push in pushes],
                kind=Cells.NAME,
                leaves=4,
            ),
            FittingColumn(heading="old", cells=[str(push.old) for push in pushes], leaves=6),
            FittingColumn(heading="new", cells=[str(push.new) for push in pushes]),
            FittingColumn(heading="state", cells=states, kind=Cells.NAME, leaves=5),
            FittingColumn(
                heading="why", cells=[push.reason for push in pushes], kind=Cells.TEXT, leaves=2
            ),
        ],
        empty=empty,
    )


def sentences_on_steering(steering: Steering, *, of_status: bool = False) -> list[str]:
    """Says since when no daemon steers and that the rest is out of date; empty if it is not.

    Args:
        steering: the facts.
        of_status: whether to say that no daemon runs also while its last cycle still holds.
    """
    paused = [] if steering.pause is None else sentences_on_pause(steering.pause)
    if of_status:
        ordered = [row for row in steering.exceptions if not row.by_guarantee]
        paused += [on_exception(f"Job {row.label}", row) for row in ordered]
        paused += sentences_on_guarantees(steering.exceptions)
    if steering.cycle_ended is None:
        return paused
    since = f"since {clock_time(steering.cycle_ended)} ({duration(steering.age)} ago)"
    sentences = paused
    if steering.nobody_since is not None and (steering.is_stale or of_status):
        sentences.append(f"No daemon has run {since}.")
    elif steering.is_stale and steering.rolled_back_at is None:
        sentences.append(f"No cycle has succeeded {since}, though a daemon runs.")
    if steering.rolled_back_at is not None:
        at = clock_time(steering.rolled_back_at)
        sentences.append(f"Priorities were rolled back at {at}.")
    if steering.is_stale:
        sentences.append("What follows may be out of date.")
    return sentences


def sentences_on_pause(pause: PauseRow) -> list[str]:
    """Says who paused, since when and why, and the value in Slurm."""
    stands = (
        "Jobs keep the points that they had then, and new ones get none"
        if pause.keep
        else "Jobs have the priorities that they would have without shapleyprio"
    )
    reason = pause.reason.rstrip(".")
    return [
        f"Steering is paused since {clock_time(pause.since)} by {pause.user}: {reason}.",
        f"{stands}; work counts as ever.",
    ]


def on_exception(job: str, row: ExceptionRow) -> str:
    """Says which job goes first, since when, and who ordered it and why."""
    if row.by_guarantee and row.until is not None:
        return (
            f"{job} goes before {row.others} since {clock_time(row.since)}, by {row.user}, and is "
            f"to start until {clock_time(row.until)}: {row.reason}."
        )
    until = "" if row.until is None else f" until {clock_time(row.until)}"
    return (
        f"{job} goes before {row.others} since {clock_time(row.since)}{until}, as {row.user} has "
        f"ordered: {row.reason.rstrip('.')}."
    )


MOST_USERS = 10
"""So many are named in an audit."""


def after_end_table(users: Sequence[UserAfterEnd]) -> FittingTable:
    """Makes a line for each user."""
    return FittingTable(
        [
            FittingColumn(heading="user", cells=[one.user for one in users], kind=Cells.NAME),
            FittingColumn(
                heading="organization",
                cells=[called(one.organization) for one in users],
                kind=Cells.NAME,
            ),
            FittingColumn(heading="jobs", cells=[whole(one.jobs) for one in users]),
            FittingColumn(
                heading="processor-seconds", cells=[whole(one.processor_seconds) for one in users]
            ),
            FittingColumn(heading="last", cells=[clock_time(one.last) for one in users], leaves=1),
        ],
        empty="no work after the end of a job on record",
    )
