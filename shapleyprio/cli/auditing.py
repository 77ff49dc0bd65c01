"""The work of `shapleyprio audit`: read the log, audit it, show and write what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from shapleyprio.audit.auditing import Audit, audit
from shapleyprio.audit.results import audit_as_json
from shapleyprio.cli.audit_tables import render
from shapleyprio.cli.json_output import write_json
from shapleyprio.cli.parameters import AuditParameters
from shapleyprio.cli.progress import progress_bars
from shapleyprio.cli.reporting import publish
from shapleyprio.cli.workload_reading import complain, workload_for
from shapleyprio.replay.log import Log

if TYPE_CHECKING:
    from shapleyprio.report import Page


def audit_log(parameters: AuditParameters) -> None:
    """Audits a log, and shows and writes the results."""
    with progress_bars() as bar:
        log, workload = workload_for(
            parameters.workload, bar, wide=parameters.wide, backfill=parameters.backfill
        )
        found = audit(
            workload,
            orderings=parameters.orderings,
            period=parameters.period,
            seed=parameters.workload.seed,
            cores=parameters.cores,
            bar=lambda policy: bar(policy, workload.window.length),
        )
    publish(parameters.report, lambda: page_of(parameters, log, found))
    show = parameters.json_file is None or write_json(
        parameters.json_file, audit_as_json(log, found)
    )
    complain(log)
    if show:
        render(Console(highlight=False), log, found)


def page_of(parameters: AuditParameters, log: Log, found: Audit) -> Page:
    """Returns the report."""
    from shapleyprio.report.audit_page import audit_page

    options = {"seed": str(parameters.workload.seed), "period": f"{parameters.period:,} s"}
    return audit_page(log, found, options=options, command=parameters.report.command)
