"""The report of an experiment: how policies compare over many windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shapleyprio.experiment.cells import Experiment, ExperimentTable, Row
from shapleyprio.experiment.keeping import manifest_of
from shapleyprio.experiment.summary import Line
from shapleyprio.report import experiment_sections
from shapleyprio.report.page import Choice, Page
from shapleyprio.report.provenance import versions
from shapleyprio.report.summed import Summed
from shapleyprio.wording import duration, four_digits, whole


def experiment_page(
    made: Experiment,
    rows: Sequence[Row],
    groups: Mapping[str, Sequence[Line]],
    *,
    tables: Sequence[ExperimentTable] = (),
    notes: Sequence[str] = (),
    options: Mapping[str, str],
    command: str | None = None,
) -> Page:
    """Makes the report of an experiment.

    Args:
        made: what was run.
        rows: what came out.
        groups: name -> the summary's lines, one for each of those that are compared.
        tables: the experiment's own.
        notes: what to know about limits and failures.
        options: name -> value: what else was asked for.
        command: that makes the report anew.

    Raises:
        ExperimentError: an input has gone since.
    """
    summed = Summed(made, rows, groups)
    several = len(groups) > 1
    inputs = manifest_of(made)["inputs"].items()
    return Page(
        title=f"Which policy is best? {made.name}",
        verdict=verdict(summed),
        sections=(
            *([experiment_sections.at_a_glance(summed)] if several else []),
            experiment_sections.means(summed),
            experiment_sections.wins(summed),
            experiment_sections.distribution(summed),
            *map(experiment_sections.own, tables),
        ),
        parameters={
            "experiment": f"{made.name}: {made.description}",
            **{f"SHA-256 of {name}": checksum for name, checksum in inputs},
            "cells": whole(len(made.cells)),
            **({"notes": "; ".join(notes)} if notes else {}),
            **options,
            "versions": versions(),
        },
        choice=Choice(label="group", options=list(groups), initial=summed.initial)
        if several
        else None,
        command=command,
    )


def verdict(summed: Summed) -> str:
    """Returns the outcome in two sentences."""
    ordered = [
        sorted(
            (line for line in lines if line.mean is not None),
            key=lambda line: (line.mean or 0) * (1 if summed.made.better == "low" else -1),
        )
        for lines in summed.groups.values()
    ]
    ordered = [lines for lines in ordered if lines]
    if not ordered:
        return "No value could be had. The notes below say why."
    value = summed.made.value
    apart = [lines for lines in ordered if lines[0].mean != lines[-1].mean or len(lines) == 1]
    if not apart:
        return f"All have the same mean {value}. More or longer windows might separate them."
    if len(ordered) == 1:
        return _of_one_group(summed, ordered[0])
    best, worst = (
        Counter(
            summed.name_of(line)
            for lines in apart
            for line in lines
            if line.mean == lines[end].mean
        )
        for end in (0, -1)
    )
    alike = len(ordered) - len(apart)
    others = f"; all are alike in {alike} more" if alike else ""
    return (
        f"The best mean {value} is that {_times(best)} of {len(apart)} groups. "
        f"The worst is that {_times(worst)}{others}."
    )


def _of_one_group(summed: Summed, lines: Sequence[Line]) -> str:
    """Describes a single group: who is best and worst, and how sure that is."""
    best, worst = lines[0], lines[-1]
    if best is worst:
        return f"{_mean(summed, best)} is the mean. Nothing was held against it."
    second = lines[1]
    low, high = (best, second) if summed.made.better == "low" else (second, best)
    clause = (
        "is apart from"
        if high.low is not None and low.high is not None and low.high < high.low
        else "overlaps with"
    )
    return (
        f"Over {best.count:,} windows {_mean(summed, best)} is the best mean "
        f"{summed.made.value}, and {_mean(summed, worst)} the worst. The 95 % interval of "
        f"{summed.name_of(best)} {clause} that of {summed.name_of(second)}, the second."
    )


def _mean(summed: Summed, line: Line) -> str:
    mean = line.mean or 0.0
    return f"{summed.name_of(line)}'s {duration(mean) if summed.in_seconds else four_digits(mean)}"


def _times(counted: Counter[str]) -> str:
    """Returns counts by name as a phrase.

    >>> _times(Counter({"rand": 6, "directcontr": 2, "fcfs": 1}))
    'of rand in 6, of directcontr in 2 and of fcfs in 1'
    """
    counts = [f"of {name} in {count}" for name, count in counted.most_common()]
    return " and ".join([", ".join(counts[:-1]), counts[-1]] if len(counts) > 1 else counts)
