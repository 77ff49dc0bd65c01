"""What is known from one cycle to the next: what we wrote, and where nothing is to be written.

What is to be written at a job follows from what Slurm shows of it, from what we did to it, and from
what its organization is to have. Slurm's adapter returns the same object for an unchanged job,
so only the rest of a large queue is planned again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter, is_not

from shapleyprio.slurm.channels import Claims
from shapleyprio.slurm.port import PendingJob
from shapleyprio.slurm.remembering import forget_others
from shapleyprio.store import ManagedValue, View


class KnownValues:
    """What we did to all that carries priorities on one channel, as the store has it.

    It changes by pushes alone, whose numbers grow; whoever prunes has to `forget`.

    Args:
        channel: its name.
    """

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._values: dict[str, ManagedValue] | None = None
        self._token: int | None = None
        self._last = 0

    def forget(self) -> None:
        """Has everything reread."""
        self._values = None

    def read(self, view: View) -> Mapping[str, ManagedValue]:
        """Returns key -> managed value; reads what was pushed since the last time."""
        lease, last = view.lease.read(), view.pushes.last_push()
        token = None if lease is None else lease.token
        if self._values is None or token != self._token or last < self._last:
            self._values = view.pushes.managed_values(self._channel)
        elif last > self._last:
            keys = view.pushes.keys_pushed_after(self._channel, self._last)
            self._values |= view.pushes.managed_values(self._channel, keys)
        self._token, self._last = token, last
        return self._values


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBasis:
    """What decides what is to be written, beside the job itself.

    Attributes:
        points: organization -> points.
        claims: the jobs' organizations.
        given, least: as `push.plan` has them.
        managed: what we did, the very same mapping unless others may have written as well.
    """

    points: Mapping[str, int] = field(default_factory=dict)
    claims: Claims = field(default_factory=Claims)
    given: Collection[int] = ()
    least: int | None = None
    managed: Mapping[str, ManagedValue] = field(default_factory=dict)

    def changed_since(self, before: PlanBasis) -> set[str] | None:
        """Returns the organizations whose points have changed; None if more than that has."""
        if (
            self.managed is not before.managed
            or (self.given, self.least) != (before.given, before.least)
            or self.claims != before.claims
        ):
            return None
        return {name for name, _ in self.points.items() ^ before.points.items()}


class SettledJobs:
    """The jobs at which nothing is to be written."""

    def __init__(self) -> None:
        self._basis = PlanBasis()
        self._settled: dict[int, PendingJob] = {}

    def others(self, pending: Sequence[PendingJob], basis: PlanBasis) -> list[PendingJob]:
        """Returns the jobs that have to be planned.

        Args:
            pending: all that wait.
            basis: what else decides.
        """
        changed = basis.changed_since(self._basis)
        if changed is None:
            self._settled = {}
        elif changed:
            self._settled = {
                job_id: job
                for job_id, job in self._settled.items()
                if basis.claims.of(job) not in changed
            }
        self._basis = basis
        settled = map(self._settled.get, map(attrgetter("job_id"), pending))
        return list(compress(pending, map(is_not, pending, settled)))

    def settle(
        self,
        pending: Sequence[PendingJob],
        planned: Sequence[PendingJob],
        open_keys: Collection[str],
    ) -> None:
        """Notes that at all but some jobs nothing is to be written.

        A task split from an array is never settled: what is written to the array counts there.

        Args:
            pending: all that wait.
            planned: those that had to be planned.
            open_keys: job ids at which something is to be written.
        """
        for job in planned:
            if job.array_job_id != job.job_id or str(job.job_id) in open_keys:
                self._settled.pop(job.job_id, None)
            else:
                self._settled[job.job_id] = job
        forget_others(self._settled, pending)
