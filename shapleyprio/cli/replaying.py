"""What `shapleyprio replay` does: read the log, run the policies, show and write the results."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from shapleyprio.cli.common import print_json
from shapleyprio.cli.progress import progress_bars
from shapleyprio.cli.replay import Request
from shapleyprio.cli.reporting import publish
from shapleyprio.cli.workload_reading import Bar, complain, workload_for
from shapleyprio.cli.workloads import STDOUT
from shapleyprio.replay.log import UNKNOWN, Log
from shapleyprio.replay.policies import check_policy, run_policy
from shapleyprio.replay.results import (
    REFERENCE,
    Result,
    as_json,
    jobs_of,
    results_of,
    whole_file,
    write_schedules,
)
from shapleyprio.replay.schedule import Schedule
from shapleyprio.replay.utilities import utility_named
from shapleyprio.replay.workload import Workload

if TYPE_CHECKING:
    from shapleyprio.report import Page

MOST_FOR_REF = 12
"""Organizations for which Ref is run unasked; it takes twice as long with each one more."""

ORDERINGS = 15
"""Of Rand, as in the papers' experiments."""

WIDEST_TABLE = 10_000

LEGEND = (
    "Δψ/p_tot: by how many seconds a part of work came too early or too late, on average, against "
    "ref; for each organization its part of that: + too early, − too late"
)


def replay(request: Request) -> None:
    """Does what was asked for."""
    refuse_unknown_policies(request.policies)
    with progress_bars() as bar:
        log, workload = workload_for(
            request.workload,
            bar,
            wide=request.wide,
            backfill=request.backfill,
            placement=request.placement,
        )
        schedules = run(request, workload, bar)
    results = results_of(workload, schedules)
    publish(request.report, lambda: page_of(request, log, workload, results))
    tell(request, log, workload, results)


def refuse_unknown_policies(policies: Sequence[str]) -> None:
    """Finds out before anything is read whether every policy, and its utility, is known."""
    for policy in policies:
        check_policy(policy)
        _, colon, utility = policy.partition(":")
        if colon:
            utility_named(utility)


def run(request: Request, workload: Workload, bar: Bar) -> list[Schedule]:
    """Runs the policies, each once."""
    policies = list(dict.fromkeys(request.policies)) or usual_policies(workload)
    if "rand" not in policies and (request.orderings or request.epsilon) is not None:
        raise click.UsageError("the number of orderings is for rand; add --policy rand")
    orderings = orderings_of(request, len(workload.organizations))
    return [
        run_policy(
            workload,
            policy,
            seed=request.workload.seed,
            orderings=orderings,
            cores=request.cores,
            progress=bar(policy, workload.window.length),
        )
        for policy in policies
    ]


def usual_policies(workload: Workload) -> list[str]:
    """What is run if no policy is named."""
    ref_or_rand = REFERENCE if len(workload.organizations) <= MOST_FOR_REF else "rand"
    recorded = ["recorded"] if bool((workload.start != UNKNOWN).all()) else []
    return [ref_or_rand, "directcontr", "fairshare", *recorded]


def orderings_of(request: Request, k: int) -> int:
    """As asked for, or N = ⌈k²/ε² · ln(k/(1 − λ))⌉ (SPAA 2013, Theorem 5.6), or the usual."""
    if request.epsilon is None:
        return request.orderings or ORDERINGS
    assert request.confidence is not None
    return math.ceil((k / request.epsilon) ** 2 * math.log(k / (1 - request.confidence)))


def tell(request: Request, log: Log, workload: Workload, results: Sequence[Result]) -> None:
    """Writes what is to be written, and shows the rest."""
    if request.schedule_file is not None:
        with whole_file(request.schedule_file) as file:
            write_schedules(file, workload, [result.schedule for result in results])
    if request.json_file == STDOUT:
        print_json(as_json(log, workload, results))
    elif request.json_file is not None:
        with whole_file(request.json_file) as file:
            json.dump(as_json(log, workload, results), file, indent=2, ensure_ascii=False)
            file.write("\n")
    complain(log)
    if request.json_file != STDOUT:
        render(Console(highlight=False), log, workload, results)


def page_of(request: Request, log: Log, workload: Workload, results: Sequence[Result]) -> Page:
    """The report."""
    from shapleyprio.report.replay_page import replay_page

    options = {"seed": str(request.workload.seed)}
    if "rand" in [result.schedule.policy for result in results]:
        options["random orderings"] = str(orderings_of(request, len(workload.organizations)))
    return replay_page(log, workload, results, options=options, command=request.report.command)


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
    wide = console.options.update(max_width=WIDEST_TABLE)
    needed = (console.measure(table, options=wide).maximum for table in tables)
    console.width = max(console.width, *needed)  # nothing is cut off; terminals wrap
    start = workload.window.start - int(log.release.min())
    console.print(
        f"{log.source}: {len(workload.job):,} {jobs} of {len(workload.organizations)} "
        f"organizations on {workload.system_processors:,} processors, released in "
        f"{workload.window.length:,} s from second {start:,} on",
        markup=False,
        soft_wrap=True,
    )


def render(console: Console, log: Log, workload: Workload, results: Sequence[Result]) -> None:
    """Prints the tables, and what was left out."""
    tables = [policies_table(results), organizations_table(workload, results)]
    announce(console, log, workload, tables)
    for table in tables:
        console.print()
        console.print(table)
    if results[0].unfairness is not None:
        console.print()
        console.print(LEGEND, style="dim", soft_wrap=True)
    if workload.left_out:
        reasons = (f"{count:,} {why.replace('_', ' ')}" for why, count in workload.left_out.items())
        console.print()
        console.print(f"left out: {', '.join(reasons)}", markup=False, soft_wrap=True)


def policies_table(results: Sequence[Result]) -> Table:
    """A line for each policy."""
    table = plain_table("policy")
    against_ref = results[0].unfairness is not None
    headings = ("mean wait", "95 % wait", "slowdown", "utilization", "seconds")
    for heading in ("Δψ/p_tot", *headings) if against_ref else headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        measures = result.measures
        table.add_row(
            result.schedule.policy,
            *([] if result.unfairness is None else [f"{short(result.unfairness)} s"]),
            f"{short(measures.mean_wait)} s",
            f"{measures.wait_95th_percentile:,} s",
            short(measures.mean_bounded_slowdown),
            f"{float(measures.utilization):.1%}",
            f"{result.schedule.seconds:.3g}",
        )
    return table


def organizations_table(workload: Workload, results: Sequence[Result]) -> Table:
    """A line for each organization: by how much its work came too early under each policy."""
    table = plain_table("organization")
    drifts = {
        result.schedule.policy: result.drifts
        for result in results
        if result.schedule.policy != REFERENCE and result.drifts is not None
    }
    for heading in ("processors", "jobs", *drifts):
        table.add_column(heading, justify="right", no_wrap=True)
    jobs = jobs_of(workload)
    for u, name in enumerate(workload.organizations):
        table.add_row(
            name,
            f"{int(workload.owned[u]):,}",
            f"{jobs[u]:,}",
            *(f"{short(of_policy[u], sign='+')} s" for of_policy in drifts.values()),
        )
    return table


def plain_table(first: str) -> Table:
    """A table without lines, with its first column."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="underline")
    table.add_column(first, no_wrap=True)
    return table


def short(number: Fraction | float, sign: str = "") -> str:
    """A number for eyes, with a few digits, negative ones with a true minus sign."""
    value = float(number)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:{sign}z,.{digits}f}".replace("-", "−")
