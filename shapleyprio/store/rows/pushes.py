"""What is written to Slurm, and who may."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shapleyprio.common.records import record


class PushState(StrEnum):
    """What became of a write to Slurm.

    PLANNED until it is known; UNCONFIRMED if Slurm could not be asked whether it took it;
    AT_SUBMISSION if we did not write: slurmctld took the value from the table of points.
    """

    PLANNED = "planned"
    APPLIED = "applied"
    REFUSED = "refused"
    UNCONFIRMED = "unconfirmed"
    AT_SUBMISSION = "at submission"


@record
class NewPush:
    """A write to Slurm, noted before it is tried.

    Attributes:
        cycle: number of the cycle it is part of.
        channel: name of the channel.
        target: as `Slurm.write` takes it: a job or part of an array, or a QOS.
        key: under which the target's managed value is stored: the job id, or the QOS.
        organization: for whom.
        label: the name users know the job by.
        original: value before we ever touched the target, which rolling back restores.
        old: value before this write.
        new: value after it.
        reason: why (at most 500 characters are kept).
        at: when, seconds since the epoch.
    """

    cycle: int
    channel: str
    target: str
    key: str
    organization: str
    label: str
    original: int
    old: int
    new: int
    reason: str
    at: int


@record
class Push(NewPush):
    """A write to Slurm.

    Attributes:
        number: counts up from 1 on its cluster.
        state: what became of it.
        note: what Slurm said to it, say.
    """

    number: int
    state: PushState
    note: str


@dataclass(frozen=True, slots=True)
class ManagedValue:
    """What we did to a job or QOS, kept as long as it exists.

    It stays after a rollback: a task that left its array before inherited a value of ours.

    Attributes:
        original: what the user or admin had asked for, which a rollback puts back.
        written: values of ours that may stand there, the last one last.
        by_hand: what somebody else has set there and we have seen since we wrote; None for nothing.
            It stands there instead, but not at tasks that had left the array before.
    """

    original: int
    written: tuple[int, ...]
    by_hand: int | None = None

    @property
    def asked(self) -> int:
        """What somebody else wants there."""
        return self.original if self.by_hand is None else self.by_hand

    @property
    def is_ours(self) -> bool:
        """Whether something of ours stood there when it was last written or seen."""
        return self.by_hand is None and self.written[-1] != self.original


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPoints:
    """What the table of points has given to new jobs, on the channel `site_factor`.

    Attributes:
        path: of the table.
        given: points that may stand at a job because of it, those of the last table among them.
        since: second after which every new job gets them; None while there is no table.
        until: second of the last submission that may have got some; None while there may be a
            table.
    """

    path: str
    given: tuple[int, ...]
    since: int | None
    until: int | None

    def may_have_given(self, submit: int) -> bool:
        """Returns whether a job that was submitted then may have got points from the table."""
        return self.until is None or submit <= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """Who may write to a cluster's Slurm.

    Attributes:
        holder: a name unique to the process that holds it; empty if it was given back.
        host, pid: where it runs, for people.
        since, renewed_at: seconds since the epoch, by the database's clock.
        ttl: seconds without a sign of life after which others may take it.
        token: grows each time it is taken.
        beat: grows with each sign of life of its holder.
        has_journal: whether its holder goes on steering while it can show no life, so that no one
            may take it.
        age: seconds since renewed_at, by the database's clock.
    """

    holder: str
    host: str
    pid: int
    since: int
    renewed_at: int
    ttl: int
    token: int
    beat: int
    has_journal: bool
    age: int

    @property
    def is_held(self) -> bool:
        """Whether it was taken and not given back, be its holder alive or not."""
        return bool(self.holder)

    def shows_life_since(self, before: LeaseRow) -> bool:
        """Returns whether it was taken, given back or renewed in between."""
        return (self.holder, self.token, self.beat) != (before.holder, before.token, before.beat)
