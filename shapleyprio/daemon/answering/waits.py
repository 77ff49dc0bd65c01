"""How long the jobs of organizations wait, partition by partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from shapleyprio.common.wording import DAY
from shapleyprio.store import PendingJobs, View, Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitsInPartition:
    """How long the jobs of an organization wait in a partition; all times in seconds.

    Attributes:
        organization: the jobs' organization.
        partition: where they started, or may start.
        started: how many started, in the day before the last cycle or in the month of a report.
        median, ninth_decile, longest: waits of these, from release to start; None without any.
        pending: how many could start and wait.
        oldest: for how long the first of these has waited; None without any.
    """

    organization: str
    partition: str
    started: int
    median: int | None
    ninth_decile: int | None
    longest: int | None
    pending: int
    oldest: int | None

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return asdict(self)


def read_waits(view: View, t: int) -> tuple[WaitsInPartition, ...]:
    """Reads how long jobs wait, by organization and partition.

    Args:
        view: of the store.
        t: second of the last cycle.
    """
    return by_place(view.runs.waits(since=t - DAY), view.observed.pending_jobs(), t)


def by_place(
    waits: Iterable[Wait], rows: Iterable[PendingJobs], t: int
) -> tuple[WaitsInPartition, ...]:
    """Puts together how long jobs wait, by organization and partition.

    Args:
        waits: of jobs that started.
        rows: of those that wait.
        t: second for which these are meant.
    """
    started: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for wait in waits:
        started[wait.organization, wait.partition].append(wait.seconds)
    pending = {(row.organization, row.partition): row for row in rows}
    found = []
    for place in sorted(started.keys() | pending.keys()):
        seconds, row = sorted(started.get(place, ())), pending.get(place)
        found.append(
            WaitsInPartition(
                organization=place[0],
                partition=place[1],
                started=len(seconds),
                median=_quantile(seconds, 50),
                ninth_decile=_quantile(seconds, 90),
                longest=_quantile(seconds, 100),
                pending=row.jobs if row else 0,
                oldest=t - row.since if row else None,
            )
        )
    return tuple(found)


def _quantile(ordered: list[int], percent: int) -> int | None:
    """Returns the smallest value that at least so many percent do not exceed."""
    return ordered[-(-percent * len(ordered) // 100) - 1] if ordered else None
