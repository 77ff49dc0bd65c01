"""Kinds of charts, as Vega-Lite specifications (https://vega.github.io/vega-lite/).

A chart follows the page's signals as far as its specification has them: ``choice`` is what the
reader chose, ``hidden`` the organizations switched off, ``begin`` and ``end`` the stretch of time
that is looked at. All data have a field ``choice`` where the chart depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from shapleyprio.report.encodings import (
    SHORT,
    Spec,
    TimeAxis,
    filters,
    label,
    number,
    organizations,
    params,
    quantity,
)
from shapleyprio.report.page import Cell, Chart

Data = Mapping[str, Sequence[Cell]]

ROW = 30
"""Height of a row of bars or cells, in pixels."""

TALL = 300
"""Height of a chart over time, in pixels."""

WRITTEN = (
    "datum.value < 0.05 ? '' : "
    "format(datum.value, datum.value < 10 ? '.1f' : datum.value < 1000 ? '.0f' : '.2~s')"
)
"""What stands in a cell."""

SECONDS = (
    "datum.value == 0 ? '0' : abs(datum.value) < 60 ? datum.value + ' s' : "
    "abs(datum.value) < 3600 ? datum.value / 60 + ' min' : "
    "abs(datum.value) < 86400 ? datum.value / 3600 + ' h' : datum.value / 86400 + ' d'"
)
"""Label of a tick at so many seconds."""

TICKS = (0, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)
"""Where a logarithmic axis of seconds has them."""


def trends(
    name: str,
    data: Data,
    *,
    axis: TimeAxis,
    title: str,
    colors: Mapping[str, str],
    choice: str,
    kinds: Sequence[str] = (),
) -> Chart:
    """Lines over time, one for each organization (and kind, drawn solid, dashed, ...).

    Args:
        name: of the chart.
        data: choice, time, organization, value, and kind if there are kinds.
        axis: of time.
        title: of the values.
        colors: of organizations.
        choice: that is shown at first.
        kinds: what lines there are of each organization.
    """
    encoding: Spec = {
        "x": axis.encoding("time"),
        "y": quantity("value", title, axis={"labelExpr": SHORT, "tickCount": 6}),
        "color": organizations(colors),
    }
    dashes: Spec = {
        "strokeDash": {
            "field": "kind",
            "scale": {"domain": list(kinds), "range": [[1, 0], [6, 3], [2, 2]][: len(kinds)]},
            "legend": {"orient": "bottom", "title": None, "symbolSize": 400},
        }
    }
    near: Spec = {"type": "point", "on": "pointerover", "clear": "pointerout", "nearest": True}
    described = [
        label("organization"),
        *([label("kind")] if kinds else []),
        axis.tooltip("time"),
        number("value", title),
    ]
    spec: Spec = {
        "params": params(choice=choice, axis=axis),
        "transform": [*filters(choice), {"filter": "datum.time >= begin && datum.time <= end"}],
        "height": TALL,
        "encoding": encoding,
        "layer": [
            {
                "mark": {"type": "line", "clip": True, "strokeWidth": 2},
                "encoding": dashes if kinds else {},
            },
            {
                "params": [{"name": "near", "select": near}],
                "mark": {"type": "point", "filled": True, "size": 70, "clip": True},
                "encoding": {
                    "opacity": {
                        "condition": {"param": "near", "empty": False, "value": 1},
                        "value": 0,
                    },
                    "tooltip": described,
                },
            },
        ],
    }
    return Chart(name=name, spec=spec, data=data)


def stacked_bars(
    name: str,
    data: Data,
    *,
    axis: TimeAxis,
    title: str,
    colors: Mapping[str, str],
    choice: str,
) -> Chart:
    """Parts of a whole over time, one upon the other for each organization.

    Args:
        name: of the chart.
        data: choice, time, until, organization, value (a part of 1).
        axis: of time.
        title: of the values.
        colors: of organizations.
        choice: that is shown at first.
    """
    names = list(colors)
    spec: Spec = {
        "params": params(choice=choice, axis=axis),
        "transform": [
            *filters(choice),
            {"filter": "datum.until > begin && datum.time < end"},
            {"calculate": f"indexof({json.dumps(names)}, datum.organization)", "as": "place"},
            {
                "stack": "value",
                "groupby": ["time"],
                "sort": [{"field": "place"}],
                "as": ["low", "high"],
            },
        ],
        "height": TALL,
        # a thin stroke covers the gaps that a screen would show between neighbors
        "mark": {
            "type": "rect",
            "clip": True,
            "stroke": {"expr": "scale('color', datum.organization)"},
            "strokeWidth": 0.7,
        },
        "encoding": {
            "x": axis.encoding("time"),
            "x2": {"field": "until"},
            "y": quantity("low", title, axis={"format": ".0%", "tickCount": 6}),
            "y2": {"field": "high"},
            "color": organizations(colors),
            "tooltip": [
                label("organization"),
                axis.tooltip("time"),
                number("value", title, ".2%"),
            ],
        },
    }
    return Chart(name=name, spec=spec, data=data)


def heat_map(
    name: str, data: Data, *, rows: Sequence[str], columns: Sequence[str], title: str, choice: str
) -> Chart:
    """A matrix: whose jobs (rows, "organization") got how much of whose (columns, "owner").

    Args:
        name: of the chart.
        data: choice, organization, owner, value, part (of the row's sum).
        rows: organizations in order.
        columns: owners in order.
        title: of the values.
        choice: that is shown at first.
    """
    narrow = "width < 100 * length(domain('x'))"
    largest = "isValid(datum.most) ? datum.value / datum.most : 0"
    spec: Spec = {
        "params": params(choice=choice),
        "transform": [
            *filters(choice),
            {"joinaggregate": [{"op": "max", "field": "value", "as": "most"}]},
            {"calculate": largest, "as": "height"},
            {"calculate": WRITTEN, "as": "written"},
        ],
        "height": ROW * len(rows),
        "encoding": {
            "x": {
                "field": "owner",
                "type": "nominal",
                "title": "processors of",
                "sort": list(columns),
                "axis": {
                    "orient": "top",
                    "labelLimit": 110,
                    "labelAngle": {"expr": f"{narrow} ? -90 : 0"},
                    "labelAlign": {"expr": f"{narrow} ? 'left' : 'center'"},
                    "labelBaseline": {"expr": f"{narrow} ? 'middle' : 'bottom'"},
                },
            },
            "y": {
                "field": "organization",
                "type": "nominal",
                "title": "jobs of",
                "scale": {"domain": list(rows)},
                "axis": {"labelLimit": 110},
            },
        },
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "white", "strokeWidth": 2},
                "encoding": {
                    "color": {
                        "field": "value",
                        "type": "quantitative",
                        "title": title,
                        "scale": {"range": ["#f3f8fd", "#08306b"], "domainMin": 0},
                        "legend": {"orient": "bottom", "gradientLength": 200, "format": "~s"},
                    },
                    "tooltip": [
                        label("organization", "jobs of"),
                        label("owner", "processors of"),
                        number("value", title),
                        number("part", "of these jobs' work", ".1%"),
                    ],
                },
            },
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    "text": {"field": "written"},
                    "color": {
                        "condition": {"test": "datum.height > 0.5", "value": "white"},
                        "value": "#222",
                    },
                    "opacity": {"value": {"expr": "width < 34 * length(domain('x')) ? 0 : 1"}},
                },
            },
        ],
    }
    return Chart(name=name, spec=spec, data=data)


def spread(name: str, data: Data, *, title: str, colors: Mapping[str, str], choice: str) -> Chart:
    """How values are spread: a thin line from 5 to 95 %, a bar from 25 to 75 %, the median.

    Args:
        name: of the chart.
        data: choice, organization, p5, p25, p50, p75, p95 (seconds).
        title: of the values.
        colors: of organizations.
        choice: that is shown at first.
    """
    scale = {"type": "symlog", "constant": 60, "nice": False, "domainMin": 0}
    x: Spec = {
        "type": "quantitative",
        "scale": scale,
        "title": title,
        "axis": {"values": list(TICKS), "labelExpr": SECONDS, "labelOverlap": True},
    }
    y: Spec = {
        "field": "organization",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(colors)},
        "axis": {"labelLimit": 110},
    }
    color = {**organizations(colors), "legend": None}
    described = [
        label("organization"),
        *(number(f"p{percent}", f"{percent} % wait at most (s)") for percent in SPREAD),
    ]

    def layer(mark: Spec, begin: str, end: str | None) -> Spec:
        to = {} if end is None else {"x2": {"field": end}}
        return {"mark": mark, "encoding": {"x": {**x, "field": begin}, **to}}

    spec: Spec = {
        "params": params(choice=choice),
        "transform": filters(choice),
        "height": ROW * len(colors),
        "encoding": {"y": y, "color": color, "tooltip": described},
        "layer": [
            layer({"type": "rule", "strokeWidth": 2}, "p5", "p95"),
            layer({"type": "bar", "height": 14, "fillOpacity": 0.75}, "p25", "p75"),
            layer({"type": "tick", "thickness": 4, "size": 22}, "p50", None),
        ],
    }
    return Chart(name=name, spec=spec, data=data)


SPREAD = (5, 25, 50, 75, 95)
"""Per cents of which `spread` shows the percentiles."""


def signed_bars(
    name: str, data: Data, *, title: str, colors: Mapping[str, str], policies: Sequence[str]
) -> Chart:
    """A bar for each policy, made of organizations: to the right above zero, to the left below.

    Args:
        name: of the chart.
        data: policy, organization, value, label (of the whole bar).
        title: of the values.
        colors: of organizations.
        policies: in order.
    """
    policy: Spec = {
        "field": "policy",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(policies)},
        "axis": {"labelLimit": 110},
    }
    seconds = quantity("value", title, axis={"labelExpr": SHORT, "tickCount": 5})
    right = {"op": "sum", "field": "above", "as": "right"}
    spec: Spec = {
        "params": params(),
        "transform": filters(None),
        "height": ROW * len(policies),
        "encoding": {"y": policy},
        "layer": [
            {
                "mark": {"type": "bar", "height": 18},
                "encoding": {
                    "x": {**seconds, "stack": "zero", "scale": {"padding": 45}},
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


def intervals(name: str, data: Data, *, title: str) -> Chart:
    """For each policy a mean, and the interval in which it is known to be.

    Args:
        name: of the chart.
        data: policy, low, mean, high; and panel, for one row of charts below the other.
        title: of the values.
    """
    policies = list(dict.fromkeys(data["policy"]))
    low_to_high = {
        "x": quantity("low", title, axis={"labelExpr": SHORT, "tickCount": 5}),
        "x2": {"field": "high"},
    }
    y: Spec = {"field": "policy", "type": "nominal", "title": None, "sort": policies}
    if "panel" in data:
        y = {**y, "field": "row", "sort": None, "axis": {"labelLimit": 220}}
    spec: Spec = {
        "transform": [{"calculate": "datum.panel + ' · ' + datum.policy", "as": "row"}]
        if "panel" in data
        else [],
        "height": ROW * len(data["policy"]),
        "encoding": {
            "y": y,
            "tooltip": [
                *([label("panel", "")] if "panel" in data else []),
                label("policy"),
                *(number(field, field, ",.4~g") for field in ("mean", "low", "high")),
            ],
        },
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 3}, "encoding": low_to_high},
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": quantity("mean", title)},
            },
        ],
    }
    return Chart(name=name, spec=spec, data=data)
