"""Tables about a workload and the schedules of its jobs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from shapleyprio.cli.shown.tables import FittingTable, table_of
from shapleyprio.common.wording import MISSING, decimal, delay, duration, percent, whole
from shapleyprio.replay.measures.turns.counting import TOO_MANY, Turns
from shapleyprio.replay.policies import REFERENCE
from shapleyprio.replay.results import Result, jobs_of
from shapleyprio.replay.workloads.confinement import confined_share
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload, period_in_words

LEGEND = (
    "Δψ/p_tot: by how much a part of work came too early or too late, on average, against ref; for "
    "each organization its share of that: late, it got less than under ref; ahead, more"
)

OUT_OF_TURN = "out of turn"

TURNS_LEGEND = (
    "out of turn: of the moments at which the order of organizations decided what started, those "
    "at which something started that ref would not have started then"
)

RHO = "ρ"

RHO_LEGEND = (
    "ρ: time from release to end of an organization's jobs, divided by that on its own processors; "
    "the largest of all organizations; at most 1 if sharing made none worse off"
)


def legend(results: Sequence[Result]) -> str:
    """Returns what the columns mean, or why one is missing."""
    judged = f"{OUT_OF_TURN} is missing: {TOO_MANY}" if results[0].turns is None else TURNS_LEGEND
    return f"{LEGEND}; {judged}; {RHO_LEGEND}"


def largest_rho(result: Result) -> str:
    """Returns the finish-time fairness of the organization that sharing served worst."""
    rho = result.finish_times.largest
    return MISSING if rho is None else decimal(rho)


def out_of_turn(turns: Turns | None) -> str:
    """Returns the share of contested moments that were out of turn; None where none was judged."""
    share = None if turns is None else turns.share
    return MISSING if share is None else percent(share)


def announce(
    console: Console,
    log: Log,
    workload: Workload,
    *,
    jobs: str = "jobs",
) -> None:
    """Prints what tables are about.

    Args:
        console: where to.
        log: that was read.
        workload: what was taken out of it.
        jobs: what to call the workload's jobs.
    """
    horizon = "" if workload.horizon is None else f", horizon {duration(workload.horizon)}"
    console.print(
        f"{log.source}: {len(workload.job):,} {jobs} of {len(workload.organizations)} "
        f"organizations on {workload.system_processors:,} processors, released "
        f"{period_in_words(log, workload.window)}{horizon}",
        soft_wrap=True,
    )


def where_jobs_ran(log: Log, workload: Workload) -> str:
    """Says whether jobs were kept to some of the nodes, if they really were."""
    clusters = " and ".join(one.cluster for one in log.clusters)
    bays = 0 if workload.bays is None else len(workload.bays.owned)
    if clusters and bays:
        within = f" and partitions, in {bays} bays" if bays > len(log.clusters) else ""
        return f"the jobs of {clusters} were kept to their clusters{within}"
    if clusters:
        return (
            f"no job can move between {clusters}; here all jobs may run anywhere, unless "
            "--respect-partitions keeps them to their clusters"
        )
    if workload.bays is not None:
        partitions = len(workload.bays.named)
        return f"the jobs of {partitions} partitions were kept to their nodes, in {bays} bays"
    if confined := confined_share(log, workload):
        return (
            f"{percent(confined, digits=0)} of the work was in partitions that have some of the "
            "nodes only; here all jobs may run anywhere"
        )
    return ""


def organizations_table(workload: Workload, results: Sequence[Result]) -> FittingTable:
    """Makes a line for each organization: how late or ahead it was under each policy."""
    drifts = {
        result.schedule.policy: result.drifts
        for result in results
        if result.schedule.policy != REFERENCE and result.drifts is not None
    }
    jobs = jobs_of(workload)
    rows = [
        (
            name,
            whole(int(workload.owned[u])),
            whole(jobs[u]),
            *(delay(-of_policy[u]) for of_policy in drifts.values()),
        )
        for u, name in enumerate(workload.organizations)
    ]
    return table_of(("organization", "processors", "jobs", *drifts), rows)
