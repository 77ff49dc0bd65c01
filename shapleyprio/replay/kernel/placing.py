"""Whose free processors a job gets in the schedule that is written down."""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.state import AS_RECORDED, RANDOM, Record
from shapleyprio.replay.kernel.worth import draw


@inlined
def give(record: Record, free_of: Ints, given: Ints, job: int, free: int, wanted: int) -> None:
    """Chooses processors for a job.

    Args:
        record: whose placing it is; of what the job really got, `record.given` is had already.
        free_of: [k], how many of each owner are free; all together are `free`.
        given: [k], overwritten with how many of each the job gets.
        job: that is started.
        free: processors there are.
        wanted: processors that it gets, not more than are free.
    """
    if record.placing[0] == RANDOM:
        _give_random(record, free_of, given, free, wanted)
    else:
        given[:] = 0
        left = wanted
        if record.placing[0] == AS_RECORDED:
            left -= _give_recorded(record, free_of, given, job, wanted)
        _give_least_loaded(free_of, given, left)


@inlined
def _give_random(record: Record, free_of: Ints, given: Ints, free: int, wanted: int) -> None:
    """Draws among the free processors, each as likely as any other."""
    left = wanted
    for owner in range(len(free_of)):
        count = _share_of(record, free, left, free_of[owner]) if left > 0 else 0
        free -= free_of[owner]
        left -= count
        given[owner] = count


@inlined
def _give_recorded(record: Record, free_of: Ints, given: Ints, job: int, wanted: int) -> int:
    """Takes what is free of the processors that the job really got; returns how many these are."""
    taken = 0
    for part in range(record.first_part[job], record.first_part[job + 1]):
        owner = record.part_owner[part]
        if owner >= 0:
            count = min(record.part_processors[part] - record.given[owner], free_of[owner])
            count = min(count, wanted - taken)
            given[owner] += count
            taken += count
    return taken


@inlined
def _give_least_loaded(free_of: Ints, given: Ints, wanted: int) -> None:
    """Takes one more processor after the other of whoever has the most free."""
    for _ in range(wanted):
        most = 0
        for owner in range(1, len(free_of)):
            if free_of[owner] - given[owner] > free_of[most] - given[most]:
                most = owner
        given[most] += 1


@inlined
def _share_of(record: Record, free: int, wanted: int, owned: int) -> int:
    """Draws `wanted` of `free` without putting back, and counts hits of the `owned` ones."""
    if wanted == free:
        return owned
    hits = 0
    for drawn in range(wanted):
        if owned - hits == 0:
            break
        if draw(record.random, free - drawn) < owned - hits:
            hits += 1
    return hits
