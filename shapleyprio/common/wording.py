"""Numbers, times and texts as people read them; the one place where they are formatted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction

MISSING = "–"  # noqa: RUF001  # the dash of tables
"""Shown where there is no value."""

HOUR, DAY = 3600, 86_400
"""Seconds of each."""

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters that Python takes for printable."""

_ALIKE = re.compile(
    "[\u0370-\u058f\u13a0-\u13ff\u1c80-\u1c8f\u1f00-\u1fff\u212a\u2c80-\u2cff\u2de0-\u2dff"
    "\ua640-\ua69f\uab70-\uabbf\uff01-\uff5e\U0001d400-\U0001d7ff]"
)
"""Greek, Cyrillic, Armenian, Cherokee, Coptic, and Latin letters of other widths or styles."""

_WORD_WITH_LATIN = re.compile(r"\w*[A-Za-z\u00c0-\u024f]\w*")

UNITS = ((DAY, "d"), (HOUR, "h"), (60, "min"), (1, "s"))


def exact_duration(seconds: int) -> str:
    """Returns a duration as one would type it, in the largest unit that gives a whole number.

    >>> exact_duration(86_400), exact_duration(90)
    ('1d', '90s')
    """
    size, unit = next(found for found in UNITS if seconds % found[0] == 0)
    return f"{seconds // size}{unit[0]}"


def seconds_in(text: str) -> int | None:
    """Returns whole seconds, such as 90 or 1m30s; None for anything else."""
    from pytimeparse2 import parse  # a twentieth of what a worker takes to start

    seconds = parse(text) if text else None
    return int(seconds) if seconds is not None and 0 <= seconds == int(seconds) else None


def magnitude(number: float, sign: str = "") -> str:
    """Returns a large number with three digits and k, M, G, ...

    Args:
        number: any, such as part-seconds.
        sign: "+" to show the sign of positive numbers, too.

    >>> magnitude(999), magnitude(-1234567), magnitude(5e12, sign="+"), magnitude(0, sign="+")
    ('999', '−1.23M', '+5T', '0')
    """
    value = float(number)
    sign = sign if value else ""
    for unit in ("", "k", "M", "G", "T", "P", "E"):
        if abs(value) < 1000:
            digits = ".0f" if unit == "" else ".3g"
            return f"{value:{sign}{digits}}{unit}".replace("-", "−")
        value /= 1000
    return f"{value:{sign}.3g}Z".replace("-", "−")


def decimal(number: Fraction | float, sign: str = "") -> str:
    """Returns a number with at most two decimals, fewer where it is large.

    Args:
        number: any, such as seconds.
        sign: "+" to show the sign of positive numbers, too.

    >>> decimal(1234.5), decimal(-12.34), decimal(0.123), decimal(3, sign="+")
    ('1,234', '−12.3', '0.12', '+3.00')
    """
    value = float(number)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:{sign}z,.{digits}f}".replace("-", "−")


def three_digits(number: Fraction | float) -> str:
    """Returns a number with three digits, or whole where it has more.

    >>> three_digits(1234.5), three_digits(12.345), three_digits(0.5)
    ('1,234', '12.3', '0.5')
    """
    value = float(number)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def processor_hours(processor_seconds: int) -> str:
    """Returns processor-seconds as processor-hours with three digits.

    >>> processor_hours(4_442_400), processor_hours(1800)
    ('1,234', '0.5')
    """
    return three_digits(Fraction(processor_seconds, HOUR))


def four_digits(value: float) -> str:
    """Returns a whole number as it is, any other one with four digits.

    >>> four_digits(1234567), four_digits(1234.5678), four_digits(0.12345), four_digits(-2.0)
    ('1,234,567', '1,235', '0.1235', '−2')
    """
    if isinstance(value, float):
        digits = 0 if abs(value) >= 1000 else 4
        text = f"{value:,.0f}" if digits == 0 else f"{value:.{digits}g}"
    else:
        text = f"{value:,}"
    return ("0" if text == "-0" else text).replace("-", "−")


def whole(number: int) -> str:
    """Returns a whole number with all its digits.

    >>> whole(1234567), whole(-12)
    ('1,234,567', '−12')
    """
    return f"{number:,}".replace("-", "−")


def percent(part: Fraction | float, digits: int = 1, sign: str = "") -> str:
    """Returns a part of a whole in percent.

    Args:
        part: 1 for the whole.
        digits: behind the point.
        sign: "+" to show the sign of positive numbers, too.

    >>> percent(0.3333), percent(-0.0125, digits=2), percent(0.5, digits=0, sign="+")
    ('33.3%', '−1.25%', '+50%')
    """
    return f"{float(part):{sign}z.{digits}%}".replace("-", "−")


def cell(value: str | float | None, fraction: Callable[[float], str] = four_digits) -> str:
    """Returns a table's cell: texts as they are, whole numbers whole, None as a dash.

    Args:
        value: of the cell.
        fraction: formats numbers that are not whole.

    >>> cell("ref"), cell(1234), cell(None), cell(0.12345), cell(0.12345, decimal)
    ('ref', '1,234', '–', '0.1235', '0.12')
    """  # noqa: RUF002  # the dash of tables
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    return whole(value) if isinstance(value, int) else fraction(value)


def count(number: int, noun: str) -> str:
    """Returns how many there are of something.

    >>> count(0, "job"), count(1, "job"), count(12, "job")
    ('no jobs', '1 job', '12 jobs')
    """
    return f"{number or 'no'} {noun}{'s' * (number != 1)}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Writes names, but not more than so many.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def names_shown(names: Iterable[str], longest: int = 40) -> str:
    r"""Writes names that users may have made up: cut short, with nothing that a terminal obeys.

    >>> names_shown(["x\ny", "a" * 50])
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..., x\\ny'
    """
    return listed(
        [visible(name[:longest]) + "..." * (len(name) > longest) for name in sorted(names)]
    )


def duration(seconds: float) -> str:
    """Returns seconds in the unit that suits them.

    >>> duration(0.613), duration(689), duration(46976), duration(-200000), duration(7200)
    ('0.61 s', '11 min', '13 h', '−2.3 d', '2 h')
    """
    size, unit = next((found for found in UNITS if abs(seconds) >= 1.5 * found[0]), UNITS[-1])
    value = seconds / size
    digits = 2 if size == 1 and abs(value) < 10 else 1 if abs(value) < 10 else 0
    text = f"{value:z.{digits}f}".replace("-", "−")
    return f"{text.rstrip('0').rstrip('.') if digits else text} {unit}"


def delay(seconds: Fraction | float | None) -> str:
    """Returns by how much work came late or ahead, in the unit that suits it.

    Args:
        seconds: mean over the parts, positive: late; None if there is no mean.

    >>> delay(6480), delay(-192), delay(4.2), delay(0.001), delay(None)
    ('1.8 h late', '3.2 min ahead', '4.2 s late', 'on time', '–')
    """  # noqa: RUF002  # the dash of tables
    return _in_words(seconds, "on time", "{} late", "{} ahead")


def sooner(seconds: Fraction | float | None) -> str:
    """Returns by how much work would have come sooner, or later, than it came.

    Args:
        seconds: mean over the parts, positive: sooner; None if there is no mean.

    >>> sooner(6480), sooner(-192), sooner(0.001), sooner(None)
    ('1.8 h sooner', '3.2 min later', 'as soon', '–')
    """  # noqa: RUF002  # the dash of tables
    return _in_words(seconds, "as soon", "{} sooner", "{} later")


def signed_duration(seconds: Fraction | float | None) -> str:
    """Returns seconds with their sign, in the unit that suits them.

    >>> signed_duration(6480), signed_duration(-192), signed_duration(0), signed_duration(None)
    ('+1.8 h', '−3.2 min', '0 s', '–')
    """  # noqa: RUF002  # the dash of tables
    return _in_words(seconds, "0 s", "+{}", "−{}")


def owed(seconds: Fraction | float | None) -> str:
    """Returns a balance spread over all work: by how much an organization is owed, or owes.

    Args:
        seconds: mean over the parts of all jobs, positive: owed; None if there is no mean.

    >>> owed(6480), owed(-192), owed(0.001), owed(None)
    ('is owed 1.8 h', 'owes 3.2 min', 'is even', '–')
    """  # noqa: RUF002  # the dash of tables
    return _in_words(seconds, "is even", "is owed {}", "owes {}")


def _in_words(seconds: Fraction | float | None, none: str, above: str, below: str) -> str:
    if seconds is None:
        return MISSING
    size = duration(abs(float(seconds)))
    return none if size == "0 s" else (above if seconds > 0 else below).format(size)


def duration_in_words(seconds: int) -> str:
    """Returns a duration for a sentence.

    >>> duration_in_words(2_592_000), duration_in_words(86_400)
    ('30 days', '24 hours')
    """
    if seconds >= 2 * DAY:
        return f"{seconds / DAY:.3g} days"
    return f"{seconds / HOUR:.3g} hours"


def clock_time(second: int) -> str:
    """Returns a second since the epoch as date and time in the local time zone."""
    return f"{_local(second):%Y-%m-%d %H:%M:%S}"


def clock_time_with_zone(second: int) -> str:
    """Returns a second since the epoch as local date and time, with the name of the time zone."""
    return f"{_local(second):%Y-%m-%d %H:%M:%S %Z}"


def time_of_day(second: int) -> str:
    """Returns a second since the epoch as local time without the date."""
    return f"{_local(second):%H:%M:%S}"


def local_minute(second: int) -> str:
    """Returns a second since the epoch as local date and time, without seconds."""
    return f"{_local(second):%Y-%m-%d %H:%M}"


def clock_minute(second: int, now: int) -> str:
    """Formats a second for people to the minute, in the local time zone: with its day if not today.

    Args:
        second: since the epoch.
        now: likewise, a second of today.
    """
    moment, today = _local(second), _local(now)
    return moment.strftime("%H:%M" if moment.date() == today.date() else "%Y-%m-%d %H:%M")


def zone_name(second: int) -> str:
    """Returns the name that the local time zone has at a second since the epoch, such as CEST."""
    return f"{_local(second):%Z}"


def offset_of_zone(second: int) -> int:
    """Returns by how many seconds local time is ahead of UTC at a second since the epoch."""
    return int((_local(second).utcoffset() or timedelta()).total_seconds())


def dates(begin: int, end: int) -> str:
    """Returns a stretch of time, in seconds since the epoch, as local dates with the time zone."""
    first, last = zone_name(begin), zone_name(end)
    changed = "" if first == last else f" {first}"
    return f"{local_minute(begin)}{changed} to {local_minute(end)} {last}"


def _local(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC).astimezone()


def visible(text: str) -> str:
    r"""Returns text from outside with what people would not see, or take for something else.

    That is what a terminal obeys or does not show, and in a word with Latin letters the Greek,
    Cyrillic and other ones that look like Latin (Unicode's UTS #39, "moderately restrictive").
    Text from Slurm may hold what a user made up. Where it is shown to people (terminal, log,
    status page, report), it goes through here.

    >>> visible("x\x1b[2J\n\u202ey"), visible("Müller's φ̃"), visible("b\u0435ta"), visible("бета")
    ('x\\x1b[2J\\n\\u202ey', "Müller's φ̃", 'b\\u0435ta', 'бета')
    """
    if not text.isascii():
        text = _UNSEEN.sub(_written_out, text)
        text = _WORD_WITH_LATIN.sub(lambda word: _ALIKE.sub(_written_out, word.group()), text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _written_out(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode()


def visible_json(value: object) -> str:
    r"""Returns JSON for machines that people may look at: no terminal obeys anything in it.

    >>> visible_json(["\x9b2J φ̃"]).split()
    ['[', '"\\u009b2J', 'φ̃"', ']']
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "\n".join(
        line
        if line.isprintable()
        else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
        for line in text.split("\n")
    )
