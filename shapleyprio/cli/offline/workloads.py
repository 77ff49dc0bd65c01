"""The workload that options describe, as it is read, and tables about it and its schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console

from shapleyprio.cli.options.parameters import WorkloadParameters
from shapleyprio.cli.shown.progress import ProgressBar
from shapleyprio.cli.shown.tables import FittingTable, table_of
from shapleyprio.common.wording import MISSING, decimal, delay, duration, listed, percent, whole
from shapleyprio.config import load_config
from shapleyprio.config.segments import weights_of
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.clusters import (
    claims_of_files,
    consortium_named,
    consortium_of_claims,
    dealt_to_clusters,
)
from shapleyprio.replay.logs.column_names import XDMOD_FIELDS
from shapleyprio.replay.logs.files import files_of
from shapleyprio.replay.logs.layout_files import with_layout
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.measures.turns import TOO_MANY, Turns
from shapleyprio.replay.policies import REFERENCE
from shapleyprio.replay.results import Result, jobs_of
from shapleyprio.replay.workloads.choices import (
    ALL_CLUSTERS,
    DEFAULT_BACKFILL,
    DEFAULT_SHARES,
    DEFAULT_TIME_ZONE,
    DEFAULT_WIDE,
    Backfill,
    Wide,
)
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.doubts import guesses_sizes, refuse_nonsense, refuse_unknown
from shapleyprio.replay.workloads.layout import ASK_NODES
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.nodes import confined_share
from shapleyprio.replay.workloads.workload import (
    Consortium,
    Window,
    Workload,
    period_in_words,
    whole_log,
    workload_of,
)

MALFORMED_SHOWN = 5

GUESSED = (
    "does not say how many processors nodes have: each counts as the most that jobs held there at "
    f"one time; give --nodes FILE, which `{ASK_NODES}` prints"
)

FORGED = (
    "users can write lines there that read like records; let sacct print its text without, or JSON"
)

Confine = Callable[[Log, Consortium, Workload], Workload]
"""Keeps the jobs of a log's workload to some of its processors."""


def workload_for(
    parameters: WorkloadParameters,
    bar: ProgressBar,
    *,
    wide: Wide = DEFAULT_WIDE,
    backfill: Backfill = DEFAULT_BACKFILL,
    horizon: int | None = None,
    confine: Confine | None = None,
) -> tuple[Log, Workload]:
    """Reads the log and takes the workload out of it.

    Args:
        parameters: which jobs.
        bar: makes a bar that shows how far reading is.
        wide: what becomes of jobs of several processors.
        backfill: what may pass a rigid job that does not fit.
        horizon: age in seconds from which a part gains no more worth; None for never.
        confine: keeps jobs to some of the processors; None to let all run anywhere.

    Raises:
        ReplayError, ConfigError: it is not available.
        click.UsageError: the parameters do not fit the log.
    """
    log = read(parameters, bar)
    claims = claims_of_files(parameters.organizations, log) if parameters.organizations else []
    consortium = consortium_of_claims(claims) if claims else consortium_for(parameters, log)
    refuse_unknown(claims, consortium, parameters.allow)
    window = window_of(parameters, log)
    workload = workload_of(
        log,
        consortium,
        window=window,
        wide=wide,
        backfill=backfill,
        horizon=horizon,
    )
    refuse_nonsense(claims, consortium, workload, parameters.allow)
    if guesses_sizes(claims):
        click.echo(f"shapleyprio: {log.source}: {GUESSED}", err=True)
    if log.free_text:
        forged = f"{log.source}: {listed(log.free_text)}: {FORGED}"
        click.echo(f"shapleyprio: {forged}", err=True)
    for line in _counted_otherwise(parameters, log):
        click.echo(f"shapleyprio: {line}", err=True)
    return log, workload if confine is None else confine(log, consortium, workload)


def _counted_otherwise(parameters: WorkloadParameters, log: Log) -> Iterator[str]:
    """Yields where the daemon counts something else than CPUs, as a log of sacct does."""
    for one in (log.clusters or (log,)) if log.format == "sacct" else ():
        files = parameters.organizations
        if file := files.get(one.cluster, files.get(ALL_CLUSTERS)):
            usual, of_partitions = weights_of(load_config(file), one.cluster)
            if others := sorted({usual, *of_partitions.values()} - {"cpus"}):
                yield (
                    f"{one.source}: counts CPUs, where {file} has the daemon count "
                    f"{listed(others)}; give what `shapleyprio export --live` writes, which does so"
                )


def complain(log: Log) -> None:
    """Prints the first malformed lines on standard error."""
    for line in log.malformed[:MALFORMED_SHOWN]:
        click.echo(f"shapleyprio: {line.file or log.source}:{line.number}: {line.reason}", err=True)


def read(parameters: WorkloadParameters, bar: ProgressBar) -> Log:
    """Reads the log."""
    files = [Path(file) for file in files_of(parameters.log)]
    sizes = [file.stat().st_size for file in files if file.is_file()]
    log = read_log(
        parameters.log,
        format=parameters.log_format,
        fields=XDMOD_FIELDS if parameters.fields is None else split_fields(parameters.fields),
        time_zone=parameters.time_zone or DEFAULT_TIME_ZONE,
        clusters=parameters.clusters,
        strict=parameters.strict,
        since=parameters.since,
        until=parameters.until,
        progress=bar("reading", sum(sizes) if len(sizes) == len(files) else None),
    )
    for option, value, wanted in (
        ("--fields", parameters.fields, ("sacct",)),
        ("--time-zone", parameters.time_zone, ("sacct",)),
        ("--cluster", parameters.clusters or None, ("sacct", "store", "export")),
    ):
        if value is not None and log.format not in wanted:
            raise click.UsageError(
                f"{option} goes with the format {' or '.join(wanted)}, and {log.source} is read "
                f"as {log.format}"
            )
    complain(log)
    if not len(log.release) and (parameters.since or parameters.until):
        raise LogError(f"{log.source}: no job was released then; see --since and --until")
    whole_log(log)  # refuses one without jobs
    return with_layout(log, parameters.nodes, parameters.accounts)


def split_fields(text: str) -> tuple[str, ...]:
    """Returns the names in a list with commas."""
    return tuple(field.strip() for field in text.split(","))


def consortium_for(parameters: WorkloadParameters, log: Log) -> Consortium:
    """Returns the organizations with their jobs and processors, where no files name them."""
    if parameters.deal_users is None:
        return consortium_named(log, log.organizations, log.parents)
    dealt = deal(
        log,
        parameters.deal_users,
        shares=parameters.processor_shares or DEFAULT_SHARES,
        processors=parameters.processors,
        seed=parameters.seed,
    )
    return dealt_to_clusters(log, dealt) if log.clusters else dealt


def window_of(parameters: WorkloadParameters, log: Log) -> Window:
    """Returns the window in the log's own seconds."""
    whole = whole_log(log)
    if parameters.window is None:
        return whole
    start, length = parameters.window
    return Window(start=whole.start + start, length=length)


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
