"""Reads out of the store what was in force while what is audited came about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapleyprio.common.wording import clock_time, listed, processor_hours, visible
from shapleyprio.daemon.answering.changes import Change, read_changes
from shapleyprio.replay.audit.in_force import InForce
from shapleyprio.store import ClusterStore, View


def read_in_force(ledgers: Sequence[ClusterStore], begin: int, end: int) -> InForce:
    """Reads what steered and what changed hands in a window.

    Args:
        ledgers: of the game; of several, what steered the first counts, for all have one rule.
        begin: seconds since the epoch.
        end: likewise.

    Raises:
        StoreError: the store cannot be read.
    """
    steering = []
    changes: list[Change] = []
    exceptions: list[str] = []
    for ledger in ledgers:
        with ledger.reading() as view:
            exceptions += _exceptions(view, begin, end)
            steering.append(view.steering(begin))
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
        exceptions=tuple(exceptions),
    )


def _exceptions(view: View, begin: int, end: int) -> Iterator[str]:
    """Yields the exceptions that lasted in a window: whose, why, and what each cost others."""
    for row in view.exceptions(begin):
        if row.since >= end:
            continue
        passed = [f"{jobs} of {name or 'nobody'}" for name, jobs in row.passed.items()]
        used = sum(
            one.processors * (min(one.end or end, end) - min(one.begin, end))
            for _, allocations in view.runs_of(row.job_id, row.since)
            for one in allocations
        )
        yield visible(
            f"job {row.label} of {row.organization} before {row.others} since "
            f"{clock_time(row.since)}, by {row.user} ({row.reason}); it passed "
            f"{listed(passed) or 'no jobs'}, and used {processor_hours(used)} processor-hours"
        )
