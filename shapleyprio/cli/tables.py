"""Tables for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shapleyprio.service.status import OrganizationStatus
from shapleyprio.store import NewPush, Push
from shapleyprio.wording import MISSING, delay, magnitude, percent, visible

WIDEST_TABLE = 10_000


def plain_table(first: str, *numbers: str) -> Table:
    """Returns a table without lines.

    Args:
        first: heading of the first column, which holds names.
        numbers: headings of columns to the right of it.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="underline")
    table.add_column(first, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def add_row(table: Table, *cells: str) -> None:
    """Adds a row of texts that may come from outside: they are shown as they are."""
    table.add_row(*(Text(visible(cell)) for cell in cells))


def make_room(console: Console, tables: Iterable[Table]) -> None:
    """Widens a console until no table is cut off; terminals wrap."""
    wide = console.options.update(max_width=WIDEST_TABLE)
    needed = (console.measure(table, options=wide).maximum for table in tables)
    console.width = max(console.width, *needed, 1)


def standings_table(
    rows: Sequence[OrganizationStatus], columns: Sequence[tuple[str, Sequence[str]]]
) -> Table:
    """Returns a table of organizations: what each gave and got, and a command's own columns.

    Scores are shown where they are not the balances.

    Args:
        rows: in the order of service.
        columns: heading and cells of each further column.
    """
    if any(row.score != row.balance for row in rows):
        columns = [("score", [magnitude(row.score) for row in rows]), *columns]
    headings = (heading for heading, _ in columns)
    table = plain_table("organization", "nodes", "earned", "got", "served", *headings)
    for row, *cells in zip(rows, *(cells for _, cells in columns), strict=True):
        table.add_row(
            row.organization,
            percent(row.share),
            _share(row.contribution_share),
            _share(row.utility_share),
            delay(row.balance_per_part),
            *map(str, cells),
        )
    return table


def _share(part: float | None) -> str:
    return MISSING if part is None else percent(part)


def plan_table(pushes: Sequence[NewPush]) -> Table | str:
    """Returns writes, made or planned: what stands there, what shall, and why."""
    if not pushes:
        return "nothing to write"
    table = Table("channel", "target", "organization", "old", "new", "state", "why")
    for push in pushes:
        state = push.state.value if isinstance(push, Push) else "planned"
        cells = (push.channel, push.target, push.organization or "nobody")
        add_row(table, *cells, str(push.old), str(push.new), state, push.reason)
    return table
