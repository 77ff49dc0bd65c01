"""The sections of an experiment's report, and the charts that only they have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import ceil

from shapleyprio.common.wording import percent
from shapleyprio.lab.experiment.cells import ExperimentTable
from shapleyprio.lab.experiment.pages.summed import Summed
from shapleyprio.reports.html.charts import MatrixWords, heat_map
from shapleyprio.reports.html.comparisons import SPREAD, spread
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
from shapleyprio.reports.html.page import Cell, Chart, Data, Section, Table, columns_of


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


IN_TIME = "by how much work came too early or too late"

ALONE, WITH_OTHERS = "best alone", "best with others"


def at_a_glance(summed: Summed) -> Section:
    """Shows the means of all groups."""
    found = {
        (group, summed.name_of(line)): line.mean
        for group, lines in summed.groups.items()
        for line in lines
        if line.mean is not None
    }
    largest = {
        group: max((mean for (of, _), mean in found.items() if of == group), default=0)
        for group in summed.groups
    }
    return Section(
        title="At a glance",
        note=f"The mean of every group (rows), {IN_TIME if summed.in_seconds else summed.unit}. "
        "Dark cells are the largest of their row.",
        chart=heat_map(
            "groups",
            columns_of(
                ("organization", "owner", "value", "part", "written"),
                (
                    (
                        *(group, summed.titles[name], summed.shown(mean)),
                        mean / largest[group] if largest[group] else 0.0,
                        summed.worded(mean),
                    )
                    for (group, name), mean in found.items()
                ),
            ),
            rows=list(summed.groups),
            columns=[*summed.titles.values()],
            choice=None,
            words=MatrixWords(
                values=summed.unit,
                shaded_by="part",
                rows="",
                columns=summed.made.by[-1],
                part="of the largest in the row",
            ),
        ),
        table=Table(
            headings=("group", *(f"{title}{_unit(summed)}" for title in summed.titles.values())),
            rows=[
                (group, *(_shown(summed, found.get((group, name))) for name in summed.compared))
                for group in summed.groups
            ],
        ),
    )


def means(summed: Summed) -> Section:
    """Shows how large the mean is, and how sure that is."""
    return Section(
        title="Mean and its 95 % interval",
        note=f"{summed.made.description}. The dot is the mean; in 95 % of the cases the line holds "
        "the mean of all windows that could have been drawn (bootstrap).",
        chart=intervals(
            "means",
            columns_of(
                ("choice", "policy", "mean", "low", "high"),
                (
                    (
                        *(group, summed.titles[name], summed.shown(line.mean)),
                        *(
                            summed.shown(line.mean if end is None else end)
                            for end in (line.low, line.high)
                        ),
                    )
                    for group, name, line in summed.lines
                    if line.mean is not None
                ),
            ),
            title=summed.unit,
            colors=summed.colors,
            choice=summed.choice,
        ),
        table=Table(
            headings=(
                *("group", summed.made.by[-1]),
                *(
                    f"{name}{_unit(summed)}"
                    for name in ("mean", "low", "high", "st. dev.", "median")
                ),
                *(() if summed.made.share is None else (summed.made.share.name,)),
                *("count", "failed"),
            ),
            rows=[
                (
                    *(group, summed.titles[name]),
                    *(
                        _shown(summed, value)
                        for value in (
                            *(line.mean, line.low, line.high, line.deviation, line.median),
                        )
                    ),
                    *(() if summed.made.share is None else (_percent(line.share),)),
                    *(line.count, line.failed),
                )
                for group, name, line in summed.lines
            ],
        ),
    )


def _percent(share: float | None) -> str | None:
    return None if share is None else percent(share)


def wins(summed: Summed) -> Section:
    """Shows how often each policy was the best."""
    return Section(
        title="How often the best",
        note=f"In how many windows its {summed.made.value} was the lowest, alone or "
        "together with others.",
        chart=counts(
            "wins",
            columns_of(
                ("choice", "policy", "kind", "value"),
                (
                    (group, summed.titles[name], kind, value)
                    for group, name, line in summed.lines
                    for kind, value in ((ALONE, line.wins), (WITH_OTHERS, line.ties))
                ),
            ),
            title="windows",
            colors=summed.colors,
            kinds=(ALONE, WITH_OTHERS),
            choice=summed.choice,
        ),
        table=Table(
            headings=("group", summed.made.by[-1], ALONE, WITH_OTHERS, "count"),
            rows=[
                (group, summed.titles[name], line.wins, line.ties, line.count)
                for group, name, line in summed.lines
            ],
        ),
    )


def distribution(summed: Summed) -> Section:
    """Shows how windows differ."""
    percents = (*SPREAD, 100)
    found: list[tuple[Cell, ...]] = [
        (group, summed.titles[name], *(_percentile(values, percent) for percent in percents))
        for (group, name), values in summed.values.items()
    ]
    logarithmic = " The axis is logarithmic beyond a second." if summed.in_seconds else ""
    return Section(
        title="How windows differ",
        note="The mark is the median; half of the windows are within the bar, nine in ten within "
        f"the line.{logarithmic}",
        chart=spread(
            "distribution",
            columns_of(
                ("choice", "policy", *(f"p{percent}" for percent in SPREAD)),
                (row[:-1] for row in found),
            ),
            title="too early or too late" if summed.in_seconds else summed.unit,
            colors=summed.colors,
            choice=summed.choice,
            of="policy",
            linear_below=1 if summed.in_seconds else None,
        ),
        table=Table(
            headings=(
                *("group", summed.made.by[-1]),
                *(
                    f"{'median' if percent == 50 else f'{percent} %'}{_unit(summed)}"
                    for percent in SPREAD
                ),
                f"largest{_unit(summed)}",
            ),
            rows=[
                (
                    *row[:2],
                    *(_shown(summed, value) for value in row[2:] if not isinstance(value, str)),
                )
                for row in found
            ],
        ),
    )


def own(table: ExperimentTable) -> Section:
    """Shows a table of a preset, such as the paper's figures beside ours."""
    return Section(
        title=table.title,
        note="; ".join(table.notes),
        chart=None,
        table=Table(headings=table.header, rows=table.lines),
    )


def _unit(summed: Summed) -> str:
    return ", h" if summed.in_seconds else ""


def _shown(summed: Summed, value: float | None) -> float | None:
    return None if value is None else summed.shown(value)


def _percentile(values: Sequence[float], percent: int) -> float:
    """Returns the smallest value that at least so many per cent do not exceed (nearest rank)."""
    return values[max(0, ceil(percent * len(values) / 100) - 1)]
