"""The experiment on forecasts: whether jobs start when the policies' own forecasts say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from itertools import groupby, pairwise
from typing import Any

from shapleyprio.common.wording import duration, percent
from shapleyprio.lab.experiment.cells import Experiment, ExperimentTable, Row
from shapleyprio.lab.experiment.forecasting import FUTURES, ForecastCell
from shapleyprio.lab.experiment.general import GROUPS, windows_experiment
from shapleyprio.lab.experiment.observing import check_forecast
from shapleyprio.lab.experiment.parameters import WindowsParameters
from shapleyprio.lab.experiment.scoring import Score, score_of, widened
from shapleyprio.lab.experiment.windows import WindowCell
from shapleyprio.replay.forecasts.forecast import StartForecast

AHEAD = (600, 3600, 21_600)
"""Bounds of how long ahead forecasts are, in seconds, for a line of each."""

Scored = tuple[StartForecast, int]
"""A forecast and when the job started, in the log's seconds."""


def forecasts_experiment(
    logs: Sequence[str], parameters: WindowsParameters, releases: int
) -> Experiment:
    """Makes an experiment: when jobs will start, forecast in windows drawn at random.

    Args:
        logs: files, or URLs of stores.
        parameters: of windows, deals and policies.
        releases: of how many jobs of each window forecasts are asked.

    Raises:
        PolicyError: there is no such policy, or there are no forecasts under it.
        ExperimentError: as for `windows_experiment`.
    """
    made = windows_experiment(logs, parameters)
    for policy in parameters.policies:
        check_forecast(policy)
    cells = [_with_releases(cell, releases) for cell in made.cells if isinstance(cell, WindowCell)]
    return replace(
        made,
        name="forecasts",
        description="by how many seconds starts were forecast wrongly; "
        f"{releases:,} releases in each of {parameters.windows:,} windows of "
        f"{duration(parameters.length)} of each log",
        cells=cells,
        by=(*GROUPS, "by"),
        value="error",
        paired=(*GROUPS, "window", "deal", "job", "release"),
        share=None,
        parameters={**made.parameters, "forecasts": releases},
        tables=tables_of,
    )


def _with_releases(cell: WindowCell, releases: int) -> ForecastCell:
    same: dict[str, Any] = {field.name: getattr(cell, field.name) for field in fields(cell)}
    return ForecastCell(**same, releases=releases)


def tables_of(rows: Sequence[Row]) -> list[ExperimentTable]:
    """Returns how often intervals held, for each log, deal and policy."""
    of_futures = [row for row in rows if row["by"] == FUTURES and row["start"] is not None]
    groups = groupby(sorted(of_futures, key=_group), key=_group)
    return [_table(key, list(of_group)) for key, of_group in groups]


def _group(row: Row) -> tuple[str, ...]:
    return tuple(str(row[column]) for column in GROUPS)


def _table(key: tuple[str, ...], rows: Sequence[Row]) -> ExperimentTable:
    scored = sorted(map(_scored, rows), key=lambda one: one[0].t)
    after = list(zip(widened(scored), (start for _, start in scored), strict=True))
    bounds = [0, *AHEAD, None]
    lines = []
    for low, high in [(0, None), *pairwise(bounds)]:
        chosen = [
            number
            for number, (one, _) in enumerate(scored)
            if (low or 0) <= one.median - one.t and (high is None or one.median - one.t < high)
        ]
        before = score_of([scored[number] for number in chosen])
        found = score_of([after[number] for number in chosen])
        lines.append((_ahead(low, high), before.count, *_coverages(before, found), before.error))
    return ExperimentTable(
        title=f"intervals that are to hold in 80 of 100 cases: {', '.join(key)}",
        header=("ahead", "forecasts", "held as played", "held as widened", "median error"),
        lines=lines,
    )


def _ahead(low: int | None, high: int | None) -> str:
    if high is not None:
        return f"{duration(low or 0)} to {duration(high)}" if low else f"under {duration(high)}"
    return f"{duration(low)} and more" if low else "all"


def _coverages(*scores: Score) -> Iterable[str | None]:
    return [None if one.coverage is None else percent(one.coverage) for one in scores]


def _scored(row: Row) -> Scored:
    def second(column: str) -> int:
        return int(row["window_start"] or 0) + int(row[column] or 0)

    forecast = StartForecast(
        t=second("release"),
        median=second("forecast"),
        early=second("early"),
        late=second("late"),
        within_hour=float(row["within_hour"] or 0),
        waits_for="processors" if row["waits_for"] == "processors" else "turn",
    )
    return forecast, second("start")
