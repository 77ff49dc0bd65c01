"""The sections of a replay's report: each a question, a chart and its table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from shapleyprio.common.wording import HOUR, listed, magnitude, percent
from shapleyprio.replay.measures.series import (
    Rows,
    drift_of,
    executed_where,
    utilization_of,
    waits_of,
)
from shapleyprio.replay.measures.turns import Turns
from shapleyprio.replay.policies.registry import title_of
from shapleyprio.reports.html.charts import MatrixWords, heat_map, stacked_bars, trends
from shapleyprio.reports.html.comparisons import SPREAD, signed_bars, spread
from shapleyprio.reports.html.page import Cell, Section, Table, columns_of
from shapleyprio.reports.replayed import Replayed

MOST_CELLS = 4000
"""Largest number of cells in a table of moments."""

FEWEST_ROWS, MOST_ROWS = 6, 25
"""Bounds of the rows of a table of moments, for each policy."""

UNKNOWN_OWNER = "(not known)"


def comparison(replayed: Replayed) -> Section:
    """Shows how far each policy is from the fair schedule, and at whose expense."""
    headings = (
        *("schedule", "too early or too late, h", "mean wait, h", "95 % wait, h"),
        *("slowdown", "utilization", "out of turn"),
    )
    rows = [
        (
            title_of(result.schedule.policy),
            None if result.unfairness is None else _hours(result.unfairness),
            _hours(result.measures.mean_wait),
            _hours(result.measures.wait_95th_percentile),
            result.measures.mean_bounded_slowdown,
            percent(result.measures.utilization),
            None if result.turns is None else _share(result.turns),
            *(() if result.drifts is None else map(_hours, result.drifts)),
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
            (title_of(result.schedule.policy), name, _hours(drift), result.gap)
            for result in replayed.results
            for name, drift in zip(replayed.colors, result.drifts or (), strict=True)
        ),
    )
    return Section(
        title="How fair is each schedule?",
        note="By how much work came too early or too late on average, compared with the fair "
        "schedule: the length of the whole bar. To the right are those whose work came too early, "
        "to the left those who were held back. Out of turn, in the table: of the moments at "
        "which the order of organizations decided what started, those at which something started "
        "that the fair rule would not have started then.",
        chart=signed_bars(
            "fairness",
            found,
            title="hours",
            colors=replayed.colors,
            policies=[title_of(policy) for policy in replayed.policies],
        ),
        table=Table(headings=(*headings, *(f"{name}, h" for name in replayed.colors)), rows=rows),
    )


def _share(turns: Turns) -> str | None:
    return None if turns.share is None else percent(turns.share)


def drift(replayed: Replayed) -> Iterator[Section]:
    """Shows since when who is too early or too late, where the fair schedule is known."""
    if replayed.fair is None:
        return
    fair = replayed.series[replayed.fair.schedule.policy]
    drifts = {policy: drift_of(series, fair) for policy, series in replayed.series.items()}
    data = columns_of(
        ("choice", "organization", "time", "value"),
        (
            (policy, name, replayed.shown(moment), _hours(value))
            for policy, rows in drifts.items()
            for name, row in zip(replayed.colors, rows, strict=True)
            for moment, value in zip(fair.moments, row, strict=True)
            if value is not None
        ),
    )
    yield Section(
        title="Drift over time",
        note="What came ahead of what is fair (above zero) or late (below) until then, for each "
        "organization, averaged over all work done. Drag over a stretch of time to zoom in.",
        chart=trends(
            "drift",
            data,
            axis=replayed.axis,
            title="ahead (+) or late (−), hours",
            colors=replayed.colors,
            choice=replayed.initial,
        ),
        table=_over_time(
            replayed,
            tuple(f"{name}, h" for name in replayed.colors),
            lambda policy: [
                [None if v is None else _hours(v) for v in row] for row in drifts[policy]
            ],
        ),
    )


def owed(replayed: Replayed) -> Iterator[Section]:
    """Shows who was owed how much, if any contribution is known."""
    balances = {policy: _balances(replayed, policy) for policy in replayed.policies}
    if not any(balances.values()):
        return
    # a chart without any data has no axes
    nothing = [(policy, UNKNOWN_OWNER, replayed.shown(0), 0.0) for policy in balances]
    lacking = [title_of(policy) for policy, lines in balances.items() if not lines]
    empty = (
        f" Nothing can be shown of {listed(lacking)}: the log does not say on whose processors "
        "its jobs ran."
        if lacking
        else ""
    )
    yield Section(
        title="Who was owed something",
        note="What an organization contributed until then (φ̃, the worth of the work done on its "
        "processors) minus what its jobs got (ψ), spread over all work done: above zero its work "
        f"was late by so many hours and it was owed, below zero it was ahead.{empty}",
        chart=trends(
            "owed",
            columns_of(
                ("choice", "organization", "time", "value"),
                [
                    *nothing,
                    *(
                        (policy, name, replayed.shown(moment), value)
                        for policy, lines in balances.items()
                        for name, line in zip(replayed.colors, lines, strict=False)
                        for moment, value in line
                    ),
                ],
            ),
            axis=replayed.axis,
            title="late (+) or ahead (−), hours",
            colors=replayed.colors,
            choice=replayed.initial,
        ),
        table=Table(
            headings=("schedule", *(f"{name}, h" for name in replayed.colors)),
            rows=[
                (title_of(policy), *(line[-1][1] for line in lines))
                for policy, lines in balances.items()
                if lines and all(lines)
            ],
        ),
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
        (
            *(policy, name, owner, _hours(row[place])),
            row[place] / sum(row) if sum(row) else None,
            magnitude(_hours(row[place])),
        )
        for policy, rows in matrices.items()
        for place, owner in _owners_shown(owners, rows)
        for name, row in zip(names, rows, strict=True)
    ]
    table: list[tuple[Cell, ...]] = [
        (title_of(policy), name, *(_hours(parts) for parts in row[: len(owners)]))
        for policy, rows in matrices.items()
        for name, row in zip(names, rows, strict=True)
    ]
    return Section(
        title="Who ran on whose processors",
        note="Processor-hours of the jobs of an organization (rows) on the processors of another "
        "(columns)." + (" The log does not say where some jobs ran." if unknown else ""),
        chart=heat_map(
            "lending",
            columns_of(("choice", "organization", "owner", "value", "part", "written"), cells),
            rows=names,
            columns=owners,
            choice=replayed.initial,
            words=MatrixWords(values="processor-hours"),
        ),
        table=Table(
            headings=("schedule", "jobs of", *(f"on {owner}" for owner in owners)), rows=table
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
                *("schedule", "organization", "mean, s"),
                *("median, s" if p == 50 else f"{p} %, s" for p in SPREAD),
                "longest, s",
            ),
            rows=[
                (title_of(policy), name, mean, *(ordered or none))
                for policy, name, mean, ordered in found
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
        note="The share of all processors that each organization's jobs kept busy. The table has "
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


def _balances(replayed: Replayed, policy: str) -> list[list[tuple[int, float]]]:
    """Returns (φ̃ − ψ) / p_tot in hours at moments, for each organization; empty without φ̃."""
    series = replayed.series[policy]
    if series.contributions is None:
        return []
    totals = [sum(parts) for parts in zip(*series.parts, strict=True)]
    return [
        [
            (t, _hours(Fraction(phi - psi, parts)))
            for t, phi, psi, parts in zip(series.moments, of, used, totals, strict=True)
            if parts
        ]
        for of, used in zip(series.contributions, series.utilities, strict=True)
    ]


def _hours(seconds: float | Fraction) -> float:
    return float(seconds) / HOUR


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
        headings=("schedule", "second", *headings),
        rows=[
            (title_of(policy), moments[i], *(line[i] for line in lines(policy)))
            for policy in replayed.policies
            for i in some
        ],
    )
