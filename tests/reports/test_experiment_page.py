"""The report of an experiment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shapleyprio.lab.experiment.cells import Experiment, ExperimentTable, Row
from shapleyprio.lab.experiment.pages.experiment_page import experiment_page, verdict
from shapleyprio.lab.experiment.pages.summed import Summed
from shapleyprio.lab.experiment.results import Line, summary_of
from shapleyprio.reports import Page, render, write_pictures

VALUES = {
    "one": {"rand": [0.0, 1.0, 2.0], "fairshare": [5.0, 1.0, 9.0], "fcfs": [50.0, 60.0, 70.0]},
    "idle": {"rand": [0.0, 0.0, 0.0], "fairshare": [0.0, 0.0, 0.0], "fcfs": [0.0, 0.0, 0.0]},
    "two": {"rand": [30.0, 31.0, 32.0], "fairshare": [1.0, 2.0, 3.0], "fcfs": [80.0, 81.0, 82.0]},
}
"""Log -> policy -> value of each window."""


def rows_of(*logs: str) -> list[Row]:
    return [
        {"log": log, "policy": policy, "window": window, "unfairness": value}
        for log in logs
        for policy, values in VALUES[log].items()
        for window, value in enumerate(values)
    ]


def made_of(value: str = "unfairness") -> Experiment:
    return Experiment(
        name="small",
        description="in seconds",
        cells=(),
        by=("log", "policy"),
        value=value,
        paired=("log", "window"),
    )


def groups_in(made: Experiment, rows: list[Row]) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {}
    for line in summary_of(made, rows):
        groups.setdefault(str(line.group["log"]), []).append(line)
    return groups


def page_of(*logs: str, tables: tuple[ExperimentTable, ...] = ()) -> Page:
    made, rows = made_of(), rows_of(*logs)
    return experiment_page(made, rows, groups_in(made, rows), tables=tables, options={"seed": "0"})


def verdict_of(*logs: str) -> str:
    made, rows = made_of(), rows_of(*logs)
    return verdict(Summed(made, rows, groups_in(made, rows)))


def names_in(page: Page) -> list[str]:
    return [one.chart.name for one in page.sections if one.chart is not None]


def test_several_groups_can_be_chosen_and_stand_side_by_side() -> None:
    page = page_of("one", "two")
    assert names_in(page) == ["groups", "means", "wins", "distribution"]
    assert page.choice is not None
    assert ([*page.choice.options], page.choice.initial) == (["one", "two"], "one")
    assert page.sections[0].table.rows == [
        ("one", *(seconds / 3600 for seconds in (1.0, 5.0, 60.0))),
        ("two", *(seconds / 3600 for seconds in (31.0, 2.0, 81.0))),
    ]


def test_a_single_group_needs_no_choice() -> None:
    page = page_of("one")
    assert page.choice is None
    assert names_in(page) == ["means", "wins", "distribution"]
    assert "<select" not in render(page).split("<script")[0]


def test_means_stand_with_their_intervals() -> None:
    table = page_of("one").sections[0].table
    lines = groups_in(made_of(), rows_of("one"))["one"]
    assert [row[2:5] for row in table.rows] == [
        tuple((value or 0) / 3600 for value in (one.mean, one.low, one.high)) for one in lines
    ]
    assert all((one.low or 0) <= (one.mean or 0) <= (one.high or 0) for one in lines)


def test_wins_and_ties_are_counted() -> None:
    table = page_of("one").sections[1].table
    assert [row[1:4] for row in table.rows] == [
        ("nearly fair (rand)", 2, 1),
        ("Slurm's fair share", 0, 1),
        ("first come, first served", 0, 0),
    ]


def test_the_windows_spread_is_reported_by_percentiles() -> None:
    table = page_of("one").sections[2].table
    values = (seconds / 3600 for seconds in (1.0, 1.0, 5.0, 9.0, 9.0, 9.0))
    assert table.rows[1] == ("one", "Slurm's fair share", *values)


def test_the_verdict_shows_who_is_best_and_worst_and_how_sure_that_is() -> None:
    assert verdict_of("one") == (
        "Over 3 windows nearly fair (rand) was the fairest (1 s on average), though not surely so, "
        "and first come, first served the least fair (60 s)."
    )
    assert "Slurm's fair share was the fairest (2 s on average), clearly so" in verdict_of("two")
    assert verdict_of("one", "two") == (
        "Nearly fair (rand) was the fairest on average in 1 of 2 groups (besides, Slurm's fair "
        "share in 1), and first come, first served the least fair in 2."
    )


def test_the_verdict_names_nobody_where_all_are_alike() -> None:
    verdict = "All have the same mean unfairness; more or longer windows might separate them."
    assert verdict_of("idle") == verdict
    assert verdict_of("one", "idle", "two").endswith("; in 1 more group all are alike.")


def test_ours_are_held_against_slurms_fair_share_by_name() -> None:
    made = made_of()
    rows: list[Row] = [
        {**row, "policy": "directcontr" if row["policy"] == "rand" else row["policy"]}
        for row in rows_of("one")
    ]
    front = experiment_page(made, rows, groups_in(made, rows), options={}).front
    assert front is not None
    assert front.advice == (
        "shapleyprio (directcontr) improves on Slurm's fair share: the mean is "
        "1 s, instead of 5 s.",
    )
    assert "over 3 windows each" in front.about[-1]


def test_every_cell_of_the_glance_has_a_number_and_every_row_its_whole_name() -> None:
    chart = page_of("one", "two").sections[0].chart
    assert chart is not None
    assert list(chart.data["written"]) == ["1 s", "5 s", "60 s", "31 s", "2 s", "81 s"]
    spec = json.dumps(chart.spec)
    assert '"labelLimit": 0' in spec
    assert "first come, first" in spec


def test_the_papers_figures_stand_beside_ours() -> None:
    table = ExperimentTable(
        "Table 1", ("policy", "ours", "paper"), [["rand", 1.0, 8.0]], ["as printed"]
    )
    last = page_of("one", tables=(table,)).sections[-1]
    assert (last.title, last.note, last.table.headings) == (
        "Table 1",
        "as printed",
        ("policy", "ours", "paper"),
    )


def test_values_that_could_not_be_had_leave_gaps_and_no_errors() -> None:
    made = made_of()
    rows: list[Row] = [{**row, "unfairness": None} for row in rows_of("one")]
    page = experiment_page(made, rows, groups_in(made, rows), options={})
    assert page.verdict.startswith("There are no values")
    assert "–" in render(page)  # noqa: RUF001  # the dash of tables


@pytest.mark.parametrize("logs", [("one",), ("one", "two")])
def test_every_chart_can_be_drawn(tmp_path: Path, logs: tuple[str, ...]) -> None:
    files = [file.stem for file in write_pictures(page_of(*logs), tmp_path)]
    expected = ["means", "wins", "distribution"]
    if len(logs) > 1:
        expected = ["groups", *(f"{name}-{log}" for name in expected for log in logs)]
    assert files == expected
