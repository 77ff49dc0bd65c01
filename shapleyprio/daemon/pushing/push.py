"""Priorities into Slurm: only differences, every write on record first, and a way back.

Every write is stored with the value before it, then made, then read back. `original` is what the
user or admin had asked for before we ever touched the job: it is what nice is added to, and what
a rollback puts back. A value that none of our own writes explains was set by somebody else since
and is the new `original`; on a channel that yields, it stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shapleyprio.slurm.channels import CHANNELS, Channel, Claims, PriorityTarget
from shapleyprio.slurm.port import PendingJob, Slurm, StartedJob
from shapleyprio.store import ClusterStore, ManagedValue, NewPush, PushState, Transaction

BEFORE_SUBMISSION = 0
"""What stands at a new job to which the table of points gives nothing: users cannot choose it."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """When a write is planned, for the record.

    Attributes:
        cycle: its number; 0 outside of cycles.
        at: second.
    """

    cycle: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The points that organizations are to have.

    Attributes:
        points: organization -> points; targets of others are put back as they were found (with
            none at all, this is the rollback).
        reasons: organization -> why it has its points.
        put_back: the reason to record where the old value is put back.
    """

    points: Mapping[str, int]
    reasons: Mapping[str, str]
    put_back: str = "put back: it counts for no organization"


@dataclass(frozen=True, slots=True)
class PushCounts:
    """What became of planned writes: numbers of pushes by state, and what Slurm refused."""

    applied: int = 0
    refused: int = 0
    unconfirmed: int = 0

    @property
    def failed(self) -> int:
        """How many writes did not come about, or may not have."""
        return self.refused + self.unconfirmed


def live_keys(jobs: Iterable[PendingJob | StartedJob]) -> set[str]:
    """Returns the keys under which managed values of jobs may be looked for."""
    return {str(number) for job in jobs for number in (job.job_id, job.array_job_id)}


def explains(managed: ManagedValue, value: int) -> bool:
    """Returns whether a value is one that we found or wrote."""
    return value == managed.original or value in managed.written


def known_at(managed: Mapping[str, ManagedValue], *keys: str) -> list[ManagedValue]:
    """Returns what we did to a job, and to the array that it was split from."""
    return [managed[key] for key in dict.fromkeys(keys) if key in managed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """The values that we may have given jobs without a record of it.

    Attributes:
        given: what the table of points may have given.
        points: organization -> its present points, as the store may have been lost.
    """

    given: Collection[int] = ()
    points: Mapping[str, int] = field(default_factory=dict)

    def excludes(self, value: int, organization: str, known: Sequence[ManagedValue]) -> bool:
        """Returns whether somebody else has set a value at a job: new, or found there before.

        Args:
            value: that is not what every job has from the begin.
            organization: whose job it is.
            known: what we did to the job. Of an older store that was restored this is not all, but
                then the job has the points of its own organization.
        """
        points = [self.points.get(organization)] if known else self.points.values()
        return (
            value not in self.given
            and value not in points
            and not any(explains(one, value) and value != one.original for one in known)
        )


def news_of_foreign(
    targets: Iterable[PriorityTarget], managed: Mapping[str, ManagedValue]
) -> dict[str, int]:
    """Returns key of a job -> what somebody else has set there, where it is not on record yet.

    Once it is, a rollback puts nothing in its place while Slurm does not show it.
    """
    return {
        target.key: target.value
        for target in targets
        if (known := managed.get(target.key)) is None or known.by_hand != target.value
    }


def foreign(
    channel: Channel,
    targets: Iterable[PriorityTarget],
    managed: Mapping[str, ManagedValue],
    ours: Ours,
) -> list[PriorityTarget]:
    """Returns the targets that are left alone, as somebody else has set them.

    Args:
        channel: where we write.
        targets: with their present values.
        managed: key of a target -> what we wrote there before.
        ours: values that may be ours all the same.
    """
    found = [target for target in targets if channel.is_foreign(target.value)]
    if channel.per_job:
        return [
            target
            for target in found
            if ours.excludes(
                target.value,
                target.organization,
                known_at(managed, target.key, target.base_key),
            )
        ]
    return [
        target
        for target in found
        if (known := managed.get(target.key)) is not None
        and known.is_ours
        and not explains(known, target.value)
    ]


def put_back(
    channel: Channel,
    slurm: Slurm,
    jobs: Iterable[PendingJob],
    managed: Mapping[str, ManagedValue],
    stamp: Stamp,
    given: Collection[int],
    least: int | None,
) -> list[NewPush]:
    """Returns the writes that restore original values at jobs that are no longer in any pool.

    Args:
        channel: where we write, to each job.
        slurm: where the jobs are.
        jobs: that wait.
        managed: as `plan` has it, as all that follows.
        stamp: likewise.
        given: likewise.
        least: likewise.
    """
    ours = [job for job in jobs if not live_keys([job]).isdisjoint(managed)]
    if not ours:
        return []
    targets = channel.targets(slurm, ours, Claims.of_nobody(managed))
    others = foreign(channel, targets, managed, Ours(given=given))
    nothing = Wanted(points={}, reasons={}, put_back="put back: its partition is in no pool")
    left = [target for target in targets if target not in others]
    return plan(channel, left, managed, nothing, stamp, given, least)


def plan(
    channel: Channel,
    targets: Iterable[PriorityTarget],
    managed: Mapping[str, ManagedValue],
    wanted: Wanted,
    stamp: Stamp,
    given: Collection[int] = (),
    least: int | None = None,
) -> list[NewPush]:
    """Returns the writes that give every target the value it should have; none where it has it.

    Args:
        channel: where to write.
        targets: with their present values.
        managed: key of a target -> what we wrote there before.
        wanted: what should.
        stamp: for the record.
        given: values that the table of points may have put there.
        least: what less than this counts as, where users can bring about less than they may ask
            for; None if they cannot.
    """
    pushes = []
    for target in targets:
        points = wanted.points.get(target.organization)
        original = _original(target, managed, given)
        known = known_at(managed, target.key, target.base_key)
        if least is not None and (known or points is not None):
            original = max(original, least)
        if points is None:
            new, reason = original, wanted.put_back
        else:
            new, reason = channel.value(original, points), wanted.reasons[target.organization]
        unheard = _is_unheard(target, managed, points)
        if unheard:
            reason += f"; until then Slurm went by {target.in_force}"
        if new != target.value or unheard:
            pushes.append(
                NewPush(
                    cycle=stamp.cycle,
                    channel=channel.name,
                    target=target.target,
                    key=target.key,
                    organization=target.organization,
                    label=target.label,
                    original=original,
                    old=target.value,
                    new=new,
                    reason=reason,
                    at=stamp.at,
                )
            )
    return pushes


def carry_out(store: ClusterStore, slurm: Slurm, pushes: Sequence[NewPush]) -> PushCounts:
    """Records the writes, makes them, reads the values back and records these, too.

    Args:
        store: of the cluster, where they are recorded.
        slurm: where they are made.
        pushes: on any channels.

    Raises:
        SlurmUnavailableError: Slurm went away; what was written stays on record as planned and
            the next cycle finds out what became of it.
        LeaseHeldError: so if another process steers the cluster now.
    """
    return counts(carry_out_each(store, slurm, pushes))


def carry_out_each(store: ClusterStore, slurm: Slurm, pushes: Sequence[NewPush]) -> list[PushState]:
    """Does what `carry_out` does, and returns what became of each write."""
    if not pushes:
        return []
    numbers = store.transact(lambda transaction: transaction.pushes.plan(pushes))
    numbered = dict(zip(numbers, pushes, strict=True))
    states: dict[int, tuple[PushState, str]] = {}
    left: list[NewPush] = []
    for name, channel in CHANNELS.items():
        ours = {number: push for number, push in numbered.items() if push.channel == name}
        if not ours:
            continue
        values = {push.target: push.new for push in ours.values()}
        refusals = slurm.write(name, values, store.check)
        found = channel.values(slurm, {push.key for push in ours.values()})
        for number, push in ours.items():
            refusal = refusals.get(push.target)
            states[number] = _state(push, found, refusal)
            if _is_left(push, found.get(push.key), is_made=refusal is None):
                left.append(push)
    _settle(store, states, left)
    return [states[number][0] for number in numbers]


def counts(states: Iterable[PushState]) -> PushCounts:
    """Counts what became of writes."""
    found = Counter(states)
    return PushCounts(
        applied=found[PushState.APPLIED],
        refused=found[PushState.REFUSED],
        unconfirmed=found[PushState.UNCONFIRMED],
    )


def settle_open(store: ClusterStore, slurm: Slurm) -> PushCounts:
    """Finds out what became of writes that a crash or an outage left without an answer."""
    with store.reading() as view:
        open_ = view.pushes.open_pushes()
    if not open_:
        return PushCounts()
    values = {
        name: CHANNELS[name].values(slurm, {push.key for push in open_ if push.channel == name})
        for name in {push.channel for push in open_}
    }
    states = {push.number: _state(push, values[push.channel], None) for push in open_}
    left = [
        push for push in open_ if _is_left(push, values[push.channel].get(push.key), is_made=False)
    ]
    _settle(store, states, left)
    return counts(state for state, _ in states.values())


def _settle(
    store: ClusterStore, states: Mapping[int, tuple[PushState, str]], left: Sequence[NewPush]
) -> None:
    def settle(transaction: Transaction) -> None:
        transaction.pushes.settle(states)
        transaction.pushes.note_left(left)

    store.transact(settle)


def _is_left(push: NewPush, value: int | None, *, is_made: bool) -> bool:
    """Returns whether the value before a write counts as still in force.

    Where Slurm does not show it, that is what is ours of the two, unless the write was made.

    Args:
        push: the write.
        value: the value there now; None where Slurm does not show it.
        is_made: whether Slurm took the write.
    """
    if value is not None:
        return value == push.old
    return not is_made and push.new == push.original


def _original(
    target: PriorityTarget, managed: Mapping[str, ManagedValue], given: Collection[int]
) -> int:
    for known in known_at(managed, target.key, target.base_key):
        if explains(known, target.value) or target.value in given:
            return known.original
    return BEFORE_SUBMISSION if target.value in given else target.value


def _is_unheard(
    target: PriorityTarget, managed: Mapping[str, ManagedValue], points: int | None
) -> bool:
    """Returns whether Slurm uses another value than the one there, and must be told.

    At targets of others that is their business, unless it is ours that is still in force.
    """
    if target.in_force is None:
        return False
    ours = managed.get(target.key)
    return points is not None or (ours is not None and target.in_force in ours.written)


def _state(
    push: NewPush, values: Mapping[str, int | None], refusal: str | None
) -> tuple[PushState, str]:
    """Returns what became of a write, by the values at keys now; Slurm may have refused it."""
    value = values.get(push.key)
    if value == push.new:
        return PushState.APPLIED, ""
    if refusal is not None:
        return PushState.REFUSED, refusal
    if push.key not in values:
        return PushState.UNCONFIRMED, "no longer pending"
    if value is None:
        return PushState.UNCONFIRMED, "Slurm does not show it"
    return PushState.UNCONFIRMED, f"reads {value}"
