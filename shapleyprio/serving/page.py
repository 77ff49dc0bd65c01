"""The status page: an overview as HTML that needs no script and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from shapleyprio.service.check import Severity
from shapleyprio.service.wording import short_number
from shapleyprio.serving.drift import Drift, Point
from shapleyprio.serving.overview import Overview

REFRESH_SECONDS = 60

BAR_WIDTH = 100.0
"""Of a balance's bar, zero being in its middle, in units of the drawing."""

LINE_WIDTH, LINE_HEIGHT = 96.0, 20.0
"""Of a sparkline: four units an hour, zero being in the middle."""

SYMBOLS = {Severity.ERROR: "✖", Severity.WARNING: "▲", Severity.NOTICE: "ℹ"}  # noqa: RUF001
"""A finding's severity for those who do not see colors."""


def render(overview: Overview) -> str:
    """The page."""
    status = overview.status
    balances = [row.balance for row in status.rows] if status else []
    return _template().render(
        overview=overview,
        status=status,
        largest=max(map(abs, balances), default=0),
        version=version("shapleyprio"),
        css=Markup(_resource("page.css")),  # noqa: S704  # our own file
        refresh=REFRESH_SECONDS,
        symbols=SYMBOLS,
    )


def bar(balance: int, largest: int) -> tuple[float, float]:
    """Where the bar of a balance begins and how wide it is.

    >>> bar(50, 100), bar(-100, 100), bar(0, 0)
    ((50.0, 25.0), (0.0, 50.0), (50.0, 0.0))
    """
    middle = BAR_WIDTH / 2
    width = abs(balance) / largest * middle if largest else 0.0
    return (middle if balance >= 0 else middle - width), round(width, 2)


def sparkline(line: Sequence[Point], drift: Drift) -> str:
    """A path through the points of an organization, on the scale that all of them share."""
    middle = LINE_HEIGHT / 2
    reach = (middle - 1) / (drift.largest_seconds or 1)
    points = [
        (
            (end - drift.since) / (drift.until - drift.since) * LINE_WIDTH,
            middle - seconds * reach,
        )
        for end, seconds in line
    ]
    drawn = [f"{x:.2f} {y:.2f}" for x, y in points]
    # a line of no length is drawn as a dot, which a single point would not be
    return f"M{' L'.join(drawn)} L{drawn[-1]}" if drawn else ""


def moment(second: int) -> str:
    """A second in this host's time zone, which is named."""
    return datetime.fromtimestamp(second, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def span(seconds: float) -> str:
    """A duration in the unit that suits it.

    >>> span(45), span(600), span(7200), span(604800)
    ('45 s', '10 min', '2 h', '7 d')
    """
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def signed(number: int) -> str:
    """A number of part-seconds with its sign."""
    text = short_number(number).replace("-", "−")
    return f"+{text}" if number > 0 else text


def signed_seconds(seconds: float) -> str:
    """A drift with its sign.

    >>> signed_seconds(12.3), signed_seconds(-1234.0), signed_seconds(-0.04)
    ('+12.3 s', '−1,234 s', '0.0 s')
    """
    text = f"{seconds:+z,.0f}" if abs(seconds) >= 100 else f"{seconds:+z.1f}"
    return f"{'0.0' if text == '+0.0' else text.replace('-', '−')} s"


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "moment": moment,
        "signed": signed,
        "signed_seconds": signed_seconds,
        "span": span,
    }
    environment.globals |= {"bar": bar, "sparkline": sparkline}
    return environment.from_string(_resource("page.html"))


def _resource(name: str) -> str:
    return files("shapleyprio.serving").joinpath(name).read_text(encoding="utf-8")
