"""The sections of a replay's report: each a question, a chart and its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shapleyprio.report.charts import MatrixWords, heat_map, stacked_bars, trends
from shapleyprio.report.comparisons import SPREAD, signed_bars, spread
from shapleyprio.report.page import Cell, Section, Table, columns_of
from shapleyprio.report.replayed import Replayed
from shapleyprio.report.series import Rows, drift_of, executed_where, utilization_of, waits_of
from shapleyprio.wording import duration, percent

MOST_CELLS = 4000
"""Largest number of cells in a table of moments."""

FEWEST_ROWS, MOST_ROWS = 6, 25
"""Bounds of the rows of a table of moments, for each policy."""

UNKNOWN_OWNER = "(not known)"

UTILITY, CONTRIBUTION = "utility ψ", "contribution φ"


def comparison(replayed: Replayed) -> Section:
    """Shows how far each policy is from the fair schedule, and at whose expense."""
    headings = ("policy", "Δψ/p_tot, s", "mean wait, s", "95 % wait, s", "slowdown", "utilization")
    rows = [
        (
            result.schedule.policy,
            None if result.unfairness is None else float(result.unfairness),
            float(result.measures.mean_wait),
            result.measures.wait_95th_percentile,
            result.measures.mean_bounded_slowdown,
            percent(result.measures.utilization),
            *(() if result.drifts is None else map(float, result.drifts)),
        )
        for result in replayed.results
    ]
    if replayed.fair is None:
        note = "Fairness is measured against ref, which was not among the policies."
        return Section(
            title="Policies", note=note, chart=None, table=Table(headings=headings, rows=rows)
        )
    found = columns_of(
        ("policy", "organization", "value", "label"),
        (
            (result.schedule.policy, name, float(drift), duration(float(result.unfairness or 0)))
            for result in replayed.results
            for name, drift in zip(replayed.colors, result.drifts or (), strict=True)
        ),
    )
    return Section(
        title="How fair is each policy?",
        note="By how many seconds a part of work came too early or too late on average, held "
        f"against the fair schedule of {replayed.reference} (Δψ/p_tot): the length of the whole "
        "bar. To the right are those whose work came too early, to the left those who were held "
        "back.",
        chart=signed_bars(
            "fairness", found, title="seconds", colors=replayed.colors, policies=replayed.policies
        ),
        table=Table(headings=(*headings, *(f"{name}, s" for name in replayed.colors)), rows=rows),
    )


def drift(replayed: Replayed) -> Section | None:
    """Shows since when who is too early or too late; None where the fair schedule is not known."""
    if replayed.fair is None:
        return None
    fair = replayed.series[replayed.fair.schedule.policy]
    drifts = {policy: drift_of(series, fair) for policy, series in replayed.series.items()}
    data = columns_of(
        ("choice", "organization", "time", "value"),
        (
            (policy, name, replayed.shown(moment), value)
            for policy, rows in drifts.items()
            for name, row in zip(replayed.colors, rows, strict=True)
            for moment, value in zip(fair.moments, row, strict=True)
            if value is not None
        ),
    )
    return Section(
        title="Drift over time",
        note="Each organization's part of the unfairness so far, (ψ − ψ*) / p_tot: above zero its "
        "work came too early, below zero too late. Drag over a stretch of time to look closer.",
        chart=trends(
            "drift",
            data,
            axis=replayed.axis,
            title="drift, s",
            colors=replayed.colors,
            choice=replayed.initial,
        ),
        table=_over_time(replayed, tuple(replayed.colors), lambda policy: drifts[policy]),
    )


def standing(replayed: Replayed) -> Section:
    """Shows what each organization got, and what it gave."""
    names = tuple(replayed.colors)
    data = columns_of(
        ("choice", "organization", "kind", "time", "value"),
        (
            (policy, name, kind, replayed.shown(moment), value)
            for policy in replayed.policies
            for kind, lines in (
                (UTILITY, _utilities(replayed, policy)),
                (CONTRIBUTION, _contributions(replayed, policy)),
            )
            for name, line in zip(names, lines, strict=False)
            for moment, value in line
        ),
    )
    given: dict[str, Sequence[Sequence[Cell]]] = {
        policy: (
            *series.utilities,
            *(series.contributions or [[None] * len(series.moments)] * len(names)),
        )
        for policy, series in replayed.series.items()
    }
    headings = (*(f"ψ {name}" for name in names), *(f"φ̃ {name}" for name in names))
    exact = "the exact Shapley value under ref, and " if replayed.shapley is not None else ""
    return Section(
        title="Utility and contribution over time",
        note="ψ (solid) is the worth of what an organization's jobs got, φ (dashed) that of what "
        f"it contributed: {exact}the work done on its processors (φ̃) "
        f"{'otherwise' if exact else 'here'}. Who stays below its dashed line is owed something. "
        "The table has φ̃.",
        chart=trends(
            "standing",
            data,
            axis=replayed.axis,
            title="part-seconds",
            colors=replayed.colors,
            choice=replayed.initial,
            kinds=(UTILITY, CONTRIBUTION),
        ),
        table=_over_time(replayed, headings, given.__getitem__),
    )


def lending(replayed: Replayed) -> Section:
    """Shows who ran on whose processors."""
    names = tuple(replayed.colors)
    matrices = {
        result.schedule.policy: executed_where(replayed.workload, result.schedule)
        for result in replayed.results
    }
    unknown = any(row[-1] for rows in matrices.values() for row in rows)
    owners = (*names, UNKNOWN_OWNER) if unknown else names
    cells = [
        (policy, name, owner, row[place] / 3600, row[place] / sum(row) if sum(row) else None)
        for policy, rows in matrices.items()
        for place, owner in _owners_shown(owners, rows)
        for name, row in zip(names, rows, strict=True)
    ]
    table: list[tuple[Cell, ...]] = [
        (policy, name, *(parts / 3600 for parts in row[: len(owners)]))
        for policy, rows in matrices.items()
        for name, row in zip(names, rows, strict=True)
    ]
    return Section(
        title="Who ran on whose processors",
        note="Processor-hours of the jobs of an organization (rows) on the processors of another "
        "(columns)." + (" The log does not say where some jobs ran." if unknown else ""),
        chart=heat_map(
            "lending",
            columns_of(("choice", "organization", "owner", "value", "part"), cells),
            rows=names,
            columns=owners,
            choice=replayed.initial,
            words=MatrixWords(values="processor-hours"),
        ),
        table=Table(
            headings=("policy", "jobs of", *(f"on {owner}" for owner in owners)), rows=table
        ),
    )


def waits(replayed: Replayed) -> Section:
    """Shows how long each organization's jobs waited."""
    percents = (*SPREAD, 100)
    found = [
        (result.schedule.policy, name, None if mean is None else float(mean), ordered)
        for result in replayed.results
        for name, mean, ordered in zip(
            replayed.colors,
            result.measures.mean_waits,
            waits_of(replayed.workload, result.schedule, percents),
            strict=True,
        )
    ]
    data = columns_of(
        ("choice", "organization", *(f"p{percent}" for percent in SPREAD)),
        (
            (policy, name, *ordered[:-1])
            for policy, name, _, ordered in found
            if ordered is not None
        ),
    )
    none = (None,) * len(percents)
    return Section(
        title="Waits by organization",
        note="The mark is the median; half of an organization's jobs are within the bar, nine in "
        "ten within the line. The axis is logarithmic beyond a minute.",
        chart=spread(
            "waits",
            data,
            title="from release to start",
            colors=replayed.colors,
            choice=replayed.initial,
        ),
        table=Table(
            headings=(
                *("policy", "organization", "mean, s"),
                *("median, s" if p == 50 else f"{p} %, s" for p in SPREAD),
                "longest, s",
            ),
            rows=[
                (policy, name, mean, *(ordered or none)) for policy, name, mean, ordered in found
            ],
        ),
    )


def utilization(replayed: Replayed) -> Section:
    """Shows how busy the processors were, and with whose jobs."""
    processors = replayed.workload.system_processors
    busy = {
        policy: utilization_of(series, processors) for policy, series in replayed.series.items()
    }
    data = columns_of(
        ("choice", "organization", "time", "until", "value"),
        (
            (policy, name, replayed.shown(begin), replayed.shown(end), value)
            for policy, rows in busy.items()
            for name, row in zip(replayed.colors, rows, strict=True)
            for begin, end, value in zip(
                replayed.series[policy].moments,
                replayed.series[policy].moments[1:],
                row,
                strict=False,
            )
            if value
        ),
    )

    def until(policy: str) -> list[list[Cell]]:
        """Returns the mean utilization from the beginning until each moment."""
        series = replayed.series[policy]
        return [
            [
                done / (processors * t) if t else None
                for done, t in zip(row, series.moments, strict=True)
            ]
            for row in series.parts
        ]

    return Section(
        title="Utilization over time",
        note="The part of all processors that each organization's jobs kept busy. The table has "
        "the mean since the window's start.",
        chart=stacked_bars(
            "utilization",
            data,
            axis=replayed.axis,
            title="of all processors",
            colors=replayed.colors,
            choice=replayed.initial,
        ),
        table=_over_time(replayed, tuple(replayed.colors), until),
    )


def _owners_shown(owners: Sequence[str], rows: Rows) -> list[tuple[int, str]]:
    """Returns the columns of a matrix that say anything; one for unknown owners only if it does."""
    totals = [sum(column) for column in zip(*rows, strict=True)]
    known, unknown = any(totals[:-1]), totals[-1] > 0
    return [
        (place, owner)
        for place, owner in enumerate(owners)
        if (unknown if owner == UNKNOWN_OWNER else known or not unknown)
    ]


def _utilities(replayed: Replayed, policy: str) -> list[list[tuple[int, float]]]:
    series = replayed.series[policy]
    return [
        [(t, float(value)) for t, value in zip(series.moments, row, strict=True)]
        for row in series.utilities
    ]


def _contributions(replayed: Replayed, policy: str) -> list[list[tuple[int, float]]]:
    """Returns what is shown as φ: Shapley values for ref, the work on processors for others."""
    if replayed.fair is not None and policy == replayed.fair.schedule.policy and replayed.shapley:
        return [
            [(t, float(values[u])) for t, values in replayed.shapley.items()]
            for u in range(len(replayed.colors))
        ]
    series = replayed.series[policy]
    return [
        [(t, float(value)) for t, value in zip(series.moments, row, strict=True)]
        for row in series.contributions or ()
    ]


def _over_time(
    replayed: Replayed,
    headings: Sequence[str],
    lines: Callable[[str], Sequence[Sequence[Cell]]],
) -> Table:
    """Tabulates some of the moments of each policy, with the values of all lines there."""
    rows = max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // (len(headings) * len(replayed.policies))))
    moments = replayed.series[replayed.policies[0]].moments
    last = len(moments) - 1
    some = sorted({-(-last * row // rows) for row in range(1, rows + 1)})
    return Table(
        headings=("policy", "second", *headings),
        rows=[
            (policy, moments[i], *(line[i] for line in lines(policy)))
            for policy in replayed.policies
            for i in some
        ],
    )
