"""`shapleyprio audit`: its options; what it does is in `shapleyprio.cli.offline.auditing`."""

from __future__ import annotations

from typing import Any

import click

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.options.json_output import json_option
from shapleyprio.cli.options.parameters import AuditParameters
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
from shapleyprio.cli.options.shared import count_option, guarantee_option
from shapleyprio.cli.options.types import duration, in_units
from shapleyprio.cli.options.workloads import (
    backfill_without_rigid,
    files_read,
    scheduling_options,
    workload_options,
    workload_parameters,
)
from shapleyprio.replay.policies import ORDERINGS
from shapleyprio.replay.workloads.choices import MOST_FOR_ALL, PERIOD


@click.command
@workload_options
@click.option(
    "--period",
    type=duration("1d or 6h"),
    default=in_units(PERIOD),
    show_default=True,
    help="Length of the periods for which use and contribution are shown.",
)
@guarantee_option
@count_option(
    "--orderings",
    help="Sample the coalitions of N random orderings, and take rand as fair.  "
    f"[default: all coalitions and ref; with more than {MOST_FOR_ALL} organizations {ORDERINGS} "
    "orderings]",
)
@scheduling_options
@json_option
@report_options
def command(**options: Any) -> None:
    """Audit LOG: how fair was what really happened?

    LOG is a file in SWF (also .gz, .xz), the text of an sacct export, or the daemon's store, with
    the starts of its jobs. The recorded schedule is compared with ref (fair by definition),
    directcontr and fairshare, which schedule the same jobs from an empty system on.

    The tables show, as of the window's end: by how much each organization's work came too early or
    too late; who worked for whom, in processor-hours; what each contributed and used in each
    period; and whether some organizations would have had more alone, with their own nodes.
    """
    parameters = AuditParameters(
        workload=workload_parameters(options), report=report_parameters(options), **options
    )
    refuse(backfill_without_rigid(parameters.wide))
    refuse_the_same_file(
        ("--json", parameters.json_file),
        ("--report", parameters.report.file),
        read=files_read(parameters.workload),
    )
    refuse_missing_directories(("--json", parameters.json_file))
    with packages_needed("audit", "replay"):
        from shapleyprio.cli.offline.auditing import audit_log
    check_report_packages(parameters.report)
    with termination_unwinds():
        audit_log(parameters)
