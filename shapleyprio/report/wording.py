"""Numbers as people read them."""

from __future__ import annotations

from shapleyprio.report.page import Cell

MISSING = "–"  # noqa: RUF001  # the dash of tables

UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def number(value: float) -> str:
    """With thousands separators, and of a fraction four digits.

    >>> number(1234567), number(1234.5678), number(0.12345), number(-2.0)
    ('1,234,567', '1,235', '0.1235', '−2')
    """
    if isinstance(value, float):
        digits = 0 if abs(value) >= 1000 else 4
        text = f"{value:,.0f}" if digits == 0 else f"{value:.{digits}g}"
    else:
        text = f"{value:,}"
    return ("0" if text == "-0" else text).replace("-", "−")


def cell(value: Cell) -> str:
    """What stands in a table."""
    if value is None:
        return MISSING
    return value if isinstance(value, str) else number(value)


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them.

    >>> duration(0.613), duration(689), duration(46976), duration(-200000)
    ('0.61 s', '11 min', '13 h', '−2.3 d')
    """
    size, unit = next((one for one in UNITS if abs(seconds) >= 1.5 * one[0]), UNITS[-1])
    value = seconds / size
    digits = 2 if size == 1 and abs(value) < 10 else 1 if abs(value) < 10 else 0
    return f"{value:z.{digits}f} {unit}".replace("-", "−")
