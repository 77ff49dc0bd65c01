"""Points in time as options take them: in the local time zone, as commands show them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from shapleyprio.cli.parsed import Parsed

ALWAYS = "always"
BEGINNING = 0
"""Second that stands for "always": no ledger opens before it."""


def instant(text: str) -> int:
    """Returns seconds since the epoch; BEGINNING for always.

    Raises:
        ValueError: it is neither a date, nor a date and time, nor "always".
    """
    if text == ALWAYS:
        return BEGINNING
    try:
        return max(BEGINNING, int(moment(text).astimezone(UTC).timestamp()))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{error} or {ALWAYS}") from None


def moment(text: str) -> datetime:
    """Returns a date's begin, or a date and time; without a time zone unless the text has one.

    Raises:
        ValueError: it is neither.
    """
    try:
        if len(text) == len("2026-01-01"):
            return datetime.combine(date.fromisoformat(text), time())
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no date; expected one such as 2026-01-31, '2026-01-31 14:02', "
            "2026-01-31T14:02:00+01:00"
        ) from None


MOMENT = Parsed("date", moment)
"""The type of an option that takes a date, or a date and time, of a time zone that others say."""

INSTANT = Parsed("date", instant)
"""The type of an option that takes a date, a date and time, or "always"."""
