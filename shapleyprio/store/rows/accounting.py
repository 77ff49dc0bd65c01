"""What accounting and the look at nodes, accounts and waiting jobs have found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import Allocation, Kind
from shapleyprio.slurm.port import Malformed

AllocatedRun = tuple[Run, tuple[Allocation, ...]]
"""A run and its allocations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How far a cluster's accounting has come; written together with the rows it stands for.

    Attributes:
        weight: what counts as a processor in all that is stored.
        opened: first second that counts.
        observed_until: second up to which accounting is known to be complete.
        sure_until: what the controller's clock would show if it had never gone ahead, at the last
            look at it: if it comes back, records bear times from there on.
        accounted_to: time at which the stored ledger stands; no event in it is later.
        horizon: age in seconds from which a part gains nothing more, None for never.
        folded_to: the fold of the stored ledger.
        pruned_until: runs that ended up to then are no longer stored.
        controller_time: the controller's clock at the last look; 0 before the first.
        boot: identifies the boot to which monotonic_time belongs.
        monotonic_time: this machine's clock at the last look, which cannot be set.
        again_from: second from which accounting is to be read once more, for late records; None
            where that is not needed.
        again_at: when, by the machine's own clock.
    """

    weight: str = "cpus"
    opened: int
    observed_until: int
    sure_until: int
    accounted_to: int = 0
    horizon: int | None
    folded_to: int = 0
    pruned_until: int
    controller_time: int = 0
    boot: str = ""
    monotonic_time: int = 0
    again_from: int | None = None
    again_at: int = 0

    @property
    def complete_until(self) -> int:
        """Second up to which accounting is complete, with the records that may still be late."""
        known = (self.observed_until, self.again_from)
        return min(second for second in known if second is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionRow:
    """A node or an account of which a correction changed who had held it since when.

    Attributes:
        number: of the correction, which may have changed others as well.
        kind: ``node`` or ``account``.
        name: of it.
        at: when it was corrected, seconds since the epoch.
        user: who did it, for people.
        before, after: its holders one after the other, NOBODY among them, each with the first
            second for which it counts (None for always).
    """

    number: int
    kind: Kind
    name: str
    at: int
    user: str
    before: tuple[tuple[str, int | None], ...]
    after: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node as Slurm has it configured, until its next row.

    Attributes:
        name: its name.
        since: second from which it is so.
        processors: how many it has, up or down, in the ledger's weight; 0 once it is gone.
        partitions: names of those that it is in, sorted.
    """

    name: str
    since: int
    processors: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """Where an account is in the tree of accounts, until its next row; it stays when it is gone.

    Attributes:
        name: its name.
        since: second from which it is so.
        parent: the account above it; None right below the root.
    """

    name: str
    since: int
    parent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRow:
    """How many processors an organization brings to which partitions, until its next row.

    Of a node on which Slurm starts no jobs, only what its running jobs hold counts; of one in no
    partition, nothing.

    Attributes:
        organization: that owns them.
        since: second from which it brings so many.
        processors: names of partitions, sorted -> those of its nodes that are in exactly these, in
            the ledger's weight, above 0; empty once it has none any more.
    """

    organization: str
    since: int
    processors: Mapping[tuple[str, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingJobs:
    """The jobs of an organization that could start in a partition and wait, at the last cycle.

    Attributes:
        organization: the jobs' organization.
        partition: where they may start; a job that names several counts in each.
        jobs: how many.
        since: second from which the first of them could start.
    """

    organization: str
    partition: str
    jobs: int
    since: int


class Wait(NamedTuple):
    """How long a job waited before it started.

    Attributes:
        organization: the job's organization.
        partition: where it started.
        seconds: from its release to its start.
    """

    organization: str
    partition: str
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBack:
    """A job that counts for shorter than Slurm has called it eligible.

    Attributes:
        job_id: Slurm's own number; that of an array for all of its tasks.
        counts_since: second from which it counted, when it last began to; None if it never did
            anew.
        kept_since: second since which it could not start, had it been its turn; None if it could.
    """

    job_id: int
    counts_since: int | None
    kept_since: int | None

    def release(self, eligible: int, start: int) -> int:
        """Returns the second from which a run of the job could have started.

        Args:
            eligible: since when Slurm has called the job eligible.
            start: of the run. If the job was kept back until then, it could not start earlier.
        """
        if self.kept_since is not None and start >= self.kept_since:
            return start
        return min(max(eligible, self.counts_since or 0), start)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAfterEnd:
    """A run whose processes went on after its end, while Slurm waited for them to end.

    Attributes:
        job_id, submit, start: the key of the run.
        organization: whose account it was at its end; NOBODY if no organization claimed it.
        account, user: as accounted.
        end: of the run, since the epoch.
        processor_seconds: of all its processors from then until its last process had ended, in the
            configured weight.
    """

    job_id: int
    submit: int
    start: int
    organization: str
    account: str
    user: str
    end: int
    processor_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAfterEnd:
    """What a user's runs in the accounts of one organization executed after their ends.

    Attributes:
        user, organization: whose it is, as in `WorkAfterEnd`.
        jobs: how many executions of jobs.
        processor_seconds: of all of them.
        last: the newest end of such a run, since the epoch.
    """

    user: str
    organization: str
    jobs: int
    processor_seconds: int
    last: int

    def __add__(self, other: UserAfterEnd) -> UserAfterEnd:
        """Adds what the same user's runs executed elsewhere."""
        return replace(
            self,
            jobs=self.jobs + other.jobs,
            processor_seconds=self.processor_seconds + other.processor_seconds,
            last=max(self.last, other.last),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedLine:
    """A line of Slurm's that could not be read.

    Attributes:
        line: source, text (at most 2,000 characters of it) and what is wrong with it.
        first_seen, last_seen: seconds since the epoch.
        times: how often.
    """

    line: Malformed
    first_seen: int
    last_seen: int
    times: int
