"""Counts what runs executed after their end, while Slurm waited for their processes to end.

A job that traps SIGTERM and cancels or requeues itself continues for KillWait. The ledger uses the
end of the run, so this work is not charged; here it is counted by user, so that it can be shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import structlog

from shapleyprio.common.wording import DAY
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import Kind, Tenures
from shapleyprio.slurm.port import Slurm, SlurmError
from shapleyprio.store import ClusterStore, RunsView, UserAfterEnd, WorkAfterEnd

MOST_ASKED = 500
"""In one cycle Slurm is asked for so many runs, or for all that ended in one second."""

KNOWN_AFTER_SECONDS = 10
"""So long after KillWait accounting knows when the last processes ended."""

FIRST_LOOK_BACK_SECONDS = 3600
"""How far back the first count reaches; Slurm is not asked for runs that had ended earlier."""

SLACK_SECONDS = 2
"""So long after its end a run may still be cleaned up without having done any work."""

MOST_USERS = 10
"""So many users are shown; a series for each user could be more than Prometheus can carry."""

log = structlog.get_logger(__name__)


def count_work_after_end(
    store: ClusterStore, slurm: Slurm, tenures: Tenures, *, t: int, kill_wait: int
) -> Mapping[str, int]:
    """Asks Slurm for runs that have ended, once for each, when it knows the last of their work.

    Args:
        store: has the runs, and gets what is found.
        slurm: the cluster.
        tenures: who holds which account.
        t: second up to which the runs that ended are stored.
        kill_wait: seconds that Slurm waits for processes to end.

    Returns:
        organization, NOBODY among them -> processor-seconds that were found.
    """
    until = t - kill_wait - KNOWN_AFTER_SECONDS
    with store.reading() as view:
        asked = view.runs.work_after_end_until()
        after = until - FIRST_LOOK_BACK_SECONDS if asked is None else asked
        runs, asked_until = _whole_seconds(view.runs, after, until)
    if not runs:
        return {}
    try:
        ends = slurm.last_work(runs)
    except SlurmError as failure:  # priorities do not wait for it, the next cycle asks again
        log.warning("work after the end of jobs is not counted now", why=str(failure))
        return {}
    rows = [
        row
        for run in runs
        if run.key in ends and (row := _after_end(run, ends[run.key], tenures)) is not None
    ]
    store.transact(
        lambda transaction: transaction.runs.save_work_after_end(rows, asked_until=asked_until)
    )
    found: Counter[str] = Counter()
    for row in rows:
        found[row.organization] += row.processor_seconds
    return found


def most_after_end(store: ClusterStore, *, t: int) -> Sequence[UserAfterEnd]:
    """Returns whose runs that ended within a day before a second went on most, the most first."""
    with store.reading() as view:
        return view.runs.users_after_end(t - DAY, t, MOST_USERS)


def _after_end(run: Run, last: int, tenures: Tenures) -> WorkAfterEnd | None:
    """Returns what a run executed until its last process had ended, None if that is nothing."""
    assert run.end is not None
    named: Mapping[Kind, str] = {"account": run.account, "partition": run.partition}
    is_left_out = any(tenures.is_left_out(kind, name, run.end) for kind, name in named.items())
    if is_left_out or last - run.end <= SLACK_SECONDS:
        return None
    return WorkAfterEnd(
        job_id=run.key.job_id,
        submit=run.key.submit,
        start=run.key.start,
        organization=tenures.holder("account", run.account, run.end),
        account=run.account,
        user=run.user,
        end=run.end,
        processor_seconds=sum(run.processors.values()) * (last - run.end),
    )


def _whole_seconds(stored: RunsView, after: int, until: int) -> tuple[list[Run], int]:
    """Returns the first runs with an end in (after, until], and up to which end they are all.

    They are at most `MOST_ASKED`, unless more ended in one second.
    """
    runs = stored.runs_ended_in(after, until, MOST_ASKED)
    if len(runs) < MOST_ASKED:
        return runs, until
    last = runs[-1].end or 0
    before = [run for run in runs if run.end != last]
    return (before, last - 1) if before else (stored.runs_ended_in(last - 1, last), last)
