"""What an experiment's rows come to: means with their intervals, who won, and all of it written."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np

from shapleyprio.common.output import inert_cell, whole_file
from shapleyprio.lab.experiment.cells import Experiment, ExperimentError, Row
from shapleyprio.lab.experiment.keeping import manifest_of
from shapleyprio.replay.workloads.choices import DEFAULT_SEED

Key = tuple[str | int | float | None, ...]

RESAMPLES = 10_000
CONFIDENCE_PERCENT = 95
MOST_AT_ONCE = 10_000_000
"""Values drawn at once, which bounds the memory of the bootstrap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a group of rows comes to; numbers are missing where there are too few values.

    Attributes:
        group: column -> value, which the rows have in common; the last one is what is compared.
        count: how many rows have a value.
        failed: how many have none.
        mean, deviation, median: of the values; the standard deviation is that of a sample.
        low, high: of the 95 % bootstrap interval of the mean.
        wins: how often this value was the best one alone.
        ties: how often it was the best one together with others.
        share: of the pooled counts of the experiment's `Share`; None without counts.
    """

    group: Mapping[str, str | int | float | None]
    count: int
    failed: int
    mean: float | None
    deviation: float | None
    median: float | None
    low: float | None
    high: float | None
    wins: int
    ties: int
    share: float | None


def summary_of(
    experiment: Experiment, rows: Sequence[Row], *, seed: int = DEFAULT_SEED
) -> list[Line]:
    """Returns a line for each group, numbers ordered by size, names as rows first have them.

    Args:
        experiment: what the rows are of.
        rows: all or some of its rows.
        seed: of the bootstrap.
    """
    groups: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        groups[_key(row, experiment.by)].append(row)
    wins, ties = _wins(experiment, rows)
    return [_line(experiment, groups[key], wins[key], ties[key], seed) for key in _ordered(groups)]


def _ordered(keys: Collection[Key]) -> list[Key]:
    """Sorts keys by column: numbers by size, everything else in order of first appearance."""
    columns = [list(dict.fromkeys(column)) for column in zip(*keys, strict=True)]
    ranks = [
        {value: value if isinstance(value, (int, float)) else rank for rank, value in enumerate(c)}
        for c in columns
    ]
    return sorted(keys, key=lambda key: [of[value] for of, value in zip(ranks, key, strict=True)])


def bootstrap_interval(values: Sequence[float], seed: int) -> tuple[float, float] | None:
    """Returns the bootstrap's 95 % percentile interval of the mean; None for a single value.

    It resamples 10,000 times with as many values as there are, with putting back.
    """
    if len(values) < 2:
        return None
    random = np.random.default_rng(seed)
    given = np.array(values, dtype=np.float64)
    at_once = max(1, MOST_AT_ONCE // len(given))
    means = np.concatenate(
        [
            given[random.integers(len(given), size=(count, len(given)))].mean(axis=1)
            for count in _pieces(RESAMPLES, at_once)
        ]
    )
    outside = (100 - CONFIDENCE_PERCENT) / 2
    low, high = np.percentile(means, [outside, 100 - outside])
    return float(low), float(high)


def _pieces(total: int, most: int) -> list[int]:
    return [min(most, total - begun) for begun in range(0, total, most)]


def _line(experiment: Experiment, rows: Sequence[Row], wins: int, ties: int, seed: int) -> Line:
    values = [value for row in rows if (value := _value(experiment, row)) is not None]
    interval = bootstrap_interval(values, seed)
    return Line(
        group={column: rows[0][column] for column in experiment.by},
        count=len(values),
        failed=len(rows) - len(values),
        mean=fmean(values) if values else None,
        deviation=stdev(values) if len(values) > 1 else None,
        median=median(values) if values else None,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        wins=wins,
        ties=ties,
        share=_share(experiment, rows),
    )


def _share(experiment: Experiment, rows: Sequence[Row]) -> float | None:
    if experiment.share is None:
        return None
    part, whole = (
        sum(count for row in rows if isinstance(count := row[column], int))
        for column in (experiment.share.part, experiment.share.whole)
    )
    return part / whole if whole else None


def _wins(experiment: Experiment, rows: Sequence[Row]) -> tuple[dict[Key, int], dict[Key, int]]:
    """Counts how often each group was the best one alone, and how often together with others."""
    contests: dict[Key, list[tuple[float, Key]]] = defaultdict(list)
    for row in rows:
        value = _value(experiment, row)
        if value is not None:
            contests[_key(row, experiment.paired)].append((value, _key(row, experiment.by)))
    wins: dict[Key, int] = defaultdict(int)
    ties: dict[Key, int] = defaultdict(int)
    for rivals in contests.values():
        least = min(value for value, _ in rivals)
        best = [key for value, key in rivals if value == least]
        for key in best:
            (wins if len(best) == 1 else ties)[key] += 1
    return wins, ties


def _key(row: Row, columns: Sequence[str]) -> Key:
    return tuple(row[column] for column in columns)


def _value(experiment: Experiment, row: Row) -> float | None:
    value = row[experiment.value]
    assert not isinstance(value, str)
    return value


def check_writable(file: Path) -> None:
    """Finds out before anything is computed whether rows can be written there.

    Raises:
        ExperimentError: the name does not end as that of CSV.
    """
    if file.suffix != ".csv":
        raise ExperimentError(f"{file}: rows are written as CSV; name it .csv")


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """Writes a line for each row, with the rows' keys as columns; the file appears when whole.

    Raises:
        OutputError: it cannot be written.
    """
    columns = dict.fromkeys(column for row in rows for column in row)
    with whole_file(file) as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            cells = {k: inert_cell(v) if isinstance(v, str) else v for k, v in row.items()}
            writer.writerow(cells)


def as_json(experiment: Experiment, rows: Sequence[Row], lines: Sequence[Line]) -> dict[str, Any]:
    """Returns the whole result of a run.

    Raises:
        ExperimentError: an input has gone since.
    """
    return {
        **manifest_of(experiment),
        "parameters": dict(experiment.parameters),
        "description": experiment.description,
        "value": experiment.value,
        "notes": list(experiment.notes),
        "summary": [asdict(line) for line in lines],
        "tables": [] if experiment.tables is None else list(map(asdict, experiment.tables(rows))),
        "rows": list(rows),
    }
