"""Tables of organizations, of writes, and of users."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.cli.shown.tables import Cells, FittingColumn, FittingTable
from shapleyprio.common.wording import (
    MISSING,
    clock_time,
    magnitude,
    percent,
    signed_duration,
    whole,
)
from shapleyprio.daemon.accounting.moves import called
from shapleyprio.daemon.answering.pool_status import PoolStatus
from shapleyprio.daemon.answering.status import OrganizationStatus
from shapleyprio.store import NewPush, Push, UserAfterEnd

FIRST_TO_LEAVE = 3
"""Columns of every table of organizations that leave before a command's own."""


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
        FittingColumn(heading, cells, leaves=FIRST_TO_LEAVE + len(columns) - number)
        for number, (heading, cells) in enumerate(columns)
    ]
    return FittingTable(
        [
            FittingColumn("organization", [row.organization for row in rows], Cells.NAME),
            FittingColumn("nodes", [percent(row.share) for row in rows], leaves=1),
            FittingColumn(
                "earned",
                [_share(row.contribution_share if balanced else None) for row in rows],
                leaves=2,
            ),
            FittingColumn("got", [_share(row.utility_share) for row in rows], leaves=3),
            FittingColumn(
                "balance",
                [signed_duration(row.balance_per_part if balanced else None) for row in rows],
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
    times = FittingColumn("time", [clock_time(push.at) for push in pushes], leaves=3)
    return FittingTable(
        [
            *([times] if dated else []),
            FittingColumn("channel", [push.channel for push in pushes], Cells.NAME, leaves=1),
            FittingColumn("target", [push.target for push in pushes], Cells.NAME),
            FittingColumn(
                "organization",
                [push.organization or MISSING for push in pushes],
                Cells.NAME,
                leaves=4,
            ),
            FittingColumn("old", [str(push.old) for push in pushes], leaves=6),
            FittingColumn("new", [str(push.new) for push in pushes]),
            FittingColumn("state", states, Cells.NAME, leaves=5),
            FittingColumn("why", [push.reason for push in pushes], Cells.TEXT, leaves=2),
        ],
        empty=empty,
    )


MOST_USERS = 10
"""So many are named in an audit."""


def after_end_table(users: Sequence[UserAfterEnd]) -> FittingTable:
    """Makes a line for each user."""
    return FittingTable(
        [
            FittingColumn("user", [one.user for one in users], Cells.NAME),
            FittingColumn("organization", [called(one.organization) for one in users], Cells.NAME),
            FittingColumn("jobs", [whole(one.jobs) for one in users]),
            FittingColumn("processor-seconds", [whole(one.processor_seconds) for one in users]),
            FittingColumn("last", [clock_time(one.last) for one in users], leaves=1),
        ],
        empty="no work after the end of a job on record",
    )
