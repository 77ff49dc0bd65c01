"""The tables of SPAA 2013 again: which cells they are made of, and what stands beside ours."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from shapleyprio.lab.experiment.cells import (
    ExperimentError,
    PresetParameters,
    Row,
    preset_experiment,
)
from shapleyprio.lab.experiment.running import run
from shapleyprio.lab.papers.skowron.preset import POLICIES, SkowronCell, skowron_2013, tables
from tests.replay.traces import trace

LPC, RICC = "LPC-EGEE-2004-1.2-cln.swf.gz", "RICC-2010-2.swf.gz"
HPC2N = "HPC2N-2002-2.2-cln.swf.gz"
LOGS = {name: Path("/logs") / name for name in (LPC, RICC, HPC2N)}


def test_the_preset_has_its_name() -> None:
    assert preset_experiment("skowron-2013", PresetParameters(LOGS)).name == "skowron-2013"


def test_the_tables_are_of_100_windows_with_5_organizations_and_both_shares() -> None:
    cells = skowron_2013(PresetParameters(LOGS, exhibits=["table-1", "table-2"])).cells
    kinds = Counter(
        (cell.exhibit, cell.window.log, cell.window.length, cell.window.shares)
        for cell in cells
        if isinstance(cell, SkowronCell) and cell.window.organizations == 5
    )
    assert kinds == {
        (exhibit, log, length, shares): 100
        for exhibit, length in (("table-1", 50_000), ("table-2", 500_000))
        for log in ("LPC", "RICC", "HPC2N")
        for shares in ("zipf", "uniform")
    }


def test_the_processors_are_the_papers() -> None:
    cells = skowron_2013(PresetParameters(LOGS)).cells
    known = {(cell.window.log, cell.window.processors) for cell in cells}  # type: ignore[attr-defined]
    assert known == {("LPC", 70), ("RICC", 8192), ("HPC2N", 240)}


def test_figure_10_goes_from_2_to_12_organizations_on_lpc() -> None:
    cells = skowron_2013(PresetParameters(LOGS, exhibits=["figure-10"], windows=3)).cells
    counts = Counter(
        (cell.window.log, cell.window.organizations)
        for cell in cells
        if isinstance(cell, SkowronCell)
    )
    assert counts == {("LPC", k): 3 for k in range(2, 13)}


def test_names_of_cells_are_unique() -> None:
    cells = skowron_2013(PresetParameters(LOGS, windows=2)).cells
    assert len({cell.name for cell in cells}) == len(cells)


def test_what_is_absent_and_what_is_a_substitute_is_said() -> None:
    notes = " / ".join(skowron_2013(PresetParameters({HPC2N: LOGS[HPC2N]})).notes)
    assert "absent of the paper's workloads: LPC, RICC, PIK-IPLEX, SHARCNET-Whale" in notes
    assert "substitutes, not in the paper: HPC2N" in notes
    assert "substitutes" not in " / ".join(skowron_2013(PresetParameters({LPC: LOGS[LPC]})).notes)


def test_only_logs_that_are_used_are_inputs() -> None:
    assert skowron_2013(PresetParameters(LOGS, exhibits=["figure-10"])).inputs == [LOGS[LPC]]


@pytest.mark.parametrize(
    ("logs", "exhibits", "message"),
    [
        (LOGS, ["table-3"], "no exhibit 'table-3'; take some of table-1, table-2, figure-10"),
        ({}, [], "none of skowron-2013's logs is at hand"),
        ({RICC: LOGS[RICC]}, ["figure-10"], "figure-10 needs LPC"),
    ],
)
def test_what_cannot_be_done_is_refused(
    logs: dict[str, Path], exhibits: list[str], message: str
) -> None:
    with pytest.raises(ExperimentError, match=message):
        skowron_2013(PresetParameters(logs, exhibits=exhibits))


def rows_of(exhibit: str, log: str, organizations: int, **values: list[float | None]) -> list[Row]:
    return [
        {
            "exhibit": exhibit,
            "log": log,
            "shares": shares,
            "organizations": organizations,
            "policy": "directcontr",
            "unfairness": value,
        }
        for shares, of_one in values.items()
        for value in of_one
    ]


def test_ours_and_the_papers_figures_stand_side_by_side() -> None:
    rows = rows_of("table-1", "LPC", 5, zipf=[1.0, 3.0, None], uniform=[4.0])
    rows += rows_of("table-2", "HPC2N", 5, zipf=[None], uniform=[7.0, 7.0])
    first, second = tables(rows)
    assert first.title == "Table 1, LPC: windows of 50,000 s"
    assert list(first.lines) == [["directcontr", 2.0, math.sqrt(2), 4.0, None, 5, 11]]
    assert second.title.startswith("Table 2, HPC2N (a substitute, not in the paper)")
    assert list(second.lines) == [["directcontr", None, None, 7.0, 0.0, None, None]]


def test_figure_10_has_a_column_for_each_number_of_organizations() -> None:
    rows = rows_of("figure-10", "LPC", 12, zipf=[5.0]) + rows_of("figure-10", "LPC", 2, zipf=[1.0])
    (table,) = tables(rows)
    assert list(table.header) == ["policy", "2", "12"]
    assert list(table.lines) == [["directcontr", 1.0, 5.0]]


def test_on_the_papers_own_log_every_policy_is_held_against_ref() -> None:
    made = skowron_2013(PresetParameters({LPC: trace(LPC)}, windows=3, exhibits=["table-2"]))
    rows = run(made, cores=1)
    assert len(rows) == 3 * 2 * len(POLICIES)
    assert all(isinstance(row["unfairness"], float) and row["unfairness"] >= 0 for row in rows)
    assert {row["processors"] for row in rows} == {70}
