"""`shapleyprio experiment`: its options; what it does is in `shapleyprio.lab.cli.experimenting`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.options.json_output import json_option
from shapleyprio.cli.options.refusals import (
    is_given,
    packages_needed,
    refuse,
    refuse_missing_directories,
    refuse_the_same_file,
)
from shapleyprio.cli.options.reporting import (
    check_report_packages,
    report_options,
    report_parameters,
)
from shapleyprio.cli.options.shared import (
    backfill_option,
    cores_option,
    count_option,
    guarantee_option,
    output_option,
    processor_shares_option,
    processors_option,
    seed_option,
    wide_option,
)
from shapleyprio.cli.options.types import duration
from shapleyprio.cli.options.workloads import (
    ESTIMATION_FIELDS,
    backfill_without_rigid,
    estimation_options,
    estimation_parameters,
)
from shapleyprio.lab.cli.options import keep_option
from shapleyprio.lab.cli.parameters import ExperimentParameters
from shapleyprio.lab.experiment.cells import (
    DEFAULT_WINDOWS,
    FORECAST_POLICIES,
    PRESETS,
    WindowsParameters,
)
from shapleyprio.replay.policies import guaranteed


class Counts(tuple[int, ...]):
    """Numbers, as words as they are typed."""

    __slots__ = ()

    def __str__(self) -> str:
        return ",".join(map(str, self))


def parse_counts(_context: click.Context, _option: click.Parameter, text: str) -> Counts:
    """Reads positive numbers with commas."""
    counts = [int(word) if word.strip().isdecimal() else 0 for word in text.split(",")]
    if 0 in counts:
        raise click.BadParameter(f"{text!r} is not K or K,K,...; write for instance 5 or 2,5,8")
    return Counts(counts)


@click.command
@click.argument("logs", metavar="LOG...", nargs=-1)
@click.option(
    "--preset", type=click.Choice(list(PRESETS)), help="Do a paper's experiment with these logs."
)
@click.option(
    "--exhibit",
    "exhibits",
    multiple=True,
    metavar="NAME",
    help="Table, figure or scenario of the preset; give it several times.  [default: all]",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    default=DEFAULT_WINDOWS.policies,
    show_default=True,
    help="Policy to compare; give it several times. rand-N is rand with N orderings.",
)
@guarantee_option
@count_option(
    "--windows",
    help="Windows to draw of each log; for a preset, also periods or instances.  "
    f"[default: {DEFAULT_WINDOWS.windows}, or as in the paper]",
)
@click.option(
    "--length",
    type=duration("50000 or 14h"),
    default=DEFAULT_WINDOWS.length,
    show_default=True,
    help="Length of a window.",
)
@click.option(
    "--contended",
    type=duration("30s"),
    help="Draw windows again until directcontr or fairshare is at least this far from ref.",
)
@count_option(
    "--forecasts",
    help="Forecast instead when this many jobs of each window will start, each at its release, "
    "under live and fairshare unless --policy names others.",
)
@count_option(
    "--deals",
    metavar="D",
    default=DEFAULT_WINDOWS.deals,
    help="How often to deal the users out in each window.",
)
@click.option(
    "--deal-users",
    "organizations",
    callback=parse_counts,
    metavar="K,K,...",
    default=str(Counts(DEFAULT_WINDOWS.organizations)),
    show_default=True,
    help="Deal the users out to K organizations; each K is a group.",
)
@processor_shares_option("shares", multiple=True)
@processors_option
@wide_option
@backfill_option
@estimation_options
@seed_option
@cores_option()
@keep_option("cells")
@output_option(
    "--results",
    "results_file",
    help="Write a row for each window and policy there, as CSV.",
)
@json_option
@report_options
def command(**options: Any) -> None:
    """Compare policies over many windows of LOG..., and sum up.

    Windows are drawn at random, the log's users and processors are dealt out to organizations,
    and every policy is compared with ref: by how many seconds a part of work came too early or too
    late on average (Δψ/p_tot). For each log, shares and number of organizations it shows the mean
    with its 95 % bootstrap interval, standard deviation and median, and in how many windows
    a policy was the fairest, alone (wins) or with others (ties).

    LOG is a file as for `shapleyprio replay`, or a store. The presets do a paper's experiments:
    they take their logs, by the names these have in the Parallel Workloads Archive, out of the
    files and directories given.
    """
    refuse_what_a_preset_sets(options)
    if options["forecasts"] is not None and not is_given("policies"):
        options["policies"] = FORECAST_POLICIES
    options["policies"] = tuple(guaranteed(options["policies"], options.pop("guarantee")))
    parameters = ExperimentParameters(
        general=general_parameters(options), report=report_parameters(options), **options
    )
    refuse_contradictions(parameters)
    with packages_needed("experiment", "replay"):
        from shapleyprio.lab.cli.experimenting import experiment
    check_report_packages(parameters.report)
    with termination_unwinds():
        experiment(parameters)


OWN_OF_GENERAL = [
    field.name
    for field in fields(WindowsParameters)
    if field.name not in {"windows", "seed", "estimation"}
]
"""Options, by parameter, that a preset does not have; those of the estimation come besides."""


def general_parameters(options: dict[str, Any]) -> WindowsParameters:
    """Takes the parameters of the general experiment out of the options, and leaves the others."""
    return WindowsParameters(
        windows=options["windows"] or DEFAULT_WINDOWS.windows,
        seed=options["seed"],
        estimation=estimation_parameters(options, options["policies"]),
        **{name: options.pop(name) for name in OWN_OF_GENERAL},
    )


def refuse_what_a_preset_sets(options: Mapping[str, Any]) -> None:
    """Raises a usage error for an option that a preset does not have."""
    of_general = {*OWN_OF_GENERAL, *ESTIMATION_FIELDS, "forecasts", "guarantee"}
    for option in click.get_current_context().command.params:
        if option.name in of_general:
            refuse(
                (
                    options["preset"] is not None and is_given(option.name),
                    f"the preset sets {option.opts[0]}; leave it out",
                )
            )


def refuse_contradictions(parameters: ExperimentParameters) -> None:
    """Raises a usage error for options that do not go together."""
    refuse(
        (not parameters.logs and parameters.preset is None, "name at least one LOG, or a --preset"),
        (parameters.exhibits and parameters.preset is None, "--exhibit goes with --preset"),
        backfill_without_rigid(parameters.general.wide),
        (
            parameters.forecasts is not None and parameters.general.wide != "rigid",
            "--forecasts is about whole jobs; leave --wide expand out",
        ),
        (
            parameters.forecasts is not None and parameters.general.contended is not None,
            "--contended does not go with --forecasts, which draws windows in which jobs wait",
        ),
        (
            parameters.keep is not None and any("://" in log for log in parameters.logs),
            "--keep goes with files only: a store grows, and cells kept would be of another log",
        ),
    )
    refuse_the_same_file(
        ("--json", parameters.json_file),
        ("--results", parameters.results_file),
        ("--report", parameters.report.file),
        read=[(f"LOG {log}", Path(log)) for log in parameters.logs],
    )
    refuse_missing_directories(
        ("--json", parameters.json_file), ("--results", parameters.results_file)
    )
