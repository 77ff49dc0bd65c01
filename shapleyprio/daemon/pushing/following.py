"""Pending jobs follow priorities that were written at their account instead of at the job.

Slurm computes the priority of a pending job again when somebody updates the job, else only every
PriorityCalcPeriod. An update that changes nothing will do: a touch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shapleyprio.daemon.pushing.by_hand import Kind
from shapleyprio.daemon.pushing.push import Wanted, explains
from shapleyprio.slurm.channels import Channel, PriorityTarget
from shapleyprio.slurm.port import PendingJob, Slurm, unchecked
from shapleyprio.store import ManagedValue, NewPush

MOST_TOUCHED = 5_000
"""Jobs touched in one cycle, those of the highest priority first; each costs as much as a write."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """What others have set where we write; it is left as it is.

    Attributes:
        targets: keys of targets that somebody else has set since we wrote.
        jobs: labels of pending jobs with points that come neither from the value at their target
            nor from the value before it.
        by_hand: what was set at jobs themselves -> labels of the jobs.
    """

    targets: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    by_hand: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)


class Followers:
    """The pending jobs that have other points than what they have them of.

    Each is touched once for a value: one that does not follow then has its points of something
    that somebody else has set.
    """

    def __init__(self) -> None:
        self._behind: Sequence[_Behind] = ()
        self._touched: dict[int, int] = {}

    def await_values(
        self,
        channel: Channel,
        pending: Iterable[PendingJob],
        values: Mapping[str, int],
        managed: Mapping[str, ManagedValue],
    ) -> list[PendingJob]:
        """Notes which jobs are behind; returns those that somebody else keeps from following.

        Args:
            channel: by which we write.
            pending: the jobs that wait.
            values: key of a target -> what its jobs are to have.
            managed: key of a target -> what we wrote there.
        """
        self._behind = _behind(channel, pending, values)
        self._touched = {
            one.job.job_id: one.value
            for one in self._behind
            if self._touched.get(one.job.job_id) == one.value
        }
        return [
            one.job
            for one in self._behind
            if one.job.job_id in self._touched
            or not _explained(managed.get(channel.key_of(one.job)), one.shown)
        ]

    def touch(
        self,
        slurm: Slurm,
        fresh: Collection[str] = (),
        check: Callable[[], float] = unchecked,
    ) -> int:
        """Touches jobs that are behind, and returns how many.

        Args:
            slurm: where they wait, and what they are to follow stands.
            fresh: targets of jobs whose site factor has changed since the queue was read.
            check: as the port `Slurm` has it.

        Raises:
            SlurmUnavailableError: Slurm went away; the rest follows by itself.
        """
        due = [
            one
            for one in self._behind
            if one.job.job_id not in self._touched and one.job.target not in fresh
        ]
        due.sort(key=lambda one: (-one.value, -one.job.priority))
        factors = {
            one.job.target: one.job.site_factor
            for one in due[:MOST_TOUCHED]
            if one.job.site_factor is not None
        }
        if not factors:
            return 0
        done = factors.keys() - slurm.write("site_factor", factors, check).keys()
        self._touched |= {one.job.job_id: one.value for one in due if one.job.target in done}
        return len(done)


@dataclass(frozen=True, slots=True)
class _Behind:
    """A job that shows other points than the value that it should follow."""

    job: PendingJob
    shown: int
    value: int


def values_after(
    targets: Iterable[PriorityTarget], planned: Iterable[NewPush], wanted: Wanted
) -> dict[str, int]:
    """Returns key of an organization's target -> the value there after the planned writes."""
    values = {each.key: each.value for each in targets if each.organization in wanted.points}
    return values | {push.key: push.new for push in planned if push.key in values}


def _behind(
    channel: Channel, pending: Iterable[PendingJob], values: Mapping[str, int]
) -> list[_Behind]:
    if not channel.follows_late:
        return []
    found = []
    for job in pending:
        shown, value = channel.shown(job), values.get(channel.key_of(job))
        if shown is not None and value is not None and shown != value:
            found.append(_Behind(job, shown, value))
    return found


def _explained(managed: ManagedValue | None, shown: int) -> bool:
    return managed is None or shown == 0 or explains(managed, shown)
