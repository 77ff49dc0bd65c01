"""Months as options take them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from shapleyprio.cli.parsed import Parsed

_MONTH = re.compile(r"(\d{4})-(\d\d)")


@dataclass(frozen=True, slots=True)
class Month:
    """A month of the calendar, from 1970 on; `month` is counted from 1."""

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
    if year < 1970 or not 1 <= month <= 12:
        raise ValueError(f"{text!r} is no month; write for instance 2026-10")
    return Month(year, month)


MONTH = Parsed("month", month_in)
"""The type of an option that takes a month."""
