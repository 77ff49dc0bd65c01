"""Durations as options take them: seconds, or with units as in 1h30m."""

from __future__ import annotations

import click
from pytimeparse2 import parse as parse_duration

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


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an option that takes a duration above zero.

    Args:
        examples: durations that an error names.
        off: whether "off" is possible; it is converted to None.
    """

    name = "time"

    def __init__(self, examples: str, *, off: bool = False) -> None:
        self._examples = examples
        self._off = off

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """Returns the seconds."""
        if isinstance(value, int) or (self._off and value == OFF):
            return value if isinstance(value, int) else None
        seconds = seconds_in(value)
        if not seconds:
            why = f"{value!r} is no duration; write for instance {self._examples}"
            raise click.BadParameter(why, ctx, param)
        return seconds


class WindowRange(click.ParamType):  # type: ignore[type-arg]  # as above
    """The type of an option that takes START:LENGTH, in seconds or with units as in 10d:12h."""

    name = "window"

    def convert(
        self,
        value: str | tuple[int, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[int, int]:
        """Returns start and length in seconds."""
        if isinstance(value, tuple):
            return value
        match [seconds_in(part) for part in value.split(":")]:
            case [int(start), int(length)] if length > 0:
                return start, length
        why = f"{value!r} is not START:LENGTH; write for instance 0:50000 or 10d:12h"
        raise click.BadParameter(why, ctx, param)
