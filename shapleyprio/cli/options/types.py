"""The kinds of values that options take besides click's own: durations, points in time, months."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import click

from shapleyprio.common.wording import exact_duration, seconds_in


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an option that a function reads.

    Args:
        name: stands for the value in help texts.
        parse: returns what a text stands for; raises ValueError, with one line that says what is
            wrong and what could be written.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns what the text stands for; a default that is no text stands for itself."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None


OFF = "off"


def in_units(seconds: int | None) -> str:
    """Returns a duration as one would type it, in the largest unit that gives a whole number.

    >>> in_units(86_400), in_units(300), in_units(90), in_units(None)
    ('1d', '5m', '90s', 'off')
    """
    if seconds is None:
        return OFF
    return exact_duration(seconds)


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
            raise ValueError(f"{text!r} is not a duration; write for instance {examples}")
        return seconds

    return Parsed("time", parse)


_SLURM_TIME = re.compile(
    r"(?:(?P<d>\d+)-(?P<dh>\d+)(?::(?P<dm>\d+)(?::(?P<ds>\d+))?)?"
    r"|(?P<h>\d+):(?P<hm>\d+):(?P<hs>\d+)|(?P<m>\d+)(?::(?P<s>\d+))?)",
    re.ASCII,
)


def slurm_time(text: str) -> int:
    """Returns the seconds of a time limit as sbatch reads it, in whole minutes.

    Raises:
        ValueError: it is none.

    >>> slurm_time("90"), slurm_time("4:00:00"), slurm_time("2-12"), slurm_time("0:30")
    (5400, 14400, 216000, 60)
    """
    match = _SLURM_TIME.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a time limit; write minutes or HOURS:MINUTES:SECONDS, for instance "
            "4:00:00, or DAYS-HOURS"
        )
    part = {name: int(number or 0) for name, number in match.groupdict().items()}
    hours = 24 * part["d"] + part["dh"] + part["h"]
    minutes = 60 * hours + part["dm"] + part["hm"] + part["m"]
    seconds = part["ds"] + part["hs"] + part["s"]
    return 60 * (minutes + (seconds + 59) // 60)


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

ALWAYS = "always"

BEGINNING = 0
"""Second that stands for "always": no ledger opens before it."""

LAST_YEAR = 2105
"""Within the next one lies second 2^32, the last one of logs and of Slurm."""


def instant(text: str) -> int:
    """Returns seconds since the epoch; BEGINNING for always.

    Raises:
        ValueError: it is neither a date, nor a date and time, nor "always".
    """
    if text == ALWAYS:
        return BEGINNING
    try:
        return second(text)
    except ValueError as error:
        raise ValueError(f"{error} or {ALWAYS}") from None


def second(text: str) -> int:
    """Returns seconds since the epoch.

    Raises:
        ValueError: it is neither a date, nor a date and time.
    """
    try:
        return max(BEGINNING, int(moment(text).astimezone(UTC).timestamp()))
    except OverflowError:
        raise ValueError(f"{text!r} is out of range; expected a date such as 2026-01-31") from None


def moment(text: str) -> datetime:
    """Returns a date's begin, or a date and time; without a time zone unless the text has one.

    Raises:
        ValueError: it is neither, or behind LAST_YEAR.
    """
    try:
        if len(text) == len("2026-01-01"):
            found = datetime.combine(date.fromisoformat(text), time())
        else:
            found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a date; expected one such as 2026-01-31, '2026-01-31 14:02', "
            "2026-01-31T14:02:00+01:00"
        ) from None
    if found.year > LAST_YEAR:
        raise ValueError(f"{text!r} is too late; expected a date until {LAST_YEAR}-12-31")
    return found


MOMENT = Parsed("date", moment)
"""The type of an option that takes a date, or a date and time, of a time zone that others say."""

INSTANT = Parsed("date", instant)
"""The type of an option that takes a date, a date and time, or "always"."""

SECOND = Parsed("date", second)
"""The type of an option that takes a date, or a date and time."""

_MONTH = re.compile(r"(\d{4})-(\d\d)")


@dataclass(frozen=True, slots=True)
class Month:
    """A month of the calendar, from 1970 to LAST_YEAR; `month` is counted from 1."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}"

    @property
    def begin(self) -> int:
        """Returns its first second since the epoch, in local time."""
        return int(datetime(self.year, self.month, 1).astimezone().timestamp())

    @property
    def end(self) -> int:
        """Returns the first second behind it."""
        return self.following.begin

    @property
    def following(self) -> Month:
        """Returns the next one.

        >>> str(Month(2026, 12).following), str(Month(2026, 1).previous)
        ('2027-01', '2025-12')
        """
        return Month(self.year + self.month // 12, self.month % 12 + 1)

    @property
    def previous(self) -> Month:
        """Returns the one before."""
        return Month(self.year - (self.month == 1), (self.month - 2) % 12 + 1)

    @property
    def in_words(self) -> str:
        """Returns its name.

        >>> Month(2026, 10).in_words
        'October 2026'
        """
        return f"{datetime(self.year, self.month, 1, tzinfo=UTC):%B %Y}"


def month_before(second: int) -> Month:
    """Returns the month before that of a second since the epoch, in local time."""
    now = datetime.fromtimestamp(second, UTC).astimezone()
    return Month(now.year, now.month).previous


def month_in(text: str) -> Month:
    """Returns the month that a text such as 2026-10 names.

    Raises:
        ValueError: it names none.
    """
    found = _MONTH.fullmatch(text)
    year, month = map(int, found.groups()) if found else (0, 0)
    if not (1970 <= year <= LAST_YEAR and 1 <= month <= 12):
        raise ValueError(
            f"{text!r} is not a month from 1970 to {LAST_YEAR}; write for instance 2026-10"
        )
    return Month(year, month)


MONTH = Parsed("month", month_in)
"""The type of an option that takes a month."""
