"""The waiting work of an estimate, in plain words and by user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter

from shapleyprio.cli.shown.tables import Cells, FittingColumn, FittingTable
from shapleyprio.common.wording import count, listed, processor_hours, whole
from shapleyprio.daemon.answering.estimated import OrganizationWaitingWork
from shapleyprio.store import WaitingWork

MOST_USERS = 10
"""So many have a line; JSON has all."""

MOST_NAMED = 3
"""So many stand in a sentence."""


def in_words(work: OrganizationWaitingWork) -> str:
    """Returns how much there is, as for a cell of a table."""
    if not work.jobs:
        return "none"
    return f"{count(work.jobs, 'job')}, {processor_hours(work.processor_seconds)} processor-h"


def users_table(work: Iterable[OrganizationWaitingWork]) -> tuple[str, FittingTable] | None:
    """Returns a heading, and a line for each of the users who bring most; None without any."""
    rows = sorted(
        (row for own in work for row in own.users),
        key=attrgetter("processor_seconds"),
        reverse=True,
    )
    if not rows:
        return None
    heading = "waiting work in the estimate by user"
    if len(rows) > MOST_USERS:
        heading += f", the {MOST_USERS} largest of {whole(len(rows))}; --json has all"
    rows = rows[:MOST_USERS]
    columns = [
        FittingColumn(name, [getattr(row, name) for row in rows], Cells.NAME)
        for name in ("user", "account", "organization")
    ]
    hours = [processor_hours(row.processor_seconds) for row in rows]
    return f"{heading}:", FittingTable(
        [
            *columns,
            FittingColumn("jobs", [whole(row.jobs) for row in rows]),
            FittingColumn("processor-hours", hours),
        ]
    )


def sentences_on_waiting_work(
    organization: str,
    work: OrganizationWaitingWork | None,
    whose: str,
    is_theirs: Callable[[WaitingWork], bool],
) -> list[str]:
    """Says what an organization's pending jobs bring into the estimate, and who brings it.

    Args:
        organization: its name.
        work: that it brings; None without an estimate.
        whose: part of it is named apart, such as ``user ann``; empty for NOBODY's.
        is_theirs: whether that is theirs.
    """
    if work is None:
        return []
    if not work.jobs:
        return [f"No pending job of {organization} counts in the newest estimate."]
    counts = "counts" if work.jobs == 1 else "count"
    sentence = (
        f"{count(work.jobs, 'pending job')} of {organization} {counts} in the newest estimate, "
        f"with {processor_hours(work.processor_seconds)} processor-hours"
    )
    if whose:
        theirs = [row for row in work.users if is_theirs(row)]
        seconds = sum(row.processor_seconds for row in theirs)
        sentence += f", of these {count(sum(row.jobs for row in theirs), 'job')}"
        sentence += f" with {processor_hours(seconds)} of {whose}" if theirs else f" of {whose}"
    return [f"{sentence}.", *_on_users(work.users)]


def _on_users(rows: Iterable[WaitingWork]) -> list[str]:
    """Says who brings most, where several may be seen."""
    by_user: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        by_user[row.user] += row.processor_seconds
    if len(by_user) < 2:
        return []
    most = sorted(by_user, key=lambda user: -by_user[user])
    named = [f"{user} ({processor_hours(by_user[user])} processor-h)" for user in most]
    return [f"It comes from {listed(named, most=MOST_NAMED)}."]
