"""The paper's tables again, with ours and the paper's figures side by side."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from shapleyprio.lab.experiment.cells import ExperimentTable, Row
from shapleyprio.lab.papers.skowron.published import (
    LONG,
    MANY,
    PUBLISHED,
    SHORT,
    SOURCES,
    WINDOW_SECONDS,
    SkowronLog,
)

TITLES = {SHORT: "Table 1", LONG: "Table 2", MANY: "Fig. 10"}


def tables(rows: Sequence[Row]) -> list[ExperimentTable]:
    """Makes a table for each log of Tables 1 and 2, and one for Fig. 10, as far as rows allow."""
    made = []
    for exhibit in (SHORT, LONG):
        for source in SOURCES:
            of_log = [row for row in rows if (row["exhibit"], row["log"]) == (exhibit, source.log)]
            if of_log:
                made.append(_side_by_side(exhibit, source, of_log))
    many = [row for row in rows if row["exhibit"] == MANY]
    return [*made, _by_organizations(many)] if many else made


def _side_by_side(exhibit: str, source: SkowronLog, rows: Sequence[Row]) -> ExperimentTable:
    paper = PUBLISHED[exhibit].get(source.log, {})
    label = f"{source.log} (a substitute, not in the paper)" if source.substitute else source.log
    return ExperimentTable(
        title=f"{TITLES[exhibit]}, {label}: windows of {WINDOW_SECONDS[exhibit]:,} s",
        header=[
            "policy",
            *("ours, zipf", "st. dev.", "ours, uniform", "st. dev.", "paper", "st. dev."),
        ],
        lines=[
            [
                policy,
                *_mean_and_deviation(rows, policy=policy, shares="zipf"),
                *_mean_and_deviation(rows, policy=policy, shares="uniform"),
                *paper.get(policy, (None, None)),
            ]
            for policy in _policies(rows)
        ],
    )


def _by_organizations(rows: Sequence[Row]) -> ExperimentTable:
    counts = sorted({int(row["organizations"] or 0) for row in rows})
    return ExperimentTable(
        title=f"{TITLES[MANY]}, LPC: mean by number of organizations, windows of "
        f"{WINDOW_SECONDS[MANY]:,} s, zipf",
        header=["policy", *map(str, counts)],
        lines=[
            [
                policy,
                *(_mean_and_deviation(rows, policy=policy, organizations=k)[0] for k in counts),
            ]
            for policy in _policies(rows)
        ],
    )


def _policies(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["policy"]) for row in rows))


def _mean_and_deviation(
    rows: Sequence[Row], **wanted: str | int
) -> tuple[float | None, float | None]:
    values = [
        float(row["unfairness"])
        for row in rows
        if row["unfairness"] is not None and wanted.items() <= row.items()
    ]
    return fmean(values) if values else None, stdev(values) if len(values) > 1 else None
