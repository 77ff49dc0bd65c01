"""What steers a cluster, and what does not at present, in plain words."""

from __future__ import annotations

from shapleyprio.cli.shown.ranks import sentence
from shapleyprio.common.wording import clock_time, duration
from shapleyprio.daemon.answering.freshness import Steering, sentences_on_guarantees
from shapleyprio.store import ExceptionRow, PauseRow


def sentences_on_steering(steering: Steering, *, of_status: bool = False) -> list[str]:
    """Says since when no daemon steers and that the rest is out of date; empty if it is not.

    Args:
        steering: the facts.
        of_status: whether to say that no daemon runs also while its last cycle still holds.
    """
    is_paused = steering.pause is not None
    sentences = [] if steering.pause is None else sentences_on_pause(steering.pause)
    sentences += _on_age(steering, of_status=of_status)
    if of_status:
        ordered = [row for row in steering.exceptions if not row.by_guarantee]
        sentences += [on_exception(f"job {row.label}", row, paused=is_paused) for row in ordered]
        sentences += [] if is_paused else sentences_on_guarantees(steering.exceptions)
    return sentences


def _on_age(steering: Steering, *, of_status: bool) -> list[str]:
    if steering.cycle_ended is None:
        return []
    sentences = []
    since = f"since {clock_time(steering.cycle_ended)} ({duration(steering.age)} ago)"
    if steering.nobody_since is not None and (steering.is_stale or of_status):
        sentences.append(f"No daemon has run {since}.")
    elif steering.is_stale and steering.rolled_back_at is None:
        sentences.append(f"No cycle has succeeded {since}, though a daemon runs.")
    if steering.rolled_back_at is not None:
        at = clock_time(steering.rolled_back_at)
        sentences.append(f"Priorities were rolled back at {at}.")
    if steering.is_stale:
        sentences.append("What follows may be out of date.")
    return sentences


def sentences_on_pause(pause: PauseRow) -> list[str]:
    """Says who paused, since when and why, and the value in Slurm."""
    stands = (
        "Jobs keep the points that they had then, and new ones get none"
        if pause.keep
        else "Jobs have the priorities that they would have without shapleyprio"
    )
    reason = pause.reason.rstrip(".")
    return [
        f"Steering is paused since {clock_time(pause.since)} by {pause.user}: {reason}.",
        f"{stands}; work still counts.",
    ]


def on_exception(job: str, row: ExceptionRow, *, paused: bool) -> str:
    """Says which job goes first, since when, and who ordered it and why; in a pause, that it will.

    Args:
        job: what to call it.
        row: its exception; in a pause one that an admin has ordered.
        paused: whether steering is.
    """
    since = clock_time(row.since)
    if row.by_guarantee and row.until is not None:
        return sentence(
            f"{job} goes before {row.others} since {since}, by {row.user}, and is to start by "
            f"{clock_time(row.until)}: {row.reason}."
        )
    until = "" if row.until is None else f" until {clock_time(row.until)}"
    reason = row.reason.rstrip(".")
    if paused:
        return (
            f"Once steering is resumed {job} goes before {row.others}{until}, ordered by "
            f"{row.user} at {since}: {reason}."
        )
    return sentence(
        f"{job} goes before {row.others} since {since}{until}, ordered by {row.user}: {reason}."
    )
