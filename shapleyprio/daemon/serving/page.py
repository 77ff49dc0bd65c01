"""The status page: an overview as HTML that needs no script and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import version
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from shapleyprio.common.wording import (
    clock_time_with_zone,
    delay,
    duration,
    magnitude,
    signed_duration,
    visible,
)
from shapleyprio.daemon.serving.overview import Drift, Overview, Point
from shapleyprio.slurm.findings import Severity

REFRESH_SECONDS = 60

BAR_WIDTH = 100.0
"""Width of a balance's bar in units of the drawing; zero is in the middle."""

LINE_WIDTH, LINE_HEIGHT = 96.0, 20.0
"""Size of a sparkline, four units an hour; zero is in the middle."""

SYMBOLS = {Severity.ERROR: "✖", Severity.WARNING: "▲", Severity.NOTICE: "ℹ"}  # noqa: RUF001
"""A finding's severity for those who do not see colors."""


def render(overview: Overview) -> str:
    """Renders the page."""
    status = overview.status
    pool = status.pool if status else None
    balances = [row.balance for row in status.rows] if status else []
    return _template().render(
        overview=overview,
        status=status,
        largest=max(map(abs, balances), default=0),
        pool=pool if pool is not None and pool.spans_others else None,
        own_score=status is not None and any(row.score != row.balance for row in status.rows),
        version=version("shapleyprio"),
        css=Markup(_resource("page.css")),  # noqa: S704  # our own file
        refresh=REFRESH_SECONDS,
        symbols=SYMBOLS,
    )


def bar(balance: int, largest: int) -> tuple[float, float]:
    """Returns where the bar of a balance begins and how wide it is.

    >>> bar(50, 100), bar(-100, 100), bar(0, 0)
    ((50.0, 25.0), (0.0, 50.0), (50.0, 0.0))
    """
    middle = BAR_WIDTH / 2
    width = abs(balance) / largest * middle if largest else 0.0
    return (middle if balance >= 0 else middle - width), round(width, 2)


def sparkline(line: Sequence[Point], drift: Drift) -> str:
    """Draws a path through an organization's points, on the scale that all of them share."""
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


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {
        "clock_time": clock_time_with_zone,
        "delay": delay,
        "signed_duration": signed_duration,
        "duration": duration,
        "signed": partial(magnitude, sign="+"),
    }
    environment.globals |= {"bar": bar, "sparkline": sparkline}
    return environment.from_string(_resource("page.html"))


def _shown(value: object) -> object:
    return visible(value) if type(value) is str else value  # Markup is ours


def _resource(name: str) -> str:
    return files("shapleyprio.daemon.serving").joinpath(name).read_text(encoding="utf-8")
