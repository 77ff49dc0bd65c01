"""The report of an experiment: how policies compare over many windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from shapleyprio.common.wording import count, listed, whole
from shapleyprio.lab.experiment.cells import Experiment, ExperimentTable, Row
from shapleyprio.lab.experiment.keeping import manifest_of
from shapleyprio.lab.experiment.pages import experiment_sections
from shapleyprio.lab.experiment.pages.summed import Summed
from shapleyprio.lab.experiment.results import Line
from shapleyprio.replay.policies.registry import OURS, title_of
from shapleyprio.reports.html.page import Choice, Front, Page, versions

READING = (
    "Work is counted by processor time: one processor for one second is one part of it. Unfairness "
    "is by how much a part of work came too early or too late, on average, compared with the fair "
    "schedule of ref: there the next free processor always goes to the organization that is owed "
    "most, by its contribution φ (what it is worth to the others, its Shapley value) minus its "
    "utility ψ (what its jobs got, the more the sooner)."
)

FAIREST = {
    True: ("the fairest", "the least fair"),
    False: ("the best", "the worst"),
}
"""Whether values are unfairness -> what the best and the worst are called."""


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
        command: that repeats the report.

    Raises:
        ExperimentError: an input has gone since.
    """
    summed = Summed(made, rows, groups)
    several = len(groups) > 1
    inputs = manifest_of(made)["inputs"]
    return Page(
        title=f"Which is fairest? Experiment {made.name}"
        if summed.in_seconds
        else f"Results: {made.name}",
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
            **{f"SHA-256 of {name}": checksum for name, checksum in inputs.items()},
            "cells": whole(len(made.cells)),
            **options,
            "versions": versions(),
        },
        choice=Choice(
            label="group", options={name: name for name in groups}, initial=summed.initial
        )
        if several
        else None,
        command=command,
        front=Front(
            about=tuple(_about(summed, list(inputs))),
            reading=READING if summed.in_seconds else "",
            advice=tuple(_advice(summed)),
            caveats=(
                "Windows are drawn by chance and begin with an empty system; another seed draws "
                "others. Who is best in few windows need not be best in all.",
                *notes,
            ),
        ),
    )


def verdict(summed: Summed) -> str:
    """Returns the outcome in one sentence."""
    ordered = _ordered(summed)
    if not ordered:
        return "There are no values; the notes below say why."
    apart = [lines for lines in ordered if lines[0].mean != lines[-1].mean or len(lines) == 1]
    if not apart:
        return (
            f"All have the same mean {summed.made.value}; more or longer windows might separate "
            "them."
        )
    if len(ordered) == 1:
        return _of_one_group(summed, ordered[0])
    best, worst = (
        Counter(
            summed.title_of(line)
            for lines in apart
            for line in lines
            if line.mean == lines[end].mean
        )
        for end in (0, -1)
    )
    good, bad = FAIREST[summed.in_seconds]
    (first, most), (last, least) = best.most_common(1)[0], worst.most_common(1)[0]
    others = [f"{name} in {number}" for name, number in best.most_common()[1:]]
    also = f" (besides, {listed(others)})" if others else ""
    alike = len(ordered) - len(apart)
    rest = f"; in {count(alike, 'more group')} all are alike" if alike else ""
    return (
        f"{_begun(first)} was {good} on average in {most} of {count(len(apart), 'group')}{also}, "
        f"and {last} {bad} in {least}{rest}."
    )


def _ordered(summed: Summed) -> list[list[Line]]:
    """Returns the lines of each group that have a mean, the best first."""
    ordered = (
        sorted(
            (line for line in lines if line.mean is not None),
            key=lambda line: line.mean or 0,
        )
        for lines in summed.groups.values()
    )
    return [lines for lines in ordered if lines]


def _of_one_group(summed: Summed, lines: Sequence[Line]) -> str:
    """Describes a single group: who is best and worst, and how sure that is."""
    best, worst = lines[0], lines[-1]
    if best is worst:
        return (
            f"{summed.title_of(best)} has a mean of {_mean(summed, best)}, compared with nothing."
        )
    good, bad = FAIREST[summed.in_seconds]
    sure = "clearly so" if _is_apart(best, lines[1]) else "though not surely so"
    return (
        f"Over {count(best.count, 'window')} {summed.title_of(best)} was {good} "
        f"({_mean(summed, best)} on average), {sure}, and {summed.title_of(worst)} {bad} "
        f"({_mean(summed, worst)})."
    )


def _is_apart(best: Line, second: Line) -> bool:
    """Returns whether the 95 % intervals do not overlap."""
    return second.low is not None and best.high is not None and best.high < second.low


def _about(summed: Summed, inputs: Sequence[str]) -> Iterator[str]:
    counts = [line.count for _, _, line in summed.lines]
    yield f"Experiment: {summed.made.description}"
    if inputs:
        yield f"Files: {listed(inputs)}"
    if counts:
        fewest, most = min(counts), max(counts)
        windows = str(most) if fewest == most else f"{fewest} to {most}"
        groups = f", in {count(len(summed.groups), 'group')}" if len(summed.groups) > 1 else ""
        yield f"Compared: {listed([*summed.titles.values()])}, over {windows} windows each{groups}"


def _advice(summed: Summed) -> Iterator[str]:
    """Yields how our own policies compare with Slurm's fair share, where both were tried."""
    means: dict[str, list[float]] = {}
    for _, name, line in summed.lines:
        if line.mean is not None:
            means.setdefault(name, []).append(line.mean)
    theirs = means.get("fairshare")
    over = " over all groups" if len(summed.groups) > 1 else ""
    for name in OURS:
        if theirs is None or name not in means:
            continue
        ours, slurms = (sum(each) / len(each) for each in (means[name], theirs))
        verb = "improves on" if ours < slurms else "does not improve on"
        yield (
            f"{summed.titles[name]} {verb} {summed.titles['fairshare']}: the mean{over} "
            f"is {summed.worded(ours)}, instead of {summed.worded(slurms)}."
        )


def _begun(title: str) -> str:
    """Returns a title as the first word of a sentence; our own name stays as it is."""
    return title if title in map(title_of, OURS) else f"{title[0].upper()}{title[1:]}"


def _mean(summed: Summed, line: Line) -> str:
    return summed.worded(line.mean or 0.0)
