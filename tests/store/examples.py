"""Rows to test with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.fairness.tenure import Allocation
from shapleyprio.store import (
    AllocatedRun,
    CycleRow,
    ExceptionRow,
    NewPush,
    StandingRow,
    Watermark,
    WorkAfterEnd,
)

BEGIN = 1_700_000_000


def work_after_end(**values: Any) -> WorkAfterEnd:
    """A minute of a processor, by a job of eve's that ended at once."""
    row = WorkAfterEnd(
        job_id=1,
        submit=BEGIN,
        start=BEGIN,
        organization="physics",
        account="phys",
        user="eve",
        end=BEGIN + 10,
        processor_seconds=60,
    )
    return replace(row, **values)


def placed_run(
    job_id: int,
    begin: int = BEGIN,
    end: int | None = None,
    *,
    submit: int = BEGIN - 60,
    release: int | None = None,
    limit: int | None = None,
    organization: str = "physics",
    owners: tuple[str, ...] = ("biology",),
) -> AllocatedRun:
    """A run on one node of each owner."""
    run = Run(
        key=RunKey(job_id, submit, begin),
        label=str(job_id),
        account="phys",
        user="ann",
        state="RUNNING" if end is None else "COMPLETED",
        release=submit if release is None else release,
        limit=limit,
        begin=begin,
        end=end,
        processors={f"{owner}1": 16 for owner in owners},
    )
    return run, tuple(Allocation(organization, owner, 16, begin, end) for owner in owners)


def watermark(**changes: Any) -> Watermark:
    values = {"opened": 0, "observed_until": BEGIN, "sure_until": BEGIN, "accounted_to": BEGIN}
    return Watermark(**{**values, "horizon": None, "folded_to": 0, "pruned_until": 0, **changes})


def cycle(number: int, started: int = BEGIN, outcome: str = "done") -> CycleRow:
    return CycleRow(
        number=number,
        started=started,
        finished=started + 2,
        outcome=outcome,
        t=started + 1,
        quarantined=3,
        refused=2,
        seconds={"push": 0.25},
    )


def exception(job_id: int, since: int = BEGIN, **values: Any) -> ExceptionRow:
    """A job of physics goes before the others of physics."""
    row = ExceptionRow(
        job_id=job_id,
        since=since,
        label=str(job_id),
        organization="physics",
        user="ann",
        reason="a deadline",
        before_all=False,
    )
    return replace(row, **values)


def standing(cycle: int, organization: str = "physics", t: int = BEGIN) -> StandingRow:
    return StandingRow(
        cycle=cycle,
        organization=organization,
        t=t,
        contribution=10**30,
        utility=-(10**30),
        score=2 * 10**30,
        parts=10**13,
        priority=1000,
        pending=3,
        running=4,
        processors=128,
    )


def new_push(key: str, new: int = 5, *, at: int = BEGIN, channel: str = "nice") -> NewPush:
    return NewPush(
        cycle=1,
        channel=channel,
        target=key,
        key=key,
        organization="physics",
        label=key,
        original=100,
        old=100,
        new=new,
        reason="balance 7",
        at=at,
    )
