"""`shapleyprio rehearse`: its options; what it does is in `shapleyprio.lab.cli.rehearsing`."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.options.json_output import json_option
from shapleyprio.cli.options.refusals import (
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
from shapleyprio.cli.options.shared import count_option, output_option
from shapleyprio.cli.options.types import MOMENT, duration
from shapleyprio.lab.cli.options import (
    OF_A_CLUSTER_SECONDS,
    arm_option,
    directory_option,
    keep_option,
    side_by_side_option,
    speed_option,
)
from shapleyprio.lab.cli.parameters import RehearseParameters
from shapleyprio.lab.rehearsal.arms import ARMS, USUAL_ARMS
from shapleyprio.replay.logs.files import files_of
from shapleyprio.replay.workloads.choices import DEFAULT_TIME_ZONE

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command
@click.argument("log", nargs=-1, required=True)
@click.option("--slurm-conf", type=FILE, required=True, help="The site's slurm.conf.")
@click.option("--associations", type=FILE, help="What `sacctmgr dump CLUSTER file=FILE` wrote.")
@click.option("--qos", type=FILE, help="What `sacctmgr -P show qos` prints.")
@click.option(
    "--organizations",
    type=FILE,
    required=True,
    help="File with [[organization]] tables, such as the daemon's.",
)
@click.option(
    "--time-zone",
    default=DEFAULT_TIME_ZONE,
    show_default=True,
    help="Time zone of LOG and --from.",
)
@click.option(
    "--from",
    "since",
    type=MOMENT,
    metavar="DATE",
    help="When it begins.  [default: as late as can be]",
)
@click.option(
    "--days",
    type=click.FloatRange(0.001, 31),
    default=1,
    show_default=True,
    help="How many days of released jobs to rehearse.",
)
@click.option(
    "--warm-up",
    type=duration("6h or 1d"),
    default="1h",
    show_default=True,
    help="Begin so much earlier; these jobs do not count.",
)
@arm_option(ARMS, USUAL_ARMS)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Run today's configuration with another setting of slurm.conf, too; several with blanks "
    "between them. Give it several times for several arms.",
)
@count_option(
    "--max-nodes",
    default=1000,
    help="Nodes to run, each a slurmd here; where the site has more, each stands for several "
    "alike.",
)
@count_option("--repeat", default=1, help="How often to run each arm.")
@speed_option()
@side_by_side_option(default=1)
@keep_option("arms")
@directory_option
@json_option
@output_option("--waits", "waits_file", help="Write each job's wait under each arm there as CSV.")
@report_options
def command(**options: Any) -> None:
    """Let jobs of LOG pass through a private real Slurm of your cluster's shape.

    LOG is what sacct prints of one cluster (docs/replay.md has the command). Each job is submitted
    when it was released, on an accelerated clock, to a Slurm with your nodes, partitions, weights,
    scheduler's parameters, accounts, shares and limits, once for each arm. What ran or waited at
    the beginning is there from the first minute on.

    \b
    today        your configuration
    fairshare    Slurm's fair share alone, shares by the organizations' processors
    directcontr  your configuration and this daemon, with the rule directcontr
    shapley      the same with the rule shapley
    guarantee    the same with directcontr and a guarantee of four hours

    The answer shows waits by organization, partition and size, utilization and fairness of each
    arm beside what really happened, which says how far `today` can be trusted; and all settings
    that were not taken over. Memory and GPUs count if LOG has ReqTRES, features of nodes if it has
    Constraints; reservations and users' own nice do not. Fair share begins with the usage of the
    jobs in LOG that ran before. Nothing touches your cluster.
    """  # noqa: D301 - click looks for the character \b
    parameters = RehearseParameters(report=report_parameters(options), **options)
    refuse((isnan(parameters.days), "nan is not a number of days"))
    refuse_the_same_file(
        ("--json", parameters.json_file),
        ("--waits", parameters.waits_file),
        ("--report", parameters.report.file),
        read=[
            *(("LOG", Path(file)) for file in files_of(parameters.log)),
            ("--slurm-conf", parameters.slurm_conf),
            ("--associations", parameters.associations),
            ("--qos", parameters.qos),
            ("--organizations", parameters.organizations),
        ],
    )
    refuse_missing_directories(("--json", parameters.json_file), ("--waits", parameters.waits_file))
    check_report_packages(parameters.report)
    with packages_needed("rehearse", "trial"):
        from shapleyprio.lab.cli.rehearsing import rehearse
    with termination_unwinds(OF_A_CLUSTER_SECONDS):
        rehearse(parameters)
