"""Pieces of Vega-Lite specifications that charts have in common, colors among them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

OKABE_ITO = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00"),
    *("#56B4E9", "#CC79A7", "#7F7F7F", "#F0E442"),
)
"""Okabe & Ito, *Color universal design* (2008), with gray for their black, which a dark screen
hides; yellow, the palest on white, comes last."""

SHADES = ((0x00, 0.0), (0x60, 0.5), (0xFF, 0.5))
"""What each further round of eight is mixed with, and how much of that."""


def colors_of(organizations: Sequence[str]) -> dict[str, str]:
    """Returns a color for each organization, by its place in the list.

    Beyond 24 organizations colors repeat; then only hovering distinguishes them.

    >>> colors_of(["physics", "biology"])
    {'physics': '#0072B2', 'biology': '#E69F00'}
    """
    return {name: _color(place) for place, name in enumerate(organizations)}


def _color(place: int) -> str:
    color = OKABE_ITO[place % len(OKABE_ITO)]
    other, part = SHADES[place // len(OKABE_ITO) % len(SHADES)]
    channels = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    mixed = (round(channel * (1 - part) + other * part) for channel in channels)
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


Spec = dict[str, Any]

ROW = 30
"""Height of a row of bars or cells, in pixels."""

LINE, LONGEST_LINE = 13, 22
"""Height of a line of a name in pixels, and how many letters it holds at most."""

SHORT = "datum.value == 0 ? '0' : format(datum.value, abs(datum.value) < 1000 ? '.3~r' : '.3~s')"
"""Label of a tick at a number."""

CLOCK: Spec = {"hours": "%H:%M", "minutes": "%H:%M", "date": "%d %b", "week": "%d %b"}
"""How a tick at a date is written, by its finest unit: of 24 hours, the day before its month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """How moments are shown.

    Attributes:
        title: with the unit.
        begin, end: of the axis, in its unit; milliseconds since the epoch for dates.
        dates: whether they are dates, as if local time were UTC.
    """

    title: str
    begin: float
    end: float
    dates: bool = False

    def encoding(self, field: str) -> Spec:
        """Returns the channel x or x2, its domain following the page."""
        scale: Spec = {
            "domainMin": {"expr": "begin"},
            "domainMax": {"expr": "end"},
            "nice": False,
            **({"type": "utc"} if self.dates else {"zero": False}),
        }
        return {
            "field": field,
            "type": "temporal" if self.dates else "quantitative",
            "scale": scale,
            "title": self.title,
            "axis": {
                "labelOverlap": True,
                "tickCount": {"expr": "max(3, floor(width / 90))"},
                **({"format": CLOCK} if self.dates else {}),
            },
        }

    def tooltip(self, field: str) -> Spec:
        """Returns a line with the moment beside the mouse."""
        if self.dates:
            shown = {"timeUnit": "utcyearmonthdatehoursminutes", "type": "temporal"}
            return {"field": field, "title": "time", **shown}
        return {"field": field, "title": self.title, "type": "quantitative", "format": ",.4~f"}


LEGEND: Spec = {
    "orient": "top",
    "columns": {"expr": "max(2, floor(width / 130))"},
    "labelLimit": 110,
    "symbolLimit": 0,
}
"""Above a chart, in as many columns as there is room for."""


def named_rows(names: Collection[str]) -> tuple[int, Spec]:
    """Returns the height of a chart with a row for each name, and the axis with the whole names."""
    wrapped = {name: wrap(name, LONGEST_LINE) or [name] for name in names}
    most = max(map(len, wrapped.values()), default=1)
    shown = f"{json.dumps(wrapped)}[datum.value]"
    axis = {
        "labelLimit": 0,
        "labelExpr": shown,
        # a label's first line stands in the middle of its row: each moves up by half of its others
        "labelOffset": {
            "condition": [
                {"test": f"length({shown}) === {lines}", "value": -(lines - 1) * LINE / 2}
                for lines in range(2, most + 1)
            ],
            "value": 0,
        },
    }
    return max(ROW, 4 + LINE * most) * len(wrapped), axis


def rows_of(field: str, names: Collection[str]) -> tuple[int, Spec]:
    """Returns the height, and the channel y: one row for each name."""
    height, axis = named_rows(names)
    scale = {"domain": list(names)}
    return height, {"field": field, "type": "nominal", "title": None, "scale": scale, "axis": axis}


def params(*, choice: str | None = None, axis: TimeAxis | None = None) -> list[Spec]:
    """Returns the signals of the page that a chart follows."""
    return [
        {"name": "hidden", "value": []},
        *([] if choice is None else [{"name": "choice", "value": choice}]),
        *(
            []
            if axis is None
            else [{"name": "begin", "value": axis.begin}, {"name": "end", "value": axis.end}]
        ),
    ]


def filters(choice: str | None) -> list[Spec]:
    """Selects the shown part of a chart's data; `choice` is None where it does not matter."""
    return [*chosen(choice), {"filter": "indexof(hidden, datum.organization) < 0"}]


def chosen(choice: str | None) -> list[Spec]:
    """Selects as `filters` does, from data that have nothing to do with organizations."""
    return [] if choice is None else [{"filter": "datum.choice === choice"}]


def organizations(colors: Mapping[str, str], field: str = "organization") -> Spec:
    """Returns the channel color: an organization's own, or that of another field's value."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(colors), "range": list(colors.values())},
        "legend": {**LEGEND, "symbolType": "circle"},
    }


def quantity(field: str, title: str, axis: Spec | None = None) -> Spec:
    """Returns a channel for numbers."""
    found: Spec = {"field": field, "type": "quantitative", "title": title}
    return found if axis is None else {**found, "axis": axis}


def label(field: str, title: str | None = None) -> Spec:
    """Returns a line of words beside the mouse."""
    return {"field": field, "type": "nominal", "title": field if title is None else title}


def number(field: str, title: str, format_: str = ",.4~g") -> Spec:
    """Returns a line with a number beside the mouse."""
    return {"field": field, "type": "quantitative", "title": title, "format": format_}
