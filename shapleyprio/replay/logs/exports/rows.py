"""What of a store stands in an export, and how it comes back into a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from shapleyprio.fairness.pool import Stay
from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.fairness.tenure import Allocation, Tenure
from shapleyprio.replay.logs.exports.records import (
    ExportedAccount,
    ExportedAllocation,
    ExportedCapacity,
    ExportedCorrection,
    ExportedException,
    ExportedLedger,
    ExportedNode,
    ExportedPause,
    ExportedRun,
    ExportedStanding,
    ExportedStay,
    ExportedSteering,
    ExportedTenure,
    ExportedWorkAfterEnd,
    Row,
)
from shapleyprio.store import (
    AccountRow,
    AllocatedRun,
    CapacityRow,
    CorrectionRow,
    ExceptionRow,
    NodeRow,
    PauseRow,
    StandingRow,
    SteeringRow,
    Transaction,
    View,
    Watermark,
    WorkAfterEnd,
)


@dataclass(frozen=True, slots=True)
class ExportSpan:
    """What of the past is exported.

    Attributes:
        since: second; what ended by then is left out. None for no such bound.
        until: second; what began, or came to be so, from then on is left out. None for no such
            bound.
    """

    since: int | None = None
    until: int | None = None

    def holds(self, begin: int, end: int | None) -> bool:
        """Returns whether what lasted from begin to end (None: it lasts) belongs to it."""
        over = end is not None and self.since is not None and end <= self.since
        return not over and self.is_past(begin)

    def is_past(self, second: int) -> bool:
        """Returns whether that second is before the end."""
        return self.until is None or second < self.until


def exported_ledger(view: View, span: ExportSpan) -> ExportedLedger | None:
    """Returns what the manifest says of a ledger; None if there was no cycle yet."""
    watermark, stay = view.ledger.watermark(), view.pools.stay()
    if watermark is None:
        return None
    first = max(watermark.opened, watermark.pruned_until, span.since or 0)
    last = watermark.observed_until
    return ExportedLedger(
        name=view.cluster,
        weight=watermark.weight,
        horizon=watermark.horizon,
        complete_from=first,
        complete_until=max(first, last if span.until is None else min(last, span.until)),
        releases=tuple(one for one in view.history.releases() if span.is_past(one[0])),
        stay=None if stay is None else ExportedStay(**_fields(stay, ExportedStay)),
    )


def put_ledger(transaction: Transaction, ledger: ExportedLedger) -> None:
    """Stores what the manifest says of a ledger."""
    transaction.ledger.save_watermark(
        Watermark(
            weight=ledger.weight,
            opened=ledger.complete_from,
            observed_until=ledger.complete_until,
            sure_until=ledger.complete_until,
            accounted_to=ledger.complete_until,
            horizon=ledger.horizon,
            pruned_until=ledger.complete_from,
        )
    )
    if ledger.stay is not None:
        transaction.pools.change_stay(Stay(**dict(ledger.stay)))


def _runs(view: View, span: ExportSpan) -> Iterator[Row]:
    for run, allocations in view.runs.all_runs():
        if span.holds(run.begin, run.end):
            yield ExportedRun(
                cluster=view.cluster,
                job=run.key.job_id,
                submit=run.key.submit,
                start=run.key.start,
                nodes=dict(run.processors),
                allocations=tuple(
                    ExportedAllocation(**_fields(each, ExportedAllocation))
                    for each in allocations
                    if span.is_past(each.begin)
                ),
                **{name: getattr(run, name) for name in _OF_RUN},
            )


_OF_RUN = (
    *("label", "account", "user", "partition", "state", "release", "limit"),
    *("begin", "end", "paused_at", "counted"),
)


def _run_of(row: ExportedRun) -> AllocatedRun:
    run = Run(
        key=RunKey(row.job, row.submit, row.start),
        processors=row.nodes,
        **{name: getattr(row, name) for name in _OF_RUN},
    )
    return run, tuple(Allocation(**dict(each)) for each in row.allocations)


def _nodes(view: View, span: ExportSpan) -> Iterator[Row]:
    return _all_of(
        ExportedNode, view, (row for row in view.observed.node_rows() if span.is_past(row.since))
    )


def _accounts(view: View, span: ExportSpan) -> Iterator[Row]:
    rows = (row for row in view.observed.account_rows() if span.is_past(row.since))
    return _all_of(ExportedAccount, view, rows)


def _tenures(view: View, span: ExportSpan) -> Iterator[Row]:
    rows = (
        row if row.until is None or span.is_past(row.until) else replace(row, until=None)
        for row in view.ledger.tenures()
        if row.lasts_in(span.since or 0, span.until)
    )
    return _all_of(ExportedTenure, view, rows)


def _corrections(view: View, span: ExportSpan) -> Iterator[Row]:
    rows = (row for row in view.ledger.corrections() if span.holds(row.at, row.at))
    return _all_of(ExportedCorrection, view, rows)


def _capacities(view: View, span: ExportSpan) -> Iterator[Row]:
    for row in view.observed.capacities():
        if span.is_past(row.since):
            yield ExportedCapacity(
                cluster=view.cluster,
                organization=row.organization,
                since=row.since,
                processors=tuple(sorted(row.processors.items())),
            )


def _steering(view: View, span: ExportSpan) -> Iterator[Row]:
    return _all_of(ExportedSteering, view, view.history.steering(span.since or 0, span.until))


def _pauses(view: View, span: ExportSpan) -> Iterator[Row]:
    rows = (row for row in view.orders.pauses() if span.holds(row.since, row.until))
    return _all_of(ExportedPause, view, rows)


def _exceptions(view: View, span: ExportSpan) -> Iterator[Row]:
    for row in view.orders.exceptions(since=0):
        if span.holds(row.since, row.ended) and not row.by_guarantee:
            values = {name: getattr(row, name) for name in _OF_EXCEPTION}
            yield ExportedException(
                cluster=view.cluster, job=row.job_id, passed=dict(row.passed), **values
            )


_OF_EXCEPTION = tuple(ExportedException.model_fields.keys() - {"cluster", "job", "passed"})


def _standings(view: View, span: ExportSpan) -> Iterator[Row]:
    return _all_of(ExportedStanding, view, view.history.latest_standings(span.until))


def _after_end(view: View, span: ExportSpan) -> Iterator[Row]:
    for row in view.runs.work_after_end():
        if span.holds(row.end, row.end):
            values = {name: getattr(row, name) for name in _OF_AFTER_END}
            yield ExportedWorkAfterEnd(cluster=view.cluster, job=row.job_id, **values)


_OF_AFTER_END = tuple(ExportedWorkAfterEnd.model_fields.keys() - {"cluster", "job"})


def _put_runs(rows: Transaction, found: Iterable[ExportedRun]) -> None:
    rows.runs.put(map(_run_of, _ascending(found)), stored=())


def _ascending(found: Iterable[ExportedRun]) -> Iterator[ExportedRun]:
    last: tuple[int, ...] = ()
    for row in found:
        key = row.job, row.submit, row.start
        if key <= last:
            raise ValueError(f"job {row.job} is listed twice, or out of order")
        last = key
        yield row


def _put_nodes(rows: Transaction, found: Iterable[ExportedNode]) -> None:
    nodes = [NodeRow(**_own(row) | {"partitions": _sorted(row.partitions)}) for row in found]
    rows.observed.put_layout(nodes, ())


def _put_accounts(rows: Transaction, found: Iterable[ExportedAccount]) -> None:
    rows.observed.put_layout((), [AccountRow(**_own(row)) for row in found])


def _put_tenures(rows: Transaction, found: Iterable[ExportedTenure]) -> None:
    by_name = {
        name: [Tenure(**_own(row)) for row in of]
        for name, of in groupby(found, key=lambda row: (row.kind, row.name))
    }
    rows.ledger.save_tenures(by_name)


def _put_corrections(rows: Transaction, found: Iterable[ExportedCorrection]) -> None:
    rows.ledger.save_corrections([CorrectionRow(**_own(row)) for row in found])


def _put_capacities(rows: Transaction, found: Iterable[ExportedCapacity]) -> None:
    capacities = [
        CapacityRow(
            organization=row.organization,
            since=row.since,
            processors={_sorted(names): count for names, count in row.processors},
        )
        for row in found
    ]
    rows.observed.correct_capacities((), capacities, 0)


def _put_steering(rows: Transaction, found: Iterable[ExportedSteering]) -> None:
    for row in found:
        rows.history.note_steering(SteeringRow(**_own(row)))


def _put_pauses(rows: Transaction, found: Iterable[ExportedPause]) -> None:
    rows.orders.put_pauses([PauseRow(**_own(row)) for row in found])


def _put_exceptions(rows: Transaction, found: Iterable[ExportedException]) -> None:
    exceptions = [
        ExceptionRow(
            job_id=row.job,
            passed=row.passed,
            **{name: getattr(row, name) for name in _OF_EXCEPTION},
        )
        for row in found
    ]
    rows.orders.put_exceptions(exceptions)


def _put_standings(rows: Transaction, found: Iterable[ExportedStanding]) -> None:
    rows.history.save_standings(StandingRow(**_own(row)) for row in found)


def _put_after_end(rows: Transaction, found: Iterable[ExportedWorkAfterEnd]) -> None:
    work = [
        WorkAfterEnd(job_id=row.job, **{name: getattr(row, name) for name in _OF_AFTER_END})
        for row in found
    ]
    rows.runs.save_work_after_end(work, asked_until=max(row.end for row in work))


@dataclass(frozen=True, slots=True)
class Part:
    """A file of an export.

    Attributes:
        row: what its lines are.
        read: reads the rows of a ledger.
        write: stores rows of a ledger, all that there are of it.
    """

    row: type[Row]
    read: Callable[[View, ExportSpan], Iterator[Row]]
    write: Callable[[Transaction, Iterable[Any]], None]


RUNS = "runs.jsonl"

PARTS: Mapping[str, Part] = {
    RUNS: Part(ExportedRun, _runs, _put_runs),
    "nodes.jsonl": Part(ExportedNode, _nodes, _put_nodes),
    "accounts.jsonl": Part(ExportedAccount, _accounts, _put_accounts),
    "tenures.jsonl": Part(ExportedTenure, _tenures, _put_tenures),
    "corrections.jsonl": Part(ExportedCorrection, _corrections, _put_corrections),
    "capacities.jsonl": Part(ExportedCapacity, _capacities, _put_capacities),
    "steering.jsonl": Part(ExportedSteering, _steering, _put_steering),
    "pauses.jsonl": Part(ExportedPause, _pauses, _put_pauses),
    "exceptions.jsonl": Part(ExportedException, _exceptions, _put_exceptions),
    "standings.jsonl": Part(ExportedStanding, _standings, _put_standings),
    "after_end.jsonl": Part(ExportedWorkAfterEnd, _after_end, _put_after_end),
}
"""Name of a file -> what it is, in the order in which they follow the manifest."""


def _all_of(kind: type[Row], view: View, rows: Iterable[object]) -> Iterator[Row]:
    for row in rows:
        yield kind(cluster=view.cluster, **_fields(row, kind))


def _fields(row: object, kind: type[Any]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in kind.model_fields if name != "cluster"}


def _own(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row if name != "cluster"}


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    """Sorts names, whatever their order in a file is: in a store they are sorted."""
    return tuple(sorted(names))
