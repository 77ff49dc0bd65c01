"""Channels that write to every job that waits: the site factor and the nice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import ClassVar

from shapleyprio.slurm.channels.base import Channel, Claims, JobField, PriorityTarget
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout, PrioritySettings
from shapleyprio.slurm.port import PendingJob, Slurm

LARGEST_SUMMAND = 2**31 - 3


class JobChannel(Channel):
    """Writes a summand of the priority of every job that waits."""

    carrier = "job"
    job_field: ClassVar[JobField]
    smallest = -LARGEST_SUMMAND
    largest = LARGEST_SUMMAND
    admin_level = "Operator"

    def shown(self, job: PendingJob) -> int | None:
        """Returns the value of the field; None where Slurm does not show it, or go by it."""
        value: int | None = getattr(job, self.job_field.attribute)
        return None if job.is_fixed else value

    def targets(
        self,
        slurm: Slurm,  # noqa: ARG002 - the queue shows it
        pending: Sequence[PendingJob],
        claims: Claims,
    ) -> list[PriorityTarget]:
        """Returns the jobs whose value Slurm shows now."""
        return [
            PriorityTarget(
                target=job.target,
                key=(key := self.key_of(job)),
                base_key=key if job.array_job_id == job.job_id else str(job.array_job_id),
                label=job.label,
                organization=claims.of(job),
                value=value,
            )
            for job in pending
            if (value := self.shown(job)) is not None
        ]

    def values(self, slurm: Slurm, keys: Collection[str]) -> Mapping[str, int | None]:
        """Reads the values at the jobs now."""
        found = slurm.values_of(self.name, [int(key) for key in keys])
        return {str(job_id): value for job_id, value in found.items()}

    def own_priority(self, job: PendingJob, original: int | None) -> int:
        """Returns its priority without our points."""
        value = self.shown(job)
        if value is None or original is None:
            return job.priority
        return job.priority - self.job_field.sign * (value - original)

    def key_of(self, job: PendingJob) -> str:
        """Returns the job's own key, mostly the very text of its label."""
        key = str(job.job_id)
        return job.label if job.label == key else key


class SiteFactor(JobChannel):
    """The site factor of jobs: ours alone, and not the users' to change."""

    name = "site_factor"
    written = "the site factor of the pending jobs"
    called = "site factor"
    job_field = JobField(
        attribute="site_factor",
        sign=1,
        scontrol="SiteFactor",
        sprio="%S",
        pyslurm="site_factor",
    )

    def value(self, original: int, points: int) -> int:  # noqa: ARG002 - it is ours alone
        """Returns the points."""
        return points

    def is_foreign(self, value: int) -> bool:
        """Returns whether it is not what every job has from the begin."""
        return value != 0

    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:  # noqa: ARG002 - not its QOS
        """Demands that no plugin sets site factors."""
        if plugin := layout.settings.site_factor_plugin:
            yield Finding(
                Severity.WARNING,
                "PrioritySiteFactorPlugin",
                f"is {plugin}, which may overwrite the site factors that are written",
                'remove it from slurm.conf, or set push.channel = "nice"',
            )


class Nice(JobChannel):
    """The nice of jobs, which users may set as well: the points come off what they asked for."""

    name = "nice"
    written = "the nice of the pending jobs"
    called = "nice"
    job_field = JobField(
        attribute="nice", sign=-1, scontrol="Nice", sprio="%N", squeue="%y", pyslurm="nice"
    )

    def value(self, original: int, points: int) -> int:
        """Returns the user's nice less the points."""
        return original - points

    def least_asked(self, ask_settings: Callable[[], PrioritySettings]) -> int | None:
        """Returns 0 where ``scontrol top`` may have made less of what we wrote.

        Elsewhere only operators can choose less than 0, and what they choose counts.
        """
        return 0 if ask_settings().user_top else None

    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:  # noqa: ARG002 - none of it helps
        """Notices that users may take the points away; refuses what makes theirs of ours."""
        if layout.settings.user_top:
            yield Finding(
                Severity.ERROR,
                "SchedulerParameters",
                "has enable_user_top: `scontrol top` changes what we write to a user's jobs, which "
                "cannot be distinguished from what an operator asks for, so a nice below 0 never "
                "counts as asked for",
                'set push.channel = "site_factor", or remove enable_user_top from slurm.conf',
            )
        yield Finding(
            Severity.NOTICE,
            "push.channel",
            "users may set the nice of their own jobs, which drops what we added until the next "
            "cycle",
            'prefer push.channel = "site_factor", or refuse such changes in a job_submit plugin',
        )
