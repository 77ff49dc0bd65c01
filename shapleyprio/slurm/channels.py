"""The channels: the ways in which a priority gets into Slurm, one class each.

A channel knows what carries its priorities, what an organization's points become there, how far
they count beside Slurm's own factors, and what `check` demands of the cluster for it. How its
name is written in a command is the adapters' business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import ClassVar

from shapleyprio.fairness.scale import Scale
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.port import Layout, Malformed, PendingJob, Slurm
from shapleyprio.slurm.priority import is_raw

CALC_PERIOD_SECONDS = 60
"""The shortest PriorityCalcPeriod there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityTarget:
    """One thing in Slurm that carries a priority: a pending job, or a QOS.

    Attributes:
        target: what `Slurm.write` takes.
        key: what its managed value is kept under: the job id, or the name of the QOS.
        base_key: key of the array that a task was split from, else the same as `key`.
        label: what users call it.
        organization: who gets the priority; NOBODY's targets are left as they were found.
        value: what stands there now.
    """

    target: str
    key: str
    base_key: str
    label: str
    organization: str
    value: int


@dataclass(frozen=True, slots=True)
class ChannelValues:
    """What stands at the targets of a channel.

    Attributes:
        by_target: target -> its value, None where Slurm does not show it.
        malformed: lines that could not be read. Targets or values may be missing because of them.
    """

    by_target: Mapping[str, int | None]
    malformed: Sequence[Malformed] = ()


@dataclass(frozen=True, slots=True)
class Claims:
    """For which organization the things in Slurm count that a channel may write to.

    Attributes:
        accounts: account -> organization; jobs of other accounts are NOBODY's.
        qos: QOS -> organization, in the order of the configuration.
    """

    accounts: Mapping[str, str] = field(default_factory=dict)
    qos: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_nobody(cls, keys: Iterable[str]) -> Claims:
        """Returns claims under which the targets with these keys are NOBODY's."""
        return cls(qos=dict.fromkeys(keys, NOBODY))


class Channel(ABC):
    """A way to write a priority into Slurm.

    Attributes:
        name: in the configuration, in the store and to `Slurm.write`.
        written: what it writes, in words for the configuration's reference.
        job_field: the attribute of `PendingJob` that it writes; None if it writes no jobs.
        needs_qos: whether every organization with accounts needs a QOS of its own.
        factor: the one of Slurm's priority factors that carries the points; None for a summand
            of its own.
    """

    name: ClassVar[str]
    written: ClassVar[str]
    job_field: ClassVar[str | None] = None
    needs_qos: ClassVar[bool] = False
    factor: ClassVar[str | None] = None

    @property
    def per_job(self) -> bool:
        """Whether it writes to every job that waits.

        If so a new job has no points until the next cycle, and what was written stays with a job
        while it runs.
        """
        return self.job_field is not None

    @abstractmethod
    def targets(
        self, slurm: Slurm, pending: Sequence[PendingJob], claims: Claims
    ) -> list[PriorityTarget]:
        """Returns what carries a priority and what stands there now.

        What Slurm does not show at the moment is passed over.

        Args:
            slurm: asked where the queue does not show it.
            pending: the jobs that wait.
            claims: whose they are.
        """

    @abstractmethod
    def values(self, slurm: Slurm) -> ChannelValues:
        """Reads what stands at all targets now."""

    @abstractmethod
    def value(self, original: int, points: int) -> int:
        """Returns what has to stand at a target.

        Args:
            original: what stood there before we wrote.
            points: of its organization; the more, the sooner it starts.
        """

    def step_in_points(self, layout: Layout, scale: Scale, organizations: int) -> int:  # noqa: ARG002 - others need them
        """Returns how many points of a job's priority one step of the scale is worth."""
        return scale.step

    def blocked(self, layout: Layout) -> Finding | None:  # noqa: ARG002 - others need it
        """Returns why nothing that is written would have an effect; None if it has."""
        return None

    @property
    def strict_remedy(self) -> str:
        """What helps where other factors can add more points than a step is worth."""
        return "lower those weights in slurm.conf"

    @abstractmethod
    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:
        """Yields what `check` has to say of the cluster's configuration."""

    def stray_jobs(self, pending: Iterable[PendingJob], claims: Claims) -> Iterator[Finding]:  # noqa: ARG002 - others need them
        """Yields what `check` has to say of waiting jobs that the channel does not reach."""
        yield from ()


class _JobChannel(Channel):
    """Writes a summand of the priority of every job that waits."""

    job_field: ClassVar[str]

    def _value_of(self, job: PendingJob) -> int | None:
        value: int | None = getattr(job, self.job_field)  # None where Slurm does not show it
        return value

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
                key=str(job.job_id),
                base_key=str(job.array_job_id),
                label=job.label,
                organization=claims.accounts.get(job.account, NOBODY),
                value=value,
            )
            for job in pending
            if (value := self._value_of(job)) is not None
        ]

    def values(self, slurm: Slurm) -> ChannelValues:
        """Reads what stands at the waiting jobs now."""
        queue = slurm.pending()
        return ChannelValues(
            {job.target: self._value_of(job) for job in queue.jobs}, queue.malformed
        )


class SiteFactor(_JobChannel):
    """The site factor of jobs: ours alone, and not the users' to change."""

    name = "site_factor"
    written = "the site factor of the waiting jobs"
    job_field = "site_factor"

    def value(self, original: int, points: int) -> int:  # noqa: ARG002 - it is ours alone
        """Returns the points."""
        return points

    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:  # noqa: ARG002 - not its QOS
        """Demands that no plugin sets site factors."""
        if plugin := layout.settings.site_factor_plugin:
            yield Finding(
                Severity.WARNING,
                "PrioritySiteFactorPlugin",
                f"is {plugin}, which may overwrite the site factors we write",
                'remove it from slurm.conf, or set push.channel = "nice"',
            )


class Nice(_JobChannel):
    """The nice of jobs, which users may set as well: the points come off what they asked for."""

    name = "nice"
    written = "the nice of the waiting jobs"
    job_field = "nice"

    def value(self, original: int, points: int) -> int:
        """Returns the user's nice less the points."""
        return original - points

    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:  # noqa: ARG002 - none of it helps
        """Notices that users may take the points away."""
        yield Finding(
            Severity.NOTICE,
            "push.channel",
            "users may set the nice of their own jobs, which drops what we added until the next "
            "cycle",
            'prefer push.channel = "site_factor", or refuse such changes in a job_submit plugin',
        )


class Qos(Channel):
    """The priority of one QOS for each organization: one write, however many jobs wait."""

    name = "qos"
    written = "the priority of one QOS for each organization"
    needs_qos = True
    factor = "QOS"

    def targets(
        self,
        slurm: Slurm,
        pending: Sequence[PendingJob],  # noqa: ARG002 - jobs do not carry it
        claims: Claims,
    ) -> list[PriorityTarget]:
        """Returns the claimed QOS."""
        return [
            PriorityTarget(
                target=qos,
                key=qos,
                base_key=qos,
                label=qos,
                organization=claims.qos[qos],
                value=priority,
            )
            for qos, priority in slurm.qos_priorities().items()
            if qos in claims.qos
        ]

    def values(self, slurm: Slurm) -> ChannelValues:
        """Reads the priorities of all QOS."""
        return ChannelValues(dict(slurm.qos_priorities()))

    def value(self, original: int, points: int) -> int:  # noqa: ARG002 - it is ours alone
        """Returns the points."""
        return points

    def step_in_points(self, layout: Layout, scale: Scale, organizations: int) -> int:
        """Returns a step's points after Slurm's normalization.

        A QOS's priority is divided by the largest of all QOS and multiplied by PriorityWeightQOS.
        """
        weight = layout.settings.weights.get("QOS", 0)
        if is_raw(layout.settings.flags, "NO_NORMAL_QOS"):
            return weight * scale.step
        largest = max(layout.qos_priorities.values(), default=0)
        return weight * scale.step // max(scale.points(organizations - 1), largest)

    def blocked(self, layout: Layout) -> Finding | None:
        """Demands a weight."""
        if layout.settings.weights.get("QOS"):
            return None
        return Finding(
            Severity.ERROR,
            "PriorityWeightQOS",
            "is 0: the priority of a QOS has no effect",
            "set PriorityWeightQOS=1 and PriorityFlags=NO_NORMAL_QOS in slurm.conf, "
            "or choose another push.channel",
        )

    @property
    def strict_remedy(self) -> str:
        """Other weights, or no normalization of ours."""
        without = "set PriorityFlags=NO_NORMAL_QOS with PriorityWeightQOS=1"
        return f"{super().strict_remedy}, or {without}"

    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:
        """Demands that every QOS is there, and that priorities are computed often."""
        for qos, organization in claims.qos.items():
            if qos not in layout.qos_priorities:
                near = get_close_matches(qos, layout.qos_priorities, n=1)
                hint = f"did you mean {near[0]!r}, or is it to be made: " if near else "make it: "
                yield Finding(
                    Severity.ERROR,
                    f"organization {organization}",
                    f"Slurm knows no QOS {qos}",
                    f"{hint}sacctmgr add qos {qos}",
                )
        period = layout.settings.calc_period_seconds
        if period > CALC_PERIOD_SECONDS:
            yield Finding(
                Severity.WARNING,
                "PriorityCalcPeriod",
                f"is {period} s: waiting jobs follow the priority of their QOS only that often",
                "set PriorityCalcPeriod=00:01:00 in slurm.conf",
            )

    def stray_jobs(self, pending: Iterable[PendingJob], claims: Claims) -> Iterator[Finding]:
        """Counts jobs of an organization under another QOS than its own."""
        own = {organization: qos for qos, organization in claims.qos.items()}
        strays: Counter[tuple[str, str]] = Counter()
        for job in pending:
            name = claims.accounts.get(job.account, NOBODY)
            if own.get(name) not in {None, job.qos}:
                strays[name, job.qos] += 1
        for (name, qos), count in strays.items():
            yield Finding(
                Severity.WARNING,
                f"organization {name}",
                f"{count} of its waiting jobs are under QOS {qos} and do not get its priority",
                f"sacctmgr modify account ACCOUNT set qos={own[name]} defaultqos={own[name]}",
            )


CHANNELS: dict[str, Channel] = {channel.name: channel for channel in (SiteFactor(), Nice(), Qos())}
"""Name -> channel, the usual choice first."""
