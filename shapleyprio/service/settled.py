"""The waiting jobs at which nothing is to be written, until something changes.

What is to be written at a job follows from what Slurm shows of it, from what we did to it, and from
what its organization is to have. Slurm's adapter gives the very same object for a job of which
nothing has changed; so of a large queue only the rest has to be planned again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from shapleyprio.slurm.channels import Claims
from shapleyprio.slurm.port import PendingJob
from shapleyprio.store import ManagedValue


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBasis:
    """What decides what is to be written, beside the job itself.

    Attributes:
        points: organization -> points.
        claims: whose the jobs are.
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
                identity: job
                for identity, job in self._settled.items()
                if basis.claims.of(job) not in changed
            }
        self._basis = basis
        return [job for job in pending if id(job) not in self._settled]

    def settle(
        self, pending: Sequence[PendingJob], planned: Sequence[PendingJob], open_keys: set[str]
    ) -> None:
        """Notes that at all but some jobs nothing is to be written.

        A task split from an array is never settled: what is written to the array counts there.

        Args:
            pending: all that wait; each is kept, so no other object has its identity.
            planned: those that had to be planned.
            open_keys: job ids at which something is to be written.
        """
        self._settled = {}  # the old ones are gone before as many are there anew
        self._settled = dict(zip(map(id, pending), pending, strict=True))
        for job in planned:
            if job.array_job_id != job.job_id or str(job.job_id) in open_keys:
                del self._settled[id(job)]
