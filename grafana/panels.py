"""How the panels of all dashboards look and where their data comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from string import ascii_uppercase
from typing import TypeVar

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

SECONDS = "s"
SHARE = "percentunit"
COUNT = "short"
PER_SECOND = "cps"
MOMENT = "dateTimeAsIso"
NEUTRAL = (Threshold(value=None, color="text"),)
"""For what is neither good nor bad."""

OWED = (Threshold(value=None, color="orange"), Threshold(value=0, color="blue"))
"""Below zero it owes, above it is owed; color-blind eyes see both colors."""

DRIFT = (
    Threshold(value=None, color="red"),
    Threshold(value=-3600, color="orange"),
    Threshold(value=-600, color="green"),
    Threshold(value=600, color="orange"),
    Threshold(value=3600, color="red"),
)
"""In seconds per part of work, too late or too early; an hour is where the alert begins."""

DELAY = (
    Threshold(value=None, color="green"),
    Threshold(value=600, color="orange"),
    Threshold(value=3600, color="red"),
)

ESTIMATE_AGE = (
    Threshold(value=None, color="green"),
    Threshold(value=450, color="orange"),
    Threshold(value=900, color="red"),
)
"""An estimate of 15 minutes is not relied on (`estimation.longest_age`)."""

ALONE = (
    Threshold(value=None, color="green"),
    Threshold(value=0, color="orange"),
    Threshold(value=0.05, color="red"),
)
"""A twentieth more alone than in the consortium is where the alert begins."""

ONE_IS_GOOD = (Threshold(value=None, color="red"), Threshold(value=1, color="green"))
NONE_IS_GOOD = (Threshold(value=None, color="green"), Threshold(value=1, color="red"))

CYCLE_DURATION = (
    Threshold(value=None, color="green"),
    Threshold(value=10, color="orange"),
    Threshold(value=30, color="red"),
)
"""A cycle that takes longer than `service.poll_interval` delays the next one."""

Panel = stat.Panel | timeseries.Panel | bargauge.Panel | barchart.Panel | table.Panel
P = TypeVar("P", stat.Panel, timeseries.Panel, bargauge.Panel, barchart.Panel, table.Panel)
Steps = Sequence[Threshold]


class Query:
    """A query to Prometheus.

    Args:
        expression: in PromQL, with the variables of the dashboard.
        legend: a template over the labels of what comes back.
    """

    def __init__(self, expression: str, legend: str = "") -> None:
        self._expression = expression
        self._legend = legend

    def built(self, letter: str) -> prometheus.Dataquery:
        """Returns a query of a panel; the letter distinguishes it from the others."""
        query = prometheus.Dataquery().expr(self._expression).datasource(SOURCE).ref_id(letter)
        return query.legend_format(self._legend) if self._legend else query


def over_time(queries: Iterable[Query]) -> list[Builder[Dataquery]]:
    """Returns queries that are evaluated at every point of the dashboard's time range."""
    return _lettered(queries, prometheus.Dataquery.range)


def now(queries: Iterable[Query]) -> list[Builder[Dataquery]]:
    """Returns queries that are evaluated at the end of the time range only."""
    return _lettered(queries, prometheus.Dataquery.instant)


def as_rows(queries: Iterable[Query]) -> list[Builder[Dataquery]]:
    """Returns queries that are evaluated at the end of the time range, for a table."""
    return _lettered(queries, lambda query: query.instant().format(PromQueryFormat.TABLE))


def _lettered(
    queries: Iterable[Query], evaluated: Callable[[prometheus.Dataquery], Builder[Dataquery]]
) -> list[Builder[Dataquery]]:
    return [
        evaluated(query.built(letter))
        for letter, query in zip(ascii_uppercase, queries, strict=False)
    ]


def _legend_below() -> common.VizLegendOptions:
    options = common.VizLegendOptions().display_mode(looks.LegendDisplayMode.LIST)
    return options.placement(looks.LegendPlacement.BOTTOM).show_legend(True)


def number(
    title: str,
    description: str,
    unit: str,
    steps: Steps,
    *queries: Query,
    width: int = 4,
    text: looks.BigValueTextMode = looks.BigValueTextMode.AUTO,
) -> stat.Panel:
    """One big number (or a word) for each query."""
    panel = stat.Panel().targets(now(queries)).text_mode(text)
    panel.reduce_options(common.ReduceDataOptions().values(False).calcs(["lastNotNull"]))
    panel.color_mode(looks.BigValueColorMode.VALUE).graph_mode(looks.BigValueGraphMode.NONE)
    return _described(panel, title, description, unit, steps).span(width).height(4)


def graph(
    title: str, description: str, unit: str, steps: Steps, *queries: Query, width: int = 12
) -> timeseries.Panel:
    """Lines over time, with the thresholds dashed."""
    panel = timeseries.Panel().targets(over_time(queries))
    panel.legend(_legend_below())
    panel.tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI))
    styles = looks.GraphTresholdsStyleMode
    shown = styles.DASHED if len(steps) > 1 else styles.OFF
    panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(shown))
    panel.line_width(2).fill_opacity(5).show_points(looks.VisibilityMode.NEVER)
    panel.color_scheme(dashboard.FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    return _described(panel, title, description, unit, steps).span(width).height(8)


def bars(
    title: str, description: str, unit: str, steps: Steps, query: Query, *, width: int = 12
) -> bargauge.Panel:
    """One horizontal bar for each series, colored by the thresholds."""
    panel = bargauge.Panel().targets(now([query]))
    panel.reduce_options(common.ReduceDataOptions().values(False).calcs(["lastNotNull"]))
    panel.orientation(looks.VizOrientation.HORIZONTAL)
    panel.display_mode(looks.BarGaugeDisplayMode.BASIC)
    return _described(panel, title, description, unit, steps).span(width).height(8)


def grouped_bars(
    title: str, description: str, unit: str, columns: dict[str, Query], *, width: int = 12
) -> barchart.Panel:
    """Several bars side by side for each organization.

    Args:
        title: of the panel.
        description: of the panel.
        unit: of all bars.
        columns: what a bar is called -> its query, whose only label is organization.
        width: of 24.
    """
    panel = barchart.Panel().targets(as_rows(columns.values()))
    panel.transformations(_side_by_side(list(columns)))
    panel.x_field("organization").stacking(looks.StackingMode.NONE)
    panel.legend(_legend_below())
    panel.color_scheme(dashboard.FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    return _described(panel, title, description, unit, NEUTRAL).span(width).height(8)


def rows(
    title: str,
    description: str,
    columns: dict[str, tuple[Query, str]],
    *,
    width: int = 24,
) -> table.Panel:
    """A table with one line for each organization.

    Args:
        title: of the panel.
        description: of the panel.
        columns: heading -> its query, whose only label is organization, and its unit.
        width: of 24.
    """
    panel = table.Panel().targets(as_rows(query for query, _ in columns.values()))
    panel.transformations(_side_by_side(list(columns)))
    for heading, (_, unit) in columns.items():
        panel.override_by_name(heading, [DynamicConfigValue(id_val="unit", value=unit)])
    return _described(panel, title, description, COUNT, NEUTRAL).span(width).height(8)


def _side_by_side(headings: list[str]) -> list[DataTransformerConfig]:
    """Makes one table of the answers to several queries."""
    names = {
        f"Value #{letter}": text for letter, text in zip(ascii_uppercase, headings, strict=False)
    }
    options = {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": names}
    return [
        DataTransformerConfig(id_val="merge", options={}),
        DataTransformerConfig(id_val="organize", options=options),
    ]


def _described(panel: P, title: str, description: str, unit: str, steps: Steps) -> P:
    limits = dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(list(steps))
    panel.title(title).description(description).datasource(SOURCE).unit(unit).thresholds(limits)
    return panel
