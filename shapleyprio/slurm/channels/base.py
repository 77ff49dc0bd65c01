"""What every channel does, and the words that channels and the service share.

A channel knows what carries its priorities and what Slurm calls them, what an organization's
points become there, how far they count beside Slurm's own factors, what `check` demands of the
cluster for it, and how it is explained. Adapters ask it for all of this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from shapleyprio.common.records import record
from shapleyprio.fairness.scale import Scale
from shapleyprio.fairness.tenure import NOBODY, takes_part
from shapleyprio.slurm.findings import Finding
from shapleyprio.slurm.layout import Layout, PrioritySettings
from shapleyprio.slurm.port import PendingJob, Slurm


@record
class PriorityTarget:
    """One thing in Slurm that carries a priority: a pending job, a QOS or an account.

    Attributes:
        target: what `Slurm.write` takes.
        key: what its managed value is kept under: the job id, or the name of the QOS or account.
        base_key: key of the array that a task was split from, else the same as `key`.
        label: what users call it.
        organization: who gets the priority; NOBODY's targets are left as they were found.
        value: its present value.
        in_force: by what Slurm goes instead of `value`; None where it goes by that.
    """

    target: str
    key: str
    base_key: str
    label: str
    organization: str
    value: int
    in_force: int | None = None

    @classmethod
    def named(
        cls, name: str, organization: str, value: int, *, in_force: int | None = None
    ) -> PriorityTarget:
        """Returns a target that goes by one name everywhere, such as a QOS or an account."""
        return cls(
            target=name,
            key=name,
            base_key=name,
            label=name,
            organization=organization,
            value=value,
            in_force=in_force,
        )


@dataclass(frozen=True, slots=True)
class Claims:
    """For which organization the things in Slurm count that a channel may write to.

    Attributes:
        accounts: account -> organization; jobs of other accounts are NOBODY's.
        qos: QOS -> organization, in the order of the configuration.
        left_out_partitions: jobs that can start nowhere else are NOBODY's.
    """

    accounts: Mapping[str, str] = field(default_factory=dict)
    qos: Mapping[str, str] = field(default_factory=dict)
    left_out_partitions: Collection[str] = ()

    @classmethod
    def of_nobody(cls, keys: Iterable[str]) -> Claims:
        """Returns claims under which the targets with these keys are NOBODY's."""
        return cls(qos=dict.fromkeys(keys, NOBODY))

    def of(self, job: PendingJob) -> str:
        """Returns the organization of a pending job, NOBODY if it has none."""
        return self.of_jobs_in(job.account, job.partition)

    def of_jobs_in(self, account: str, partition: str) -> str:
        """Returns the organization of pending jobs by account and partitions, as Slurm has them."""
        if not takes_part(partition, self.left_out_partitions):
            return NOBODY
        return self.accounts.get(account, NOBODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobField:
    """A field of jobs that a channel writes, and its names.

    Attributes:
        attribute: of `PendingJob`.
        sign: what a job's priority gains when the field rises by 1.
        scontrol: the key in ``scontrol update``.
        sprio: its conversion in ``sprio --format``; empty where sprio does not print it.
        squeue: its conversion in ``squeue --format``; empty where squeue does not print it.
        pyslurm: the attribute of ``pyslurm.JobSubmitDescription``; empty where there is none.
    """

    attribute: str
    sign: Literal[1, -1]
    scontrol: str
    sprio: str = ""
    squeue: str = ""
    pyslurm: str = ""


class Channel(ABC):
    """A way to write a priority into Slurm.

    Attributes:
        name: in the configuration, in the store and to `Slurm.write`.
        written: what it writes, in words for the configuration's reference.
        called: what it writes, in words for a user whose job has it.
        carrier: what carries the priority.
        job_field: the field of jobs that it writes; None if it writes no jobs.
        smallest, largest: the values that Slurm takes.
        admin_level: the AdminLevel that a user needs to write it.
        factor: the one of Slurm's priority factors that carries the points; None for a summand
            of its own.
        follows_late: whether pending jobs follow what was written only when Slurm next computes
            their priorities.
    """

    name: ClassVar[str]
    written: ClassVar[str]
    called: ClassVar[str]
    carrier: ClassVar[Literal["job", "QOS", "account"]]
    job_field: ClassVar[JobField | None] = None
    smallest: ClassVar[int]
    largest: ClassVar[int]
    admin_level: ClassVar[Literal["Operator", "Administrator"]]
    factor: ClassVar[str | None] = None
    follows_late: ClassVar[bool] = False

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
        """Returns what carries a priority, with its present value.

        What Slurm does not show at the moment is passed over.

        Args:
            slurm: asked where the queue does not show it.
            pending: the jobs that wait.
            claims: whose they are.
        """

    @abstractmethod
    def values(self, slurm: Slurm, keys: Collection[str]) -> Mapping[str, int | None]:
        """Reads the values at targets now, and perhaps at others.

        Args:
            slurm: asked for it.
            keys: of the targets.

        Returns:
            Key -> value, None where Slurm does not show it; what is gone is left out.
        """

    @abstractmethod
    def key_of(self, job: PendingJob) -> str:
        """Returns the key of the target from which a job has its points."""

    def shown(self, job: PendingJob) -> int | None:  # noqa: ARG002 - others need it
        """Returns what the queue shows at a job of what was written; None if nothing."""
        return None

    def explained(self, job: PendingJob, original: int | None, points: int) -> str | None:
        """Says the value at a job where that is not what its points come to; None elsewhere.

        Of a job that we did not write to, what somebody has asked for is not known.

        Args:
            job: that waits.
            original: what stood there before we wrote; None if we did not.
            points: of its organization.
        """
        found, due = self.shown(job), self.value(original or 0, points)
        is_due_known = original is not None or due == self.value(1, points)
        if not is_due_known or found is None or found == due:
            return None
        return f"its {self.called} is {found} now, not {due}"

    def out_of_bounds(self, values: Mapping[str, int]) -> dict[str, str]:
        """Returns what Slurm would not take: target -> why.

        Args:
            values: target -> new value.
        """
        return {
            target: f"{value} is not between {self.smallest} and {self.largest}"
            for target, value in values.items()
            if not self.smallest <= value <= self.largest
        }

    def least_asked(self, ask_settings: Callable[[], PrioritySettings]) -> int | None:  # noqa: ARG002 - others need it
        """Returns the smallest value that somebody else's counts as; None if there is none.

        Args:
            ask_settings: returns how priorities are computed.
        """
        return None

    def is_foreign(self, value: int) -> bool:  # noqa: ARG002 - others need it
        """Returns whether a value that is not ours was set by somebody, and stays."""
        return False

    @abstractmethod
    def value(self, original: int, points: int) -> int:
        """Returns what has to stand at a target.

        Args:
            original: what stood there before we wrote.
            points: of its organization; the more, the sooner it starts.
        """

    def own_priority(self, job: PendingJob, original: int | None) -> int:  # noqa: ARG002 - others need it
        """Returns a job's priority without what was written to it alone.

        Args:
            job: that waits.
            original: what stood there before we wrote; None if we did not.
        """
        return job.priority

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

    def inquire(self, slurm: Slurm, layout: Layout, claims: Claims) -> Iterator[Finding]:  # noqa: ARG002 - others need them
        """Yields what `check` finds out by asking Slurm for more than its layout.

        Raises:
            SlurmError: it does not answer.
        """
        yield from ()

    def stray_jobs(self, pending: Iterable[PendingJob], claims: Claims) -> Iterator[Finding]:  # noqa: ARG002 - others need them
        """Yields what `check` has to say of pending jobs that the channel does not reach."""
        yield from ()
