"""Writes down what a cycle did."""

from __future__ import annotations

import structlog

from shapleyprio.daemon.steering.outcomes import STEERED
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.store import ClusterStore, CycleRow, SteeringRow, StoreError, Transaction

log = structlog.get_logger(__name__)


def record(
    store: ClusterStore, report: CycleReport, row: CycleRow, *, rule: str, channel: str
) -> None:
    """Stores a cycle that has ended.

    Args:
        store: of the ledger.
        report: as far as the cycle has come.
        row: how it ended.
        rule: that was to rank.
        channel: that carries the priorities.

    Raises:
        StoreError: a cycle that did not fail could not be stored.
    """

    def save(transaction: Transaction) -> None:
        transaction.history.save_cycle(row)
        if not row.message:
            transaction.history.save_standings(report.ranked.standings)
            transaction.observed.save_pending_jobs(report.jobs.pending_jobs)
        if row.outcome == STEERED:
            transaction.history.note_steering(_steering(report, rule, channel))

    try:
        store.transact(save)
    except StoreError:
        if not row.message:
            raise
        log.warning("the failed cycle could not be recorded", outcome=row.outcome)


def _steering(report: CycleReport, rule: str, channel: str) -> SteeringRow:
    if (pause := report.plan.pause) is not None:  # which may be younger than what is accounted
        return SteeringRow(since=max(report.t, pause.since), rule="", chosen="", channel="")
    return SteeringRow(since=report.t, rule=report.ranked.rule, chosen=rule, channel=channel)
