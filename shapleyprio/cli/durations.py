"""Durations as options take them: seconds, or with units as in 1h30m."""

from __future__ import annotations

from pytimeparse2 import parse as parse_duration

from shapleyprio.cli.parsed import Parsed

UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
"""Seconds and letter, the largest first."""

OFF = "off"


def seconds_in(text: str) -> int | None:
    """Returns whole seconds, such as 90 or 1m30s; None for anything else."""
    seconds = parse_duration(text) if text else None
    return int(seconds) if seconds is not None and 0 <= seconds == int(seconds) else None


def in_units(seconds: int | None) -> str:
    """Returns a duration as one would type it, in the largest unit that gives a whole number.

    >>> in_units(86_400), in_units(300), in_units(90), in_units(None)
    ('1d', '5m', '90s', 'off')
    """
    if seconds is None:
        return OFF
    size, unit = next(found for found in UNITS if seconds % found[0] == 0)
    return f"{seconds // size}{unit}"


def duration(examples: str, *, off: bool = False) -> Parsed:
    """Returns the type of an option that takes a duration above zero, in seconds.

    Args:
        examples: durations that an error names.
        off: whether "off" is possible; it stands for None.
    """

    def parse(text: str) -> int | None:
        if off and text == OFF:
            return None
        seconds = seconds_in(text)
        if not seconds:
            raise ValueError(f"{text!r} is no duration; write for instance {examples}")
        return seconds

    return Parsed("time", parse)


def window_range(text: str) -> tuple[int, int]:
    """Returns start and length of START:LENGTH, in seconds.

    Raises:
        ValueError: it is none.
    """
    match [seconds_in(part) for part in text.split(":")]:
        case [int(start), int(length)] if length > 0:
            return start, length
    raise ValueError(f"{text!r} is not START:LENGTH; write for instance 0:50000 or 10d:12h")


WINDOW = Parsed("window", window_range)
"""The type of an option that takes START:LENGTH, in seconds or with units as in 10d:12h."""
