"""Priorities into Slurm: only differences, every write on record first, and a way back.

Every write is kept with what stood there before it is made, then read back. `asked` is what the
user or admin had asked for before we ever touched the job: it is what nice is added to, and what
a rollback puts back. A value that none of our own writes explains was set by somebody else since
and is the new `asked`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shapleyprio.slurm.port import Channel, PendingJob, Slurm
from shapleyprio.store import Mark, NewPush, PushState, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One thing in Slurm that carries a priority: a pending job, or a QOS.

    Attributes:
        target: what `Slurm.write` takes.
        key: what its mark is kept under: the job id, or the name of the QOS.
        base_key: key of the array that a task was split from, else the same as `key`.
        label: what users call it.
        organization: whose it is; NOBODY's jobs are left as they were found.
        value: what stands there now.
    """

    target: str
    key: str
    base_key: str
    label: str
    organization: str
    value: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of planned writes: numbers of pushes by state, and what Slurm refused."""

    applied: int = 0
    refused: int = 0
    unconfirmed: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.applied + other.applied,
            self.refused + other.refused,
            self.unconfirmed + other.unconfirmed,
        )


def job_places(
    channel: Channel, pending: Iterable[PendingJob], holders: Mapping[str, str]
) -> list[Place]:
    """The places of pending jobs; those whose value Slurm does not tell now are passed over.

    Args:
        channel: site factor or nice.
        pending: the jobs.
        holders: account -> organization.
    """
    places = []
    for job in pending:
        value = job.site_factor if channel is Channel.SITE_FACTOR else job.nice
        if value is not None:
            places.append(
                Place(
                    target=job.target,
                    key=str(job.job_id),
                    base_key=base_key(job.label, job.job_id),
                    label=job.label,
                    organization=holders.get(job.account, ""),
                    value=value,
                )
            )
    return places


def qos_places(priorities: Mapping[str, int], owners: Mapping[str, str]) -> list[Place]:
    """The places of organizations' QOS.

    Args:
        priorities: QOS -> priority in Slurm.
        owners: QOS -> organization.
    """
    return [
        Place(
            target=qos,
            key=qos,
            base_key=qos,
            label=qos,
            organization=owners[qos],
            value=priority,
        )
        for qos, priority in priorities.items()
        if qos in owners
    ]


def live_keys(pending: Iterable[PendingJob]) -> set[str]:
    """Keys under which marks of pending jobs may be looked for."""
    return {key for job in pending for key in (str(job.job_id), base_key(job.label, job.job_id))}


def plan(
    channel: Channel,
    places: Iterable[Place],
    priorities: Mapping[str, int],
    marks: Mapping[str, Mark],
    *,
    cycle: int,
    now: int,
    reasons: Mapping[str, str],
    put_back: str = "put back: no organization claims the account",
) -> list[NewPush]:
    """The writes that make every place say what it should; none where it says so already.

    Args:
        channel: where to write.
        places: what stands there now.
        priorities: organization -> points; places of others are put back as they were found
            (with no priorities at all, this plans the rollback).
        marks: key of a place -> what we wrote there before.
        cycle: its number, for the record.
        now: second, for the record.
        reasons: organization -> why it has its points.
        put_back: the reason to record where the old value is put back.
    """
    pushes = []
    for place in places:
        asked = _asked(place, marks)
        points = priorities.get(place.organization)
        if points is None:
            new, reason = asked, put_back
        else:
            new = asked - points if channel is Channel.NICE else points
            reason = reasons[place.organization]
        if new != place.value:
            pushes.append(
                NewPush(
                    cycle=cycle,
                    channel=channel,
                    target=place.target,
                    key=place.key,
                    organization=place.organization,
                    label=place.label,
                    asked=asked,
                    old=place.value,
                    new=new,
                    reason=reason,
                    at=now,
                )
            )
    return pushes


def carry_out(store: Store, cluster: str, slurm: Slurm, pushes: Sequence[NewPush]) -> Outcome:
    """Records the writes, makes them, reads back what stands there and records that too.

    Args:
        store: where they are recorded.
        cluster: its name there.
        slurm: where they are made.
        pushes: on any channels.

    Raises:
        SlurmUnavailableError: Slurm went away; what was written stays on record as planned and
            the next cycle finds out what became of it.
    """
    if not pushes:
        return Outcome()
    with store.transaction(cluster) as transaction:
        numbers = transaction.plan_pushes(pushes)
    numbered = dict(zip(numbers, pushes, strict=True))
    states: dict[int, tuple[PushState, str]] = {}
    for channel in Channel:
        ours = {number: push for number, push in numbered.items() if push.channel is channel}
        if not ours:
            continue
        refusals = slurm.write(channel, {push.target: push.new for push in ours.values()})
        values = current_values(slurm, channel)
        for number, push in ours.items():
            states[number] = _state(push.target, push.new, values, refusals)
    with store.transaction(cluster) as transaction:
        transaction.settle_pushes(states)
    return _outcome(states.values())


def settle_open(store: Store, cluster: str, slurm: Slurm) -> Outcome:
    """Finds out what became of writes that a crash or an outage left without an answer."""
    with store.reading(cluster) as view:
        left = view.open_pushes()
    if not left:
        return Outcome()
    values = {
        channel: current_values(slurm, channel) for channel in {push.channel for push in left}
    }
    states = {push.number: _state(push.target, push.new, values[push.channel], {}) for push in left}
    with store.transaction(cluster) as transaction:
        transaction.settle_pushes(states)
    return _outcome(states.values())


def current_values(slurm: Slurm, channel: Channel) -> Mapping[str, int | None]:
    """Target -> what stands there now, None where Slurm does not tell."""
    if channel is Channel.QOS:
        return slurm.qos_priorities()
    return {
        job.target: job.nice if channel is Channel.NICE else job.site_factor
        for job in slurm.pending()
        if isinstance(job, PendingJob)
    }


def base_key(label: str, job_id: int) -> str:
    """Tasks split from an array inherit what was written to it, under an id of their own."""
    base = label.partition("_")[0]
    return base if base.isdigit() else str(job_id)


def _asked(place: Place, marks: Mapping[str, Mark]) -> int:
    for key in (place.key, place.base_key):
        mark = marks.get(key)
        if mark and (place.value == mark.asked or place.value in mark.written):
            return mark.asked
    return place.value


def _state(
    target: str, new: int, values: Mapping[str, int | None], refusals: Mapping[str, str]
) -> tuple[PushState, str]:
    if target in refusals and values.get(target) != new:
        return PushState.REFUSED, refusals[target]
    if target not in values:
        return PushState.UNCONFIRMED, "no longer pending"
    value = values[target]
    if value == new:
        return PushState.APPLIED, ""
    return PushState.UNCONFIRMED, "Slurm does not tell" if value is None else f"reads {value}"


def _outcome(states: Iterable[tuple[PushState, str]]) -> Outcome:
    counts = Counter(state for state, _ in states)
    return Outcome(
        applied=counts[PushState.APPLIED],
        refused=counts[PushState.REFUSED],
        unconfirmed=counts[PushState.UNCONFIRMED],
    )
