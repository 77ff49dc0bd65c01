"""The cluster's clock, by which all is accounted: it may step, ahead and back again."""

from __future__ import annotations

from shapleyprio.store import Watermark

CLOCK_TOLERANCE_SECONDS = 300
"""Clocks of a cluster's hosts may differ by this much before a record is from the future."""

LONGEST_CYCLE_SECONDS = 3600
"""Where more than that lies between two cycles, the clock may have gone ahead."""

LONGEST_STEP_SECONDS = 7 * 86_400
"""A clock that has gone ahead by more than that is not waited for to come back."""


class AccountingError(Exception):
    """The records cannot be accounted as they are; the message says what and the way out."""


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
            "nothing is accounted until it has caught up: set the clock right"
        )


def sure_until(watermark: Watermark, observed_until: int) -> int:
    """Returns up to when accounting surely is complete, even if the clock comes back.

    After a stretch that the clock may have jumped over it takes as long again to be sure, since
    an outage looks the same.
    """
    ahead = observed_until - watermark.observed_until
    sure = watermark.sure_until
    if 0 < ahead <= LONGEST_CYCLE_SECONDS:
        sure = min(observed_until, sure + 2 * ahead)
    return max(sure, observed_until - LONGEST_STEP_SECONDS)
