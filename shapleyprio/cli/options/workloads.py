"""Options of commands on logs: which jobs to take, how to schedule them, and how to estimate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli.options.parameters import WorkloadParameters
from shapleyprio.cli.options.refusals import is_given, refuse
from shapleyprio.cli.options.shared import (
    backfill_option,
    choice_option,
    cores_option,
    count_option,
    deal_users_option,
    processor_shares_option,
    processors_option,
    seed_option,
    together,
    wide_option,
    window_option,
)
from shapleyprio.cli.options.types import MOMENT, duration, in_units
from shapleyprio.replay.logs.exports.recognizing import is_export
from shapleyprio.replay.logs.files import files_of
from shapleyprio.replay.policies import PREDICTORS, Estimation, heeds, policies_heeding
from shapleyprio.replay.workloads.choices import (
    ALL_CLUSTERS,
    DEFAULT_ESTIMATION,
    DEFAULT_TIME_ZONE,
    DOUBTS,
    EXACT_ORGANIZATIONS,
    FORMATS,
    Wide,
)
from shapleyprio.replay.workloads.layout import ASK_ACCOUNTS, ASK_NODES

FOUND_OUT = "auto"
"""The format of a log that is to be found out."""


def named_format(_context: click.Context, _option: click.Parameter, name: str) -> str | None:
    """Returns the format that was named; None if it is to be found out."""
    return None if name == FOUND_OUT else name


def files_of_clusters(
    _context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> dict[str, Path]:
    """Returns cluster, or ALL_CLUSTERS, -> its file.

    Raises:
        click.BadParameter: a cluster has several, or one is a directory.
    """
    files: dict[str, Path] = {}
    for value in values:
        cluster, separator, file = value.partition("=")
        if not separator or "/" in cluster or Path(value).exists():
            cluster, file = ALL_CLUSTERS, value
        if cluster in files:
            of = f"of cluster {cluster}" if cluster else "for all clusters; give CLUSTER=FILE"
            raise click.BadParameter(f"{files[cluster]} and {file} are both {of}", param=option)
        if Path(file).is_dir():
            raise click.BadParameter(f"{file} is a directory", param=option)
        files[cluster] = Path(file)
    return files


workload_options = together(
    (
        click.argument("log", nargs=-1, required=True),
        click.option(
            "--organizations",
            multiple=True,
            metavar="[CLUSTER=]FILE",
            callback=files_of_clusters,
            help="File with [[organization]] tables, such as the daemon's; in a pool one for each "
            "cluster with its own tables.",
        ),
        *(
            click.option(
                f"--{name}",
                multiple=True,
                metavar="[CLUSTER=]FILE",
                callback=files_of_clusters,
                help=f"What `{command}` prints: {what} that the log lacks.",
            )
            for name, command, what in (
                ("nodes", ASK_NODES, "sizes and partitions of nodes"),
                ("accounts", ASK_ACCOUNTS, "the tree of accounts"),
            )
        ),
        click.option(
            "--allow",
            type=click.Choice(DOUBTS),
            multiple=True,
            help="Continue although the log lacks a configured partition, node or account; or an "
            "organization brings no processors; or most jobs belong to no organization; or more "
            "processors were in use than there are.",
        ),
        deal_users_option,
        processor_shares_option(),
        processors_option,
        seed_option,
        window_option,
        click.option(
            "--format",
            "log_format",
            type=click.Choice([FOUND_OUT, *FORMATS]),
            default=FOUND_OUT,
            show_default=True,
            callback=named_format,
            help="Format of LOG.",
        ),
        click.option(
            "--fields",
            metavar="A,B,C",
            help="Columns of an sacct export without a header line.  [default: Open XDMoD's]",
        ),
        click.option(
            "--time-zone", help=f"Time zone of an sacct export.  [default: {DEFAULT_TIME_ZONE}]"
        ),
        click.option(
            "--cluster",
            "clusters",
            multiple=True,
            metavar="NAME",
            help="Cluster to take from a log of several; repeat it for those of a pool.",
        ),
        *(
            click.option(
                name,
                type=MOMENT,
                metavar="DATE",
                help=f"Read jobs released {when}, a date or date and time of --time-zone; of a "
                "store or export, of this host's.",
            )
            for name, when in (("--since", "from then on"), ("--until", "before"))
        ),
        click.option("--strict", is_flag=True, help="Treat a malformed line as an error."),
    )
)
"""Adds the options that make a workload; `workload_parameters` reads them."""

scheduling_options = together(
    (
        wide_option,
        backfill_option,
        cores_option(),
    )
)
"""Adds how jobs are rescheduled; the command gets `wide`, `backfill` and `cores`."""


def workload_parameters(options: dict[str, Any]) -> WorkloadParameters:
    """Takes what makes a workload out of a command's options, and leaves the others there.

    Raises:
        click.UsageError: options do not go together.
    """
    parameters = WorkloadParameters(
        **{field.name: options.pop(field.name) for field in fields(WorkloadParameters)}
    )
    dealt = parameters.deal_users is not None
    named = bool(parameters.organizations) or (not dealt and any(map(is_export, parameters.log)))
    refuse(
        (
            named == dealt,
            "name the owners of the jobs: either --organizations FILE or --deal-users K; an export "
            "(shapleyprio export) names them itself",
        ),
        (
            parameters.deal_users is None
            and (parameters.processor_shares or parameters.processors),
            "--processor-shares and --processors go with --deal-users; with --organizations, "
            "each table says `processors = N`",
        ),
        (
            parameters.deal_users is not None and (parameters.accounts or parameters.allow),
            "--accounts and --allow go with --organizations",
        ),
    )
    return parameters


def files_read(parameters: WorkloadParameters) -> tuple[tuple[str, Path], ...]:
    """Returns what is read, for `refuse_the_same_file`: no result may be written over it."""
    return (
        *(("LOG", Path(file)) for file in files_of(parameters.log)),
        *(("--organizations", file) for file in parameters.organizations.values()),
        *(("--nodes", file) for file in parameters.nodes.values()),
        *(("--accounts", file) for file in parameters.accounts.values()),
    )


def backfill_without_rigid(wide: Wide) -> tuple[bool, str]:
    """Returns a contradiction for `refuse`."""
    return (
        wide != "rigid" and is_given("backfill"),
        "--backfill goes with --wide rigid; sequential copies leave nothing to pass",
    )


def heeding(name: str) -> str:
    """Returns in words which policies heed an option."""
    return " and ".join(policies_heeding(name))


estimation_options = together(
    (
        click.option(
            "--recompute",
            type=duration("30s or 5m"),
            default=in_units(DEFAULT_ESTIMATION.recompute),
            show_default=True,
            help=f"How long {heeding('recompute')} use contributions while organizations compete, "
            "before they are recomputed.",
        ),
        count_option(
            "--coalitions",
            default=DEFAULT_ESTIMATION.coalitions,
            help=f"Coalitions that {heeding('coalitions')} value each time with more than "
            f"{EXACT_ORGANIZATIONS} organizations, some more if N is very small; up to "
            f"{EXACT_ORGANIZATIONS}, all are valued.",
        ),
        choice_option(
            "--predictor",
            choices=PREDICTORS,
            help=f"How {heeding('predictor')} predicts the end of unfinished jobs: by the mean of "
            "past jobs that lasted longer, most of them the user's, the mean of the user's last "
            "two, or the time limit.",
        ),
    )
)
"""Adds options; `estimation_parameters` reads them."""

ESTIMATION_FIELDS = tuple(field.name for field in fields(Estimation))


def estimation_parameters(options: dict[str, Any], policies: Collection[str]) -> Estimation:
    """Takes the estimation out of a command's options, and leaves the others there.

    Args:
        options: of the command that is called.
        policies: that it is to run.

    Raises:
        click.UsageError: an option was given that none of the policies heeds.
    """
    for name in ESTIMATION_FIELDS:
        useful = policies_heeding(name)
        refuse(
            (
                is_given(name) and not any(heeds(policy, name) for policy in policies),
                f"--{name} is for {heeding(name)}; add --policy {useful[-1]}",
            )
        )
    return Estimation(**{name: options.pop(name) for name in ESTIMATION_FIELDS})
