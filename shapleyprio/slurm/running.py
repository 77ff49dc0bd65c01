"""A machine's monotonic clock: it counts from the boot on, also during sleep."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment on the clock of one boot of one machine.

    Attributes:
        boot: which; clocks of other boots cannot be compared.
        seconds: since it began, no fraction.
    """

    boot: str
    seconds: int

    @classmethod
    def now(cls) -> Moment:
        """Reads this machine's clock."""
        return cls(_boot(), int(running_seconds()))


def running_seconds() -> float:
    """Returns seconds of a monotonic clock, which that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@cache
def _boot() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()
