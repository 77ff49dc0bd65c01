"""The work of `shapleyprio replay`: read the log, run the policies, show and write results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from shapleyprio.cli.offline.workloads import (
    OUT_OF_TURN,
    RHO,
    RHO_LEGEND,
    announce,
    largest_rho,
    legend,
    organizations_table,
    out_of_turn,
    where_jobs_ran,
    workload_for,
)
from shapleyprio.cli.options.json_output import write_json
from shapleyprio.cli.options.parameters import ReplayParameters
from shapleyprio.cli.options.reporting import publish
from shapleyprio.cli.shown.progress import ProgressBar, progress_bars
from shapleyprio.cli.shown.tables import FittingTable, standard_output, table_of
from shapleyprio.common.output import whole_file
from shapleyprio.common.wording import decimal, duration, percent
from shapleyprio.replay.engine.limits import check_orderings
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.policies import (
    COMPARED,
    MOST_FOR_REF,
    ORDERINGS,
    RECORDED,
    guaranteed,
    policy_named,
    reference_for,
    run_policy,
)
from shapleyprio.replay.results import Result, as_json, results_of, write_schedules
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.nodes import kept_to_partitions
from shapleyprio.replay.workloads.workload import Workload, with_history

if TYPE_CHECKING:
    from shapleyprio.reports import Page


def replay(parameters: ReplayParameters) -> None:
    """Replays a log, and shows and writes the results."""
    refuse_unknown_policies(guaranteed(parameters.policies or COMPARED, parameters.guarantee))
    with progress_bars() as bar:
        log, workload = workload_for(
            parameters.workload,
            bar,
            wide=parameters.wide,
            backfill=parameters.backfill,
            horizon=parameters.horizon,
            confine=kept_to_partitions if parameters.respect_partitions else None,
        )
        if any(policy_named(policy).uses_history for policy in parameters.policies):
            workload = with_history(workload, log)
        results = results_of(workload, run(parameters, workload, bar))

    def page() -> Page:
        from shapleyprio.reports.replay_page import replay_page

        options = {"seed": str(parameters.workload.seed)}
        if "rand" in [result.schedule.policy for result in results]:
            options["random orderings"] = str(orderings_of(parameters, workload))
        command = parameters.report.command
        return replay_page(log, workload, results, options=options, command=command)

    publish(parameters.report, page)
    write_and_show(parameters, log, workload, results)


def refuse_unknown_policies(policies: Sequence[str]) -> None:
    """Finds out before anything is read whether every policy is known."""
    for policy in policies:
        policy_named(policy)


def run(parameters: ReplayParameters, workload: Workload, bar: ProgressBar) -> list[Schedule]:
    """Runs the policies, each once."""
    policies = list(dict.fromkeys(parameters.policies)) or default_policies(workload)
    policies = guaranteed(policies, parameters.guarantee)
    if "rand" not in policies and (parameters.orderings or parameters.epsilon) is not None:
        raise click.UsageError("the number of orderings is for rand; add --policy rand")
    orderings = orderings_of(parameters, workload)
    check_orderings(orderings)  # before another policy runs for hours
    return [
        run_policy(
            workload,
            policy,
            seed=parameters.workload.seed,
            orderings=orderings,
            cores=parameters.cores,
            estimation=parameters.estimation,
            progress=bar(policy, workload.window.length),
        )
        for policy in policies
    ]


def orderings_of(parameters: ReplayParameters, workload: Workload) -> int:
    """Returns how many random orderings Rand samples."""
    if parameters.epsilon is None or parameters.confidence is None:
        return parameters.orderings or ORDERINGS
    organizations = len(workload.organizations)
    return orderings_for(organizations, parameters.epsilon, parameters.confidence)


def write_and_show(
    parameters: ReplayParameters, log: Log, workload: Workload, results: Sequence[Result]
) -> None:
    """Writes the files, and shows the tables."""
    if parameters.schedule_file is not None:
        with whole_file(parameters.schedule_file) as file:
            write_schedules(file, workload, [result.schedule for result in results])
    show = parameters.json_file is None or write_json(
        parameters.json_file, as_json(log, workload, results)
    )
    if show:
        render(standard_output(highlight=False), log, workload, results)


def render(console: Console, log: Log, workload: Workload, results: Sequence[Result]) -> None:
    """Prints the tables, and what was left out."""
    announce(console, log, workload)
    for table in (policies_table(results), organizations_table(workload, results)):
        console.print()
        console.print(table)
    console.print()
    meaning = legend(results) if results[0].unfairness is not None else RHO_LEGEND
    console.print(meaning, style="dim", soft_wrap=True)
    if reasons := workload.left_out_in_words:
        console.print()
        console.print(f"left out: {reasons}", soft_wrap=True)
    if place := where_jobs_ran(log, workload):
        console.print()
        console.print(place, soft_wrap=True)


def policies_table(results: Sequence[Result]) -> FittingTable:
    """Makes a line for each policy."""
    against_ref = () if results[0].unfairness is None else ("Δψ/p_tot",)
    in_turn = () if results[0].turns is None else (OUT_OF_TURN,)
    headings = (RHO, "mean wait", "95 % wait", "slowdown", "utilization", "seconds")
    rows = [
        (
            result.schedule.policy,
            *(() if result.unfairness is None else (duration(float(result.unfairness)),)),
            *(out_of_turn(result.turns) for _ in in_turn),
            largest_rho(result),
            duration(float(result.measures.mean_wait)),
            duration(result.measures.wait_95th_percentile),
            decimal(result.measures.mean_bounded_slowdown),
            percent(result.measures.utilization),
            f"{result.schedule.seconds:.3g}",
        )
        for result in results
    ]
    kept = (*against_ref, *in_turn)
    return table_of(("policy", *kept, *headings), rows, kept=kept)


def default_policies(workload: Workload) -> list[str]:
    """Returns the policies that are run if none is named."""
    reference = reference_for(len(workload.organizations), MOST_FOR_REF)
    recorded = [RECORDED] if bool((workload.start != UNKNOWN).all()) else []
    return [reference, *COMPARED, *recorded]


def orderings_for(organizations: int, epsilon: float, confidence: float) -> int:
    """Returns N = ⌈k²/ε² · ln(k/(1 − λ))⌉ (SPAA 2013, Theorem 5.6).

    Args:
        organizations: k.
        epsilon: ε, how far Rand may be from Ref, as a part of all utility.
        confidence: λ, with what probability.

    >>> orderings_for(5, 0.5, 0.9)
    392
    """
    return math.ceil((organizations / epsilon) ** 2 * math.log(organizations / (1 - confidence)))
