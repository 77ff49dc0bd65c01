"""Points at submission: the table that slurmctld's Lua script reads, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import structlog

from shapleyprio.common.errors import OutputError
from shapleyprio.daemon.pushing.push import BEFORE_SUBMISSION, Stamp, Wanted
from shapleyprio.slurm.channels import Channel, PriorityTarget
from shapleyprio.slurm.points_table import CHANNEL, PointsTable, remove_table, write_table
from shapleyprio.slurm.port import PendingJob
from shapleyprio.store import (
    ClusterStore,
    ManagedValue,
    NewPush,
    PublishedPoints,
    PushState,
    Transaction,
)

REASON = "from the table of points"
SHORTEST_SECONDS = 900

log = structlog.get_logger(__name__)


def lasting(poll_interval: int) -> int:
    """Returns for how many seconds a table counts that every cycle rewrites."""
    return max(SHORTEST_SECONDS, 10 * poll_interval)


def given_on(channel: Channel, published: PublishedPoints | None) -> frozenset[int]:
    """Returns the values that the table of points may have put where the channel writes."""
    if published is None or channel.name != CHANNEL:
        return frozenset()
    return frozenset(published.given)


class TableKeeper:
    """Keeps the table of points as the configuration has it.

    Args:
        path: see below.
        lasts: seconds after which slurmctld ignores it.
        store: of the cluster, which remembers what the table has given.

    Attributes:
        path: of the table; None for none.
    """

    def __init__(self, path: Path | None, lasts: int, store: ClusterStore) -> None:
        self.path = path
        self._lasts = lasts
        self._store = store

    def keep(self, points: Mapping[str, int], now: int, ask_time: Callable[[], int]) -> bool:
        """Writes the table, or removes the one that is no longer configured.

        A failure is logged: jobs then get their points from the next cycle after their submission.

        Args:
            points: account -> points.
            now: second for which they count, by Slurm's clock.
            ask_time: asks for Slurm's clock again.

        Returns:
            whether there is a table of now.

        Raises:
            StoreError: nothing was written.
        """
        with self._store.reading() as view:
            published = view.pushes.published_points()
        try:
            if published and published.until is None and Path(published.path) != self.path:
                remove_table(Path(published.path))
            if self.path is None:
                return False
            path, given = self.path, sorted(set(points.values()))
            self._store.transact(lambda transaction: transaction.pushes.will_publish(path, given))
            table = PointsTable(written=now, lasts=self._lasts, points=points)
            write_table(self.path, table)
        except OutputError as error:
            log.error("the table of points is not as it should be", why=str(error))
            return False
        if published is None or published.since is None:
            since = ask_time()
            self._store.transact(lambda transaction: transaction.pushes.is_published(since))
        return True

    def end(self, ask_time: Callable[[], int]) -> None:
        """Notes that there is no table, when its jobs are restored or steered otherwise.

        Args:
            ask_time: asks for Slurm's clock. A table that could not be removed lasts on.
        """
        if self.path is not None:
            return
        with self._store.reading() as view:
            published = view.pushes.published_points()
        if published is not None and published.until is None:
            lasts = self._lasts if Path(published.path).exists() else 0
            until = ask_time() + lasts
            self._store.transact(lambda transaction: transaction.pushes.is_withdrawn(until))


def withdraw(store: ClusterStore) -> None:
    """Removes the table of points, wherever it was last.

    Raises:
        OutputError: it is still there.
        StoreError: it is not known where it was.
    """
    with store.reading() as view:
        published = view.pushes.published_points()
    if published is not None:
        remove_table(Path(published.path))


def forget(transaction: Transaction, waiting: Iterable[PendingJob]) -> None:
    """Forgets a table that is no more, once all jobs are gone that may have got points from it.

    Args:
        transaction: in which it is forgotten.
        waiting: all jobs that wait.
    """
    published = transaction.pushes.published_points()
    if published is None or published.until is None:
        return
    submitted = [job.submit for job in waiting]
    submitted += [run.key.submit for run in transaction.runs.unfinished()]
    if not any(published.may_have_given(second) for second in submitted):
        transaction.pushes.save_published_points(None)


def note_found(store: ClusterStore, found: Sequence[NewPush]) -> None:
    """Records what jobs got at submission, so that it can be restored and explained."""
    if found:
        store.transact(lambda transaction: transaction.pushes.plan(found, PushState.AT_SUBMISSION))


def first_seen(
    targets: Iterable[PriorityTarget], managed: Mapping[str, ManagedValue]
) -> list[PriorityTarget]:
    """Returns the targets without a record, of themselves or of their array."""
    return [one for one in targets if one.key not in managed and one.base_key not in managed]


def found_at(
    targets: Iterable[PriorityTarget], given: Iterable[int], stamp: Stamp
) -> list[NewPush]:
    """Returns, for the record, what the table of points has put at targets that are first seen."""
    known = frozenset(given)
    return [
        NewPush(
            cycle=stamp.cycle,
            channel=CHANNEL,
            target=target.target,
            key=target.key,
            organization=target.organization,
            label=target.label,
            original=BEFORE_SUBMISSION,
            old=BEFORE_SUBMISSION,
            new=target.value,
            reason=REASON,
            at=stamp.at,
        )
        for target in targets
        if target.value in known
    ]


def count_missed(
    targets: Iterable[PriorityTarget],
    pending: Iterable[PendingJob],
    published: PublishedPoints | None,
    wanted: Wanted,
) -> int:
    """Counts jobs, first seen, to which the table should have given points and did not.

    Args:
        targets: those that are first seen.
        pending: the jobs that wait.
        published: since when the table gives points.
        wanted: which organizations have any.
    """
    since = published.since if published else None
    if since is None:
        return 0
    submitted = {job.target: job.submit for job in pending}
    return sum(
        target.value == BEFORE_SUBMISSION
        and target.organization in wanted.points
        and submitted.get(target.target, 0) > since
        for target in targets
    )
