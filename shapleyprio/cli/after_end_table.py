"""The table of users whose jobs went on after their ends."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.cli.tables import Cells, FittingColumn, FittingTable
from shapleyprio.service.moves import called
from shapleyprio.store import UserAfterEnd
from shapleyprio.wording import clock_time, whole

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
