"""`shapleyprio replay`: its options; what it does is in `shapleyprio.cli.offline.replaying`."""

from __future__ import annotations

from typing import Any

import click

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.options.json_output import json_option
from shapleyprio.cli.options.parameters import ReplayParameters
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
from shapleyprio.cli.options.shared import (
    count_option,
    guarantee_option,
    output_option,
)
from shapleyprio.cli.options.types import duration
from shapleyprio.cli.options.workloads import (
    backfill_without_rigid,
    estimation_options,
    estimation_parameters,
    files_read,
    scheduling_options,
    workload_options,
    workload_parameters,
)
from shapleyprio.replay.policies import (
    COMPARED,
    MOST_FOR_REF,
    ORDERINGS,
    RECORDED,
    REFERENCE,
    SAMPLED_REFERENCE,
)


class CommandOfPolicies(click.Command):
    """A command whose help ends with the policies and what each serves next."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the policies as their registry has them."""
        from shapleyprio.fairness.rules import RULES
        from shapleyprio.replay.policies import POLICIES

        with formatter.section("Policies, and which organization each serves next"):
            formatter.write_dl([(name, policy.decision) for name, policy in POLICIES.items()])
        with formatter.section("Policies besides"):
            formatter.write_dl(
                [
                    *((f"rule:{name}", f"the order of the daemon's rule {name}") for name in RULES),
                    ("module:function", "the order that your own function in Python returns"),
                ]
            )
        super().format_epilog(ctx, formatter)


@click.command(cls=CommandOfPolicies)
@workload_options
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Policy to replay; give it several times.  [default: "
    f"{REFERENCE} ({SAMPLED_REFERENCE} with more than {MOST_FOR_REF} organizations), "
    f"{', '.join(COMPARED)}, and {RECORDED} if the log has starts]",
)
@guarantee_option
@count_option(
    "--orderings",
    help=f"Random orderings that rand samples.  [default: {ORDERINGS}]",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(min=0, min_open=True),
    help="Largest error of rand against ref, as a fraction of all utility, ...",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="... with this probability. Both set the number of orderings (Theorem 5.6).",
)
@estimation_options
@click.option(
    "--horizon",
    type=duration("12h or 30d"),
    help="Age from which a part of work gains no more worth, as fairness.horizon of the daemon.  "
    "[default: none]",
)
@click.option(
    "--respect-partitions",
    is_flag=True,
    help="Give jobs processors of their partitions' nodes only, where the log names both.",
)
@scheduling_options
@json_option
@output_option("--schedule", "schedule_file", help="Write every start there as CSV.")
@report_options
def command(**options: Any) -> None:
    """Replay LOG under policies: what would have been fair?

    What would last month have been under another policy, or with another configuration? The
    daemon's store has its jobs; docs/operations.md has the command.

    LOG is a file in SWF (also .gz, .xz), the text of an sacct export, or the daemon's store. Its
    jobs are rescheduled by each policy, on the processors that the organizations bring, from
    an empty system on.

    The policies are listed below: ref is fair by definition, recorded is what really happened.

    The tables show, as of the window's end: by how many seconds a part of work came too early or
    too late on average against ref (Δψ/p_tot), waits and bounded slowdown of jobs (of copies, if
    wide jobs are expanded; those that have not started count with their wait so far), utilization,
    and the seconds the decisions took; and each organization's part of Δψ/p_tot, positive if its
    work came too early.
    """
    parameters = ReplayParameters(
        workload=workload_parameters(options),
        estimation=estimation_parameters(options, options["policies"]),
        report=report_parameters(options),
        **options,
    )
    refuse_contradictions(parameters)
    with packages_needed("replay"):
        from shapleyprio.cli.offline.replaying import replay
    check_report_packages(parameters.report)
    with termination_unwinds():
        replay(parameters)


def refuse_contradictions(parameters: ReplayParameters) -> None:
    """Raises a usage error for options that do not go together."""
    refuse(
        (
            (parameters.epsilon is None) != (parameters.confidence is None),
            "--epsilon and --confidence go together",
        ),
        (
            parameters.orderings is not None and parameters.epsilon is not None,
            "--epsilon and --confidence set the number of orderings; leave --orderings out",
        ),
        backfill_without_rigid(parameters.wide),
    )
    refuse_the_same_file(
        ("--json", parameters.json_file),
        ("--schedule", parameters.schedule_file),
        ("--report", parameters.report.file),
        read=files_read(parameters.workload),
    )
    refuse_missing_directories(
        ("--json", parameters.json_file), ("--schedule", parameters.schedule_file)
    )
