"""The cluster's clock, by which all is accounted: it may step, ahead and back again.

Each cycle looks at it and at a monotonic clock, that of the daemon's machine. If both
have advanced equally, it was not set. Both readings are stored, so one process may run all cycles
or each its own.
"""

from __future__ import annotations

from dataclasses import replace

from shapleyprio.common.errors import KnownError
from shapleyprio.common.wording import DAY
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.port import Controller, Malformed
from shapleyprio.store import Watermark

CLOCK_TOLERANCE_SECONDS = 300
"""Clocks of a cluster's hosts may differ by this much before a record is from the future."""

LONGEST_STEP_SECONDS = 7 * DAY
"""A clock that is set by more than that is not reckoned with."""

JITTER_SECONDS = 10
"""Between two looks the clocks may differ by so much for other reasons, such as a slow answer."""


class AccountingError(KnownError):
    """The records cannot be accounted as they are; the message says what and the way out."""

    exit_code = 5


class ClockError(AccountingError):
    """The cluster's clock runs backwards."""


def check_clock(watermark: Watermark, now: int) -> None:
    """Makes sure that the cluster's clock goes forward.

    Args:
        watermark: of the last cycle.
        now: the cluster's clock.

    Raises:
        ClockError: it is further behind the last cycle than clocks may differ.
    """
    behind = watermark.accounted_to - now
    if behind > CLOCK_TOLERANCE_SECONDS:
        raise ClockError(
            f"the controller's clock ({now}) is {behind} s behind the last cycle; "
            "nothing is accounted until it has caught up: set the clock right, or if it is, stop "
            "the daemon and run `shapleyprio db accept-clock`"
        )


def after_look(watermark: Watermark, controller: Controller, overlap: int) -> Watermark:
    """Returns the watermark after a look at the clock; a second time the same changes nothing.

    Accounting is complete up to a second that no record of what happened since the last look
    can bear. Where the clock has gone ahead, records that are late may still bear times of before:
    these are read once more when the overlap is over.

    Args:
        watermark: of the last look.
        controller: its clock, and when that was seen.
        overlap: seconds by which records may be late.
    """
    now, moment = controller.time, controller.seen
    looked = replace(
        watermark, boot=moment.boot, monotonic_time=moment.seconds, controller_time=now
    )
    if not watermark.controller_time:  # for the first time, so it is believed
        return replace(looked, sure_until=now)
    shown, observed_until = watermark.controller_time, watermark.observed_until
    again_from, again_at = watermark.again_from, watermark.again_at
    ahead = max(0, shown - watermark.sure_until)
    if moment.boot == watermark.boot:
        passed = moment.seconds - watermark.monotonic_time
        step, tolerance = now - shown - passed, JITTER_SECONDS
        if step < -tolerance:
            observed_until = min(observed_until, now - passed - 1)
        if abs(step) > tolerance:
            ahead += step
        if again_from is not None and moment.seconds >= again_at:
            observed_until, again_from = min(observed_until, again_from), None
    else:
        # For an unknown time there was no look: the whole difference may be a step. An overlap
        # covers one that is half as long, and what is late by as much.
        step, tolerance = now - shown, overlap // 2
        observed_until = min(observed_until, watermark.sure_until)
        if step < 0:
            observed_until = min(observed_until, now - LONGEST_STEP_SECONDS)
        if abs(step) > tolerance:
            ahead += step
        again_at = moment.seconds + overlap + 1
    if step > tolerance:
        again_from = shown if again_from is None else min(shown, again_from)
        again_at = moment.seconds + overlap + 1
    return replace(
        looked,
        observed_until=max(observed_until, watermark.opened),
        sure_until=now - min(max(0, ahead), LONGEST_STEP_SECONDS),
        again_from=again_from,
        again_at=again_at,
    )


def from_the_future(record: JobRecord, now: int) -> Malformed:
    """Makes of a record that no clock could have written a line that is quarantined."""
    return Malformed(
        source="accounting",
        text=f"job {record.label} ({record.job_id}) start={record.start} end={record.end}",
        reason=f"lies in the future of the cluster's clock ({now}); compare the hosts' clocks",
    )
