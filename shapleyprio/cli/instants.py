"""Points in time as options take them: in the local time zone, as commands show them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import click

ALWAYS = "always"
BEGINNING = 0
"""Second that stands for "always": no ledger opens before it."""


class Instant(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an option that takes a date, a date and time, or "always"."""

    name = "date"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Returns seconds since the epoch; BEGINNING for always."""
        if isinstance(value, int):
            return value
        if value == ALWAYS:
            return BEGINNING
        try:
            if len(value) == len("2026-01-01"):
                moment = datetime.combine(date.fromisoformat(value), time())
            else:
                moment = datetime.fromisoformat(value)
            return max(BEGINNING, int(moment.astimezone(UTC).timestamp()))
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is no date; expected one such as 2026-01-31, '2026-01-31 14:02', "
                f"2026-01-31T14:02:00+01:00 or {ALWAYS}",
                param,
                ctx,
            )
