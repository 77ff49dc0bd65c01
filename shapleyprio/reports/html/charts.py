"""Charts over time and matrices, as Vega-Lite specifications (https://vega.github.io/vega-lite/).

A chart follows the page's signals as far as its specification has them: ``choice`` is what the
reader chose, ``hidden`` the organizations switched off, ``begin`` and ``end`` the stretch of time
that is looked at. All data have a field ``choice`` where the chart depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shapleyprio.reports.html.encodings import (
    SHORT,
    Spec,
    TimeAxis,
    filters,
    label,
    number,
    organizations,
    params,
    quantity,
    rows_of,
)
from shapleyprio.reports.html.page import Chart, Data

TALL = 300
"""Height of a chart over time, in pixels."""

FITTING = "clamp(width / length(domain('x')) / 4, 7, 11)"
"""Size of what is written in a cell of a matrix, in pixels."""


def trends(
    name: str,
    data: Data,
    *,
    axis: TimeAxis,
    title: str,
    colors: Mapping[str, str],
    choice: str | None,
) -> Chart:
    """Draws lines over time, one for each organization.

    Args:
        name: of the chart.
        data: choice, time, organization, value.
        axis: of time.
        title: of the values.
        colors: of organizations.
        choice: that is shown at first; None where nothing can be chosen.
    """
    encoding: Spec = {
        "x": axis.encoding("time"),
        "y": quantity("value", title, axis={"labelExpr": SHORT, "tickCount": 6}),
        "color": organizations(colors),
    }
    near: Spec = {"type": "point", "on": "pointerover", "clear": "pointerout", "nearest": True}
    described = [label("organization"), axis.tooltip("time"), number("value", title)]
    spec: Spec = {
        "params": params(choice=choice, axis=axis),
        "transform": [*filters(choice), {"filter": "datum.time >= begin && datum.time <= end"}],
        "height": TALL,
        "encoding": encoding,
        "layer": [
            {"mark": {"type": "line", "clip": True, "strokeWidth": 2}},
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
    """Draws parts of a whole over time, one upon the other for each organization.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixWords:
    """What a matrix calls things, and what makes its cells dark.

    Attributes:
        values: title of the values.
        rows, columns: what they are.
        part: what `part` is a part of.
        shaded_by: field that makes a cell dark.
    """

    values: str
    rows: str = "jobs of"
    columns: str = "processors of"
    part: str = "of these jobs' work"
    shaded_by: Literal["value", "part"] = "value"


def heat_map(
    name: str,
    data: Data,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    choice: str | None,
    words: MatrixWords,
) -> Chart:
    """Draws a matrix: whose jobs (rows, "organization") got how much of whose (columns, "owner").

    Args:
        name: of the chart.
        data: choice, organization, owner, value, part (of the row's sum), written (in the cell).
        rows: organizations in order.
        columns: owners in order.
        choice: that is shown at first; None where nothing can be chosen.
        words: titles, and what makes a cell dark.
    """
    shaded_by = words.shaded_by
    height, y = rows_of("organization", rows)
    shades = "~s" if shaded_by == "value" else ".0%"
    narrow = f"width < {7 * max(map(len, columns), default=1)} * length(domain('x'))"
    largest = f"isValid(datum.most) ? datum.{shaded_by} / datum.most : 0"
    spec: Spec = {
        "params": params(choice=choice),
        "transform": [
            *filters(choice),
            {"joinaggregate": [{"op": "max", "field": shaded_by, "as": "most"}]},
            {"calculate": largest, "as": "height"},
        ],
        "height": height,
        "encoding": {
            "x": {
                "field": "owner",
                "type": "nominal",
                "title": words.columns,
                "sort": list(columns),
                "axis": {
                    "orient": "top",
                    "labelLimit": 0,
                    "labelAngle": {"expr": f"{narrow} ? -90 : 0"},
                    "labelAlign": {"expr": f"{narrow} ? 'left' : 'center'"},
                    "labelBaseline": {"expr": f"{narrow} ? 'middle' : 'bottom'"},
                },
            },
            "y": {**y, "title": words.rows},
        },
        "layer": [
            {
                "mark": {"type": "rect"},
                "encoding": {
                    "color": {
                        "field": shaded_by,
                        "type": "quantitative",
                        "title": words.values if shaded_by == "value" else words.part,
                        "scale": {"range": ["#f3f8fd", "#08306b"], "domainMin": 0},
                        "legend": {"orient": "bottom", "gradientLength": 200, "format": shades},
                    },
                    "tooltip": [
                        label("organization", words.rows),
                        label("owner", words.columns),
                        number("value", words.values),
                        number("part", words.part, ".1%"),
                    ],
                },
            },
            {
                "mark": {"type": "text", "fontSize": {"expr": FITTING}},
                "encoding": {
                    "text": {"field": "written"},
                    "color": {
                        "condition": {"test": "datum.height > 0.5", "value": "white"},
                        "value": "#222",
                    },
                },
            },
        ],
    }
    return Chart(name=name, spec=spec, data=data)
