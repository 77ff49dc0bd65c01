"""How long jobs wait, in a table."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.cli.shown.tables import Cells, FittingColumn, FittingTable
from shapleyprio.common.wording import MISSING, duration
from shapleyprio.daemon.answering.waits import WaitsInPartition


def waits_table(rows: Sequence[WaitsInPartition]) -> FittingTable:
    """Returns a line for each organization and partition."""

    def seconds(values: Sequence[int | None]) -> list[str]:
        return [MISSING if value is None else duration(value) for value in values]

    names = {
        "organization": [row.organization for row in rows],
        "partition": [row.partition or MISSING for row in rows],
    }
    return FittingTable(
        [
            *(
                FittingColumn(heading=heading, cells=cells, kind=Cells.NAME)
                for heading, cells in names.items()
            ),
            FittingColumn(heading="started", cells=[str(row.started) for row in rows], leaves=1),
            FittingColumn(heading="median wait", cells=seconds([row.median for row in rows])),
            FittingColumn(
                heading="90 % within", cells=seconds([row.ninth_decile for row in rows]), leaves=3
            ),
            FittingColumn(
                heading="longest", cells=seconds([row.longest for row in rows]), leaves=2
            ),
            FittingColumn(heading="waiting", cells=[str(row.pending) for row in rows], leaves=4),
            FittingColumn(heading="oldest for", cells=seconds([row.oldest for row in rows])),
        ],
        empty="no job started in the last day, and none that could start waits",
    )
