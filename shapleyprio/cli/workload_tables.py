"""Tables about a workload and the schedules of its jobs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from shapleyprio.cli.tables import make_room, plain_table
from shapleyprio.replay.log import Log
from shapleyprio.replay.policies import REFERENCE
from shapleyprio.replay.results import Result, jobs_of
from shapleyprio.replay.workload import Workload, period_in_words
from shapleyprio.wording import decimal, whole

LEGEND = (
    "Δψ/p_tot: by how many seconds a part of work came too early or too late, on average, against "
    "ref; for each organization its part of that: + too early, − too late"
)


def announce(
    console: Console,
    log: Log,
    workload: Workload,
    tables: Sequence[Table],
    *,
    jobs: str = "jobs",
) -> None:
    """Makes room for tables, and prints what they are about.

    Args:
        console: where they will be printed.
        log: that was read.
        workload: what was taken out of it.
        tables: to come.
        jobs: what to call the workload's jobs.
    """
    make_room(console, tables)
    console.print(
        f"{log.source}: {len(workload.job):,} {jobs} of {len(workload.organizations)} "
        f"organizations on {workload.system_processors:,} processors, released "
        f"{period_in_words(log, workload.window)}",
        markup=False,
        soft_wrap=True,
    )


def organizations_table(workload: Workload, results: Sequence[Result]) -> Table:
    """Makes a line for each organization: how much too early its work came under each policy."""
    drifts = {
        result.schedule.policy: result.drifts
        for result in results
        if result.schedule.policy != REFERENCE and result.drifts is not None
    }
    table = plain_table("organization", "processors", "jobs", *drifts)
    jobs = jobs_of(workload)
    for u, name in enumerate(workload.organizations):
        table.add_row(
            name,
            whole(int(workload.owned[u])),
            whole(jobs[u]),
            *(f"{decimal(of_policy[u], sign='+')} s" for of_policy in drifts.values()),
        )
    return table
