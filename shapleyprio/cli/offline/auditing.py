"""The work of `shapleyprio audit`: read the log, audit it, show and write what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shapleyprio.cli.offline.audit_tables import render
from shapleyprio.cli.offline.in_force import read_in_force
from shapleyprio.cli.offline.workload_reading import workload_for
from shapleyprio.cli.options.json_output import write_json
from shapleyprio.cli.options.parameters import AuditParameters, WorkloadParameters
from shapleyprio.cli.options.reporting import publish
from shapleyprio.cli.shown.progress import progress_bars
from shapleyprio.cli.shown.standings import MOST_USERS
from shapleyprio.cli.shown.tables import standard_output
from shapleyprio.replay.audit.auditing import audit
from shapleyprio.replay.audit.in_force import InForce
from shapleyprio.replay.audit.results import audit_as_json
from shapleyprio.replay.logs.exports.reading import store_url
from shapleyprio.replay.logs.stored import users_after_end
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.partitions import kept_to_clusters
from shapleyprio.replay.workloads.workload import Window
from shapleyprio.store import Store, UserAfterEnd

if TYPE_CHECKING:
    from shapleyprio.reports import Page


def audit_log(parameters: AuditParameters) -> None:
    """Audits a log, and shows and writes the results."""
    with progress_bars() as bar:
        log, workload = workload_for(
            parameters.workload,
            bar,
            wide=parameters.wide,
            backfill=parameters.backfill,
            confine=kept_to_clusters,
        )
        in_force, after_end = stored_in(parameters.workload, log, workload.window)
        found = audit(
            workload,
            orderings=parameters.orderings,
            compared=in_force.compared,
            guarantee=parameters.guarantee,
            period=parameters.period,
            seed=parameters.workload.seed,
            cores=parameters.cores,
            bar=lambda policy: bar(policy, workload.window.length),
        )

    def page() -> Page:
        from shapleyprio.reports.audit_page import audit_page

        return audit_page(
            log,
            found,
            options={
                "seed": str(parameters.workload.seed),
                "period": f"{parameters.period:,} s",
            },
            command=parameters.report.command,
            continued=log.window is not None,
            after_end=after_end,
            in_force=in_force,
        )

    publish(parameters.report, page)
    show = parameters.json_file is None or write_json(
        parameters.json_file, audit_as_json(log, found, after_end)
    )
    if show:
        render(standard_output(highlight=False), log, found, after_end, in_force)


def stored_in(
    parameters: WorkloadParameters, log: Log, window: Window
) -> tuple[InForce, Sequence[UserAfterEnd]]:
    """Returns what was in force in a window, and whose jobs went on after their ends, if known."""
    begin, end = window.start, window.start + window.length
    if log.format not in ("store", "export"):
        return InForce(begin=begin, end=end), ()
    with Store.open(store_url(parameters.log[0])) as store:
        ledgers = [store.cluster(one.cluster) for one in log.clusters or (log,)]
        users = users_after_end(ledgers, begin, end, MOST_USERS)
        return read_in_force(ledgers, begin, end), users
