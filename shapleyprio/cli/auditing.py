"""What `shapleyprio audit` does: read the log, audit it, show and write what was found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.console import Console

from shapleyprio.audit.auditing import Audit, audit
from shapleyprio.audit.results import audit_as_json
from shapleyprio.cli.audit import Request
from shapleyprio.cli.audit_tables import render
from shapleyprio.cli.common import print_json
from shapleyprio.cli.progress import progress_bars
from shapleyprio.cli.reporting import publish
from shapleyprio.cli.workload_reading import complain, workload_for
from shapleyprio.cli.workloads import STDOUT
from shapleyprio.replay.log import Log
from shapleyprio.replay.results import whole_file

if TYPE_CHECKING:
    from shapleyprio.report import Page


def audit_log(request: Request) -> None:
    """Does what was asked for."""
    with progress_bars() as bar:
        log, workload = workload_for(
            request.workload, bar, wide=request.wide, backfill=request.backfill
        )
        found = audit(
            workload,
            orderings=request.orderings,
            period=request.period,
            seed=request.workload.seed,
            cores=request.cores,
            bar=lambda policy: bar(policy, workload.window.length),
        )
    publish(request.report, lambda: page_of(request, log, found))
    if request.json_file == STDOUT:
        print_json(audit_as_json(log, found))
    elif request.json_file is not None:
        with whole_file(request.json_file) as file:
            json.dump(audit_as_json(log, found), file, indent=2, ensure_ascii=False)
            file.write("\n")
    complain(log)
    if request.json_file != STDOUT:
        render(Console(highlight=False), log, found)


def page_of(request: Request, log: Log, found: Audit) -> Page:
    """The report."""
    from shapleyprio.report.audit_page import audit_page

    options = {"seed": str(request.workload.seed), "period": f"{request.period:,} s"}
    return audit_page(log, found, options=options, command=request.report.command)
