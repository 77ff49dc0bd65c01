"""Tables for terminals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from shapleyprio.common.wording import visible

WIDEST_TABLE = 10_000

GAP = 2
"""Blanks between columns."""


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


@dataclass(frozen=True, slots=True)
class FittingColumn:
    """One column of a table.

    Attributes:
        heading: above it.
        cells: texts that may come from outside, row by row.
        kind: what they are.
        leaves: when it is left out where there is little room, 1 first; None for never.
    """

    heading: str
    cells: Sequence[str]
    kind: Cells = Cells.NUMBER
    leaves: int | None = None

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
        return Text(visible(self.cells[row]))


class FittingTable:
    """A table that shows as many of its columns as there is room for, and cuts no number.

    Where not even the columns that never leave have room, every cell has a line.

    Args:
        columns: from left to right.
        empty: said if there are no rows.
    """

    def __init__(self, columns: Sequence[FittingColumn], *, empty: str = "nothing to show") -> None:
        self._columns = columns
        self._rows = len(columns[0].cells)
        self._empty = empty

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
        table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="underline")
        for column, width in zip(columns, _widths(columns, room), strict=True):
            number, text = column.kind is Cells.NUMBER, column.kind is Cells.TEXT
            table.add_column(
                Text(visible(column.heading)),
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
    console = Console(highlight=highlight, markup=False, emoji=False)
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
                heading,
                [row[number] for row in rows],
                kind,
                leaves=None if stays else len(headings) - number,
            )
        )
    return FittingTable(columns)
