"""Charts that compare organizations or policies, as Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from shapleyprio.common.wording import DAY, HOUR
from shapleyprio.reports.html.encodings import (
    SHORT,
    Spec,
    filters,
    label,
    number,
    organizations,
    params,
    quantity,
    rows_of,
)
from shapleyprio.reports.html.page import Chart, Data

SECONDS = (
    "datum.value == 0 ? '0' : abs(datum.value) < 60 ? datum.value + ' s' : "
    "abs(datum.value) < 3600 ? datum.value / 60 + ' min' : "
    "abs(datum.value) < 86400 ? datum.value / 3600 + ' h' : datum.value / 86400 + ' d'"
)
"""Label of a tick at so many seconds."""

TICKS = (0, 10, 60, 600, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY)
"""Where a logarithmic axis of seconds has them."""

SPREAD = (5, 25, 50, 75, 95)
"""Per cents of which `spread` shows the percentiles."""

ROOM_FOR_LABELS = 45
"""Beside bars, in pixels."""


def spread(
    name: str,
    data: Data,
    *,
    title: str,
    colors: Mapping[str, str],
    choice: str | None,
    of: Literal["organization", "policy"] = "organization",
    linear_below: int | None = 60,
) -> Chart:
    """Draws the spread of values: a thin line from 5 to 95 %, a bar from 25 to 75 %, the median.

    Args:
        name: of the chart.
        data: choice, organization (or policy), p5, p25, p50, p75, p95.
        title: of the values.
        colors: of organizations or policies.
        choice: that is shown at first; None where nothing can be chosen.
        of: whose values they are.
        linear_below: seconds beyond which the axis is logarithmic; None for an axis that is
            linear, of any unit.
    """
    x: Spec = {"type": "quantitative", "title": title}
    if linear_below is None:
        x |= {"scale": {"zero": False}, "axis": {"tickCount": 5}}
    else:
        scale = {"type": "symlog", "constant": linear_below, "nice": False, "domainMin": 0}
        axis = {"values": list(TICKS), "labelExpr": SECONDS, "labelOverlap": True}
        x |= {"scale": scale, "axis": axis}
    color = {**organizations(colors, of), "legend": None}
    described = [
        label(of),
        *(number(f"p{percent}", f"{percent} % at most") for percent in SPREAD),
    ]

    def layer(mark: Spec, begin: str, end: str | None) -> Spec:
        to = {} if end is None else {"x2": {"field": end}}
        return {"mark": mark, "encoding": {"x": {**x, "field": begin}, **to}}

    height, y = rows_of(of, colors)
    spec: Spec = {
        "params": params(choice=choice),
        "transform": filters(choice),
        "height": height,
        "encoding": {"y": y, "color": color, "tooltip": described},
        "layer": [
            layer({"type": "rule", "strokeWidth": 2}, "p5", "p95"),
            layer({"type": "bar", "height": 14, "fillOpacity": 0.75}, "p25", "p75"),
            layer({"type": "tick", "thickness": 4, "size": 22}, "p50", None),
        ],
    }
    return Chart(name=name, spec=spec, data=data)


def signed_bars(
    name: str, data: Data, *, title: str, colors: Mapping[str, str], policies: Sequence[str]
) -> Chart:
    """Draws a bar of organizations for each policy: to the right above zero, to the left below.

    Args:
        name: of the chart.
        data: policy, organization, value, label (of the whole bar).
        title: of the values.
        colors: of organizations.
        policies: in order.
    """
    seconds = quantity("value", title, axis={"labelExpr": SHORT, "tickCount": 5})
    right = {"op": "sum", "field": "above", "as": "right"}
    height, y = rows_of("policy", policies)
    spec: Spec = {
        "params": params(),
        "transform": filters(None),
        "height": height,
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "bar", "height": 18},
                "encoding": {
                    "x": {**seconds, "stack": "zero", "scale": {"padding": ROOM_FOR_LABELS}},
                    "color": organizations(colors),
                    "tooltip": [
                        label("policy"),
                        label("organization"),
                        number("value", title, ",.4~g"),
                    ],
                },
            },
            {
                "transform": [
                    {"calculate": "max(datum.value, 0)", "as": "above"},
                    {"aggregate": [right], "groupby": ["policy", "label"]},
                ],
                "mark": {"type": "text", "align": "left", "dx": 5, "fontWeight": "bold"},
                "encoding": {
                    "x": {"field": "right", "type": "quantitative"},
                    "text": {"field": "label"},
                },
            },
        ],
    }
    return Chart(name=name, spec=spec, data=data)


def bars(
    name: str, data: Data, *, title: str, colors: Mapping[str, str], choice: str | None
) -> Chart:
    """Draws a bar for each organization, to the right above zero, to the left below.

    Args:
        name: of the chart.
        data: choice, organization, value, label (the text beside the bar).
        title: of the values.
        colors: of organizations.
        choice: that is shown at first; None where nothing can be chosen.
    """
    value = quantity("value", title, axis={"labelExpr": SHORT, "tickCount": 5})
    height, y = rows_of("organization", colors)
    spec: Spec = {
        "params": params(choice=choice),
        "transform": [
            *filters(choice),
            {"calculate": "max(datum.value, 0)", "as": "right"},
        ],
        "height": height,
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "bar", "height": 18},
                "encoding": {
                    "x": {**value, "scale": {"padding": ROOM_FOR_LABELS}},
                    "color": {**organizations(colors), "legend": None},
                    "tooltip": [label("organization"), number("value", title)],
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 5},
                "encoding": {
                    "x": {"field": "right", "type": "quantitative"},
                    "text": {"field": "label"},
                },
            },
        ],
    }
    return Chart(name=name, spec=spec, data=data)
