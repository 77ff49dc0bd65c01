"""`shapleyprio trial`: its options; what it does is in `shapleyprio.lab.cli.trialling`."""

from __future__ import annotations

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
from shapleyprio.cli.options.shared import wide_option
from shapleyprio.cli.options.types import duration, in_units
from shapleyprio.cli.options.workloads import files_read, workload_options, workload_parameters
from shapleyprio.config.keys import ServiceSection
from shapleyprio.lab.cli.options import (
    OF_A_CLUSTER_SECONDS,
    arm_option,
    directory_option,
    poll_interval_option,
    side_by_side_option,
    speed_option,
)
from shapleyprio.lab.cli.parameters import TrialParameters
from shapleyprio.lab.trial.arms import ARMS, USUAL_ARMS

DAEMON = ServiceSection()
"""The daemon's defaults."""


@click.command
@workload_options
@wide_option
@arm_option(ARMS, USUAL_ARMS)
@poll_interval_option(default=in_units(DAEMON.poll_interval))
@click.option(
    "--new-jobs-interval",
    type=duration("30s or 5m", off=True),
    default=in_units(DAEMON.new_jobs_interval),
    show_default=True,
    help="From one new-job poll of the daemon to the next, on the cluster's clock, or off.",
)
@speed_option()
@side_by_side_option()
@directory_option
@json_option
@click.option("--jobs", is_flag=True, help="With --json: a row for each job of each arm, too.")
def command(**options: Any) -> None:
    """Run the jobs of LOG through a private real Slurm, once for each arm.

    LOG is what `shapleyprio replay` takes. Its jobs are submitted at their release, on an
    accelerated clock, with the time limits that their users gave them, and last as long as they
    did. They stay whole, and Slurm backfills; with `--wide expand` a job of q processors becomes q
    jobs of one, as in the papers. Every organization brings small nodes; jobs share nodes, and may
    have several.

    \b
    slurm-fairshare                    Slurm's Fair Tree, shares by processors
    fifo                               first come, first served
    shapleyprio-site-factor            this daemon, by site factor
    shapleyprio-guarantee-site-factor  the same with a guarantee of 4 h
    shapleyprio-live-site-factor       with the rule shapley instead
    shapleyprio-nice                   this daemon, by nice
    shapleyprio-qos                    this daemon, by priority of QOS

    The table shows, from Slurm's accounting at the window's end, the unfairness Δψ/p_tot against
    ref, how often somebody was served out of turn, waits, utilization, and by how much jobs were
    submitted after their release; beside them, what simulated policies make of the same jobs. This
    needs neither a configuration nor a cluster.
    """  # noqa: D301 - click looks for the character \b
    parameters = trial_parameters(options)
    with packages_needed("trial"):
        from shapleyprio.lab.cli.trialling import trial
    with termination_unwinds(OF_A_CLUSTER_SECONDS):
        trial(parameters)


def trial_parameters(options: dict[str, Any]) -> TrialParameters:
    """Returns the parameters that a trial's options make.

    Raises:
        click.UsageError: they do not go together.
    """
    parameters = TrialParameters(workload=workload_parameters(options), **options)
    refuse((parameters.jobs and parameters.json_file is None, "--jobs goes with --json"))
    refuse_the_same_file(("--json", parameters.json_file), read=files_read(parameters.workload))
    refuse_missing_directories(("--json", parameters.json_file))
    return parameters
