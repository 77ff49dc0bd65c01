"""A chart of how often policies saw something."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from shapleyprio.reports.html.encodings import (
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
