"""Charts that only the report of an experiment has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from shapleyprio.reports.html.encodings import (
    SHORT,
    Spec,
    chosen,
    label,
    number,
    organizations,
    params,
    quantity,
    rows_of,
)
from shapleyprio.reports.html.page import Chart, Data


def counts(
    name: str,
    data: Data,
    *,
    title: str,
    colors: Mapping[str, str],
    kinds: Sequence[str],
    choice: str | None,
) -> Chart:
    """Draws how often each policy saw something: a bar, fainter for each further kind.

    Args:
        name: of the chart.
        data: choice, policy, kind, value.
        title: of the values.
        colors: of policies.
        kinds: in the order in which they stand in a bar.
        choice: that is shown at first; None where nothing can be chosen.
    """
    faintness = {"domain": list(kinds), "range": [1, 0.35, 0.15][: len(kinds)]}
    height, y = rows_of("policy", colors)
    spec: Spec = {
        "params": params(choice=choice),
        "transform": [
            *chosen(choice),
            {"calculate": f"indexof({json.dumps(list(kinds))}, datum.kind)", "as": "place"},
        ],
        "height": height,
        "mark": {"type": "bar", "height": 18},
        "encoding": {
            "y": y,
            "x": quantity("value", title, axis={"tickCount": 5, "format": "d"}),
            "order": {"field": "place", "type": "quantitative"},
            "color": {**organizations(colors, "policy"), "legend": None},
            "opacity": {
                "field": "kind",
                "type": "ordinal",
                "scale": faintness,
                "legend": {"orient": "bottom", "title": None},
            },
            "tooltip": [label("policy"), label("kind"), number("value", title)],
        },
    }
    return Chart(name=name, spec=spec, data=data)


def intervals(
    name: str,
    data: Data,
    *,
    title: str,
    colors: Mapping[str, str] | None = None,
    choice: str | None = None,
) -> Chart:
    """Draws each policy's mean, and the interval in which it is known to be.

    Args:
        name: of the chart.
        data: policy, low, mean, high; and choice if there is one.
        title: of the values.
        colors: of policies; None for one color.
        choice: that is shown at first; None where nothing can be chosen.
    """
    policies = list(dict.fromkeys(str(policy) for policy in data["policy"]))
    color = {} if colors is None else {"color": {**organizations(colors, "policy"), "legend": None}}
    low_to_high = {
        "x": quantity("low", title, axis={"labelExpr": SHORT, "tickCount": 5}),
        "x2": {"field": "high"},
    }
    height, y = rows_of("policy", policies)
    spec: Spec = {
        "params": params(choice=choice),
        "transform": chosen(choice),
        "height": height,
        "encoding": {
            "y": y,
            **color,
            "tooltip": [
                label("policy"),
                *(number(field, field) for field in ("mean", "low", "high")),
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
