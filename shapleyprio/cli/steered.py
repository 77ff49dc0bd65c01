"""Whether anybody steers, in plain words."""

from __future__ import annotations

from shapleyprio.service.steering import Steering
from shapleyprio.wording import clock_time, duration


def sentences_on_steering(steering: Steering, *, of_status: bool = False) -> list[str]:
    """Says since when nobody steers, and that what follows is out of date; nothing if it is not.

    Args:
        steering: the facts.
        of_status: whether to say that no daemon runs also while its last cycle still holds.
    """
    if steering.cycle_ended is None:
        return []
    since = f"since {clock_time(steering.cycle_ended)} ({duration(steering.age)} ago)"
    sentences = []
    if steering.nobody_since is not None and (steering.is_stale or of_status):
        sentences.append(f"Nobody steers {since}: no daemon runs.")
    elif steering.is_stale and steering.rolled_back_at is None:
        sentences.append(f"No cycle has succeeded {since}, though a daemon runs.")
    if steering.rolled_back_at is not None:
        at = clock_time(steering.rolled_back_at)
        sentences.append(f"Priorities were put back as they were found at {at}.")
    if steering.is_stale:
        sentences.append("What the last cycle found and wrote may not hold any more.")
    return sentences
