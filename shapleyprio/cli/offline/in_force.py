"""Reads out of the store what was in force while what is audited came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from shapleyprio.common.wording import clock_time, count, listed, processor_hours, visible
from shapleyprio.daemon.answering.changes import Change, read_changes
from shapleyprio.daemon.pushing.lasting import STARTED, TIME_IS_UP
from shapleyprio.replay.audit.in_force import InForce
from shapleyprio.store import ClusterStore, ExceptionRow, View


def read_in_force(ledgers: Sequence[ClusterStore], begin: int, end: int) -> InForce:
    """Reads what steered, what changed hands and what admins ordered in a window.

    Args:
        ledgers: of the game; of several, what steered the first counts, for all have one rule.
        begin: seconds since the epoch.
        end: likewise.

    Raises:
        StoreError: the store cannot be read.
    """
    steering = []
    changes: list[Change] = []
    orders: list[str] = []
    guarantees: list[ExceptionRow] = []
    for ledger in ledgers:
        with ledger.reading() as view:
            rows = [row for row in view.orders.exceptions(begin) if row.since < end]
            orders += [*_pauses(view, begin, end), *_exceptions(view, rows, end)]
            guarantees += [row for row in rows if row.by_guarantee]
            steering.append(view.history.steering(begin))
            changes += read_changes(view, begin, patience=end - begin)
    return InForce(
        begin=begin,
        end=end,
        steering=tuple(steering[0] if steering else ()),
        changes=tuple(
            f"{one.what} at {clock_time(one.at)}"
            for one in changes
            if one.kind == "ownership" and one.at < end
        ),
        orders=(*dict.fromkeys(orders), *_guarantees(guarantees)),
    )


def _pauses(view: View, begin: int, end: int) -> Iterator[str]:
    """Yields the pauses that lasted in a window: whose, why, and what became of priorities."""
    for row in view.orders.pauses(begin):
        if row.since < end:
            until = "on" if row.until is None else f"until {clock_time(row.until)}"
            stood = "stayed as written" if row.keep else "were put back"
            yield visible(
                f"Pause: since {clock_time(row.since)} {until}, by {row.user}{_why(row.reason)}; "
                f"priorities {stood}"
            )


def _guarantees(rows: Sequence[ExceptionRow]) -> Iterator[str]:
    """Yields what became of the guarantees of each organization."""
    asked = Counter(row.organization for row in rows)
    ended = Counter((row.organization, row.ended_by) for row in rows)
    for name, number in asked.items():
        yield visible(
            f"Guarantee of {name}: asked for by {count(number, 'job')}, kept for "
            f"{ended[name, STARTED]}, broken for {ended[name, TIME_IS_UP]}"
        )


def _exceptions(view: View, rows: Sequence[ExceptionRow], end: int) -> Iterator[str]:
    """Yields the exceptions that lasted in a window: whose, why, and what each cost others."""
    for row in rows:
        if row.by_guarantee:
            continue
        passed = [f"{jobs} of {name or 'nobody'}" for name, jobs in row.passed.items()]
        used = sum(
            one.processors * (min(one.end or end, end) - min(one.begin, end))
            for run, allocations in view.runs.runs_of(row.job_id, row.since)
            for one in allocations
            if row.is_of_array or run.key.job_id == row.job_id
        )
        yield visible(
            f"Exception: job {row.label} of {row.organization} before {row.others} since "
            f"{clock_time(row.since)}, by {row.user}{_why(row.reason)}; it passed "
            f"{listed(passed) or 'no jobs'}, and used {processor_hours(used)} processor-hours"
        )


def _why(reason: str) -> str:
    """Returns a reason in brackets; of an anonymized export there is none."""
    return f" ({reason})" if reason else ""
