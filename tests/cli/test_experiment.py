"""`shapleyprio experiment` on small logs written here."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest

from shapleyprio.lab.cli import experimenting
from shapleyprio.lab.experiment import general, windows
from shapleyprio.lab.experiment.cells import (
    Experiment,
    ExperimentTable,
    PresetParameters,
    WindowsParameters,
)
from shapleyprio.replay.policies import Estimation, run_policy
from tests.cli.offline import OfflineCommand
from tests.lab.experiment.examples import Failing, experiment_of, write_log

SMALL = ("--windows", "3", "--length", "15s", "--deal-users", "2", "--cores", "1")


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_log(Path("busy.swf"))


COMMAND = OfflineCommand("experiment")
experiment, succeeds, answer, fails = (
    COMMAND.run,
    COMMAND.succeeds,
    COMMAND.answer,
    COMMAND.fails,
)


# what it shows


def test_a_table_for_each_group() -> None:
    lines = succeeds("busy.swf", *SMALL, "--policy", "fcfs", "--policy", "ref").stdout.splitlines()
    assert lines[0] == "windows: Δψ/p_tot against ref, in seconds; 3 windows of 15 s of each log"
    assert lines[2] == "busy, zipf, organizations 2"
    headings = ["policy", "mean", "95", "%", "interval", "st.", "dev.", "median"]
    assert lines[3].split() == [*headings, *["out", "of", "turn"], "wins", "ties", "count"]
    fcfs, ref = (line.split() for line in lines[4:6])
    assert fcfs[0] == "fcfs"
    assert float(fcfs[1]) > 0
    assert ref[:5] == ["ref", "0.00", "0.00", "to", "0.00"]
    assert ref[-4] == "0.0%"
    assert 0 < float(fcfs[-4].rstrip("%")) <= 100
    assert ref[-1] == "3"


def test_tables_are_whole_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert "…" not in succeeds("busy.swf", *SMALL).stdout


def test_groups_of_shares_and_numbers_of_organizations() -> None:
    output = succeeds(
        *("busy.swf", "--windows", "2", "--length", "15", "--deal-users", "3,2", "--deals", "2"),
        *("--processor-shares", "zipf", "--processor-shares", "uniform", "--policy", "fcfs"),
        *("--cores", "1"),
    ).stdout
    titles = [line for line in output.splitlines() if line.startswith("busy, ")]
    assert titles == [
        f"busy, {shares}, organizations {k}" for shares in ("zipf", "uniform") for k in (2, 3)
    ]
    counts = [line.split()[-1] for line in output.splitlines() if line.startswith("fcfs")]
    assert counts == ["4"] * 4


def test_json_has_the_rows_the_summary_and_what_reproduces_them() -> None:
    output = answer("busy.swf", *SMALL, "--policy", "rand-2", "--policy", "fcfs")
    assert len(output["rows"]) == 6
    values = [row["unfairness"] for row in output["rows"] if row["policy"] == "fcfs"]
    (line,) = (line for line in output["summary"] if line["group"]["policy"] == "fcfs")
    assert line["mean"] == pytest.approx(sum(values) / 3)
    assert list(output["inputs"]) == ["busy.swf"]
    assert output["version"]


def test_results_are_tidy_rows() -> None:
    rows = answer("busy.swf", *SMALL, "--results", "rows.csv")["rows"]
    frame = pd.read_csv("rows.csv")
    assert list(frame.columns) == list(rows[0])
    assert frame["policy"].tolist() == [row["policy"] for row in rows]
    assert frame["unfairness"].tolist() == [row["unfairness"] for row in rows]
    assert not list(Path().glob(".rows*"))


def test_finished_cells_are_kept_and_other_parameters_refused() -> None:
    first = succeeds("busy.swf", *SMALL, "--keep", "kept").stdout
    assert len(list(Path("kept/cells").iterdir())) == 3
    assert succeeds("busy.swf", *SMALL, "--keep", "kept").stdout == first
    fails("was run with other parameters", "busy.swf", *SMALL, "--keep", "kept", "--seed", "1")
    fails("is not empty", "busy.swf", *SMALL, "--keep", ".")


def test_on_two_cores_it_finds_the_same() -> None:
    alone = succeeds("busy.swf", *SMALL)
    assert succeeds("busy.swf", *SMALL[:-1], "2").stdout == alone.stdout


def test_what_could_not_be_had_is_counted_and_reported() -> None:
    result = experiment("busy.swf", *SMALL, "--policy", "fcfs", "--processors", str(10**18))
    assert "failed" in result.stdout
    assert "3 values are missing, such as: " in result.stdout
    assert "give --processors N" in result.stdout
    assert result.exit_code == 2
    assert result.stderr == ("shapleyprio: no value could be computed, for the reason above\n")


def test_windows_that_are_all_the_same_are_refused() -> None:
    fails(
        "all windows of 10000 s are the same; choose --windows 1, or a shorter --length",
        *("busy.swf", *SMALL, "--length", "10000s", "--policy", "fcfs"),
    )


def test_the_json_has_all_parameters() -> None:
    parameters = answer("busy.swf", *SMALL, "--policy", "fcfs", "--seed", "7")["parameters"]
    assert parameters == {
        "policies": ["fcfs"],
        "windows": 3,
        "length": 15,
        "contended": None,
        "deals": 1,
        "organizations": [2],
        "shares": ["zipf"],
        "processors": None,
        "wide": "rigid",
        "backfill": "easy",
        "recompute": 30,
        "coalitions": 500,
        "predictor": "survivors",
        "seed": 7,
    }


FORECASTS = ("busy.swf", *SMALL, "--forecasts", "3")


def test_forecasts_are_scored_beside_limits_and_mean_waits() -> None:
    found = answer(*FORECASTS)
    assert found["experiment"] == "forecasts"
    assert found["parameters"]["policies"] == ["live", "fairshare"]
    ways = ["futures", "running known", "limits", "mean wait"]
    assert [line["group"]["by"] for line in found["summary"]] == 2 * ways
    assert len(found["rows"]) == 3 * 2 * 3 * len(ways)
    for row in found["rows"]:
        assert row["forecast"] >= row["release"]
        starts = row["start"] is not None
        assert row["error"] == (abs(row["forecast"] - row["start"]) if starts else None)
        assert (row["early"] is not None) == (row["by"] == "futures")
    counts = [table["lines"][0][:2] for table in found["tables"]]
    assert (
        counts
        == [
            ["all", line["count"]] for line in found["summary"] if line["group"]["by"] == "futures"
        ][::-1]
    )
    assert 0 < min(count for _, count in counts) <= 9
    shown = succeeds(*FORECASTS, "--policy", "fcfs").stdout
    assert "intervals that are to hold in 80 of 100 cases: busy, zipf, 2, fcfs" in shown


def test_live_estimates_as_it_is_asked_to() -> None:
    live = ("busy.swf", *SMALL, "--policy", "live")
    asked = ("--predictor", "limit", "--recompute", "2s", "--coalitions", "40")
    with patch.object(windows, "run_policy", wraps=run_policy) as scheduling:
        parameters = answer(*live, *asked)["parameters"]
    (estimation,) = {
        call.kwargs["estimation"] for call in scheduling.call_args_list if call.args[1] == "live"
    }
    assert estimation == Estimation(predictor="limit", recompute=2, coalitions=40)
    assert {name: parameters[name] for name in asdict(estimation)} == asdict(estimation)


def test_a_preset_takes_its_logs_and_shows_its_own_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[PresetParameters] = []

    def preset(_name: str, parameters: PresetParameters) -> Experiment:
        asked.append(parameters)
        made = general.windows_experiment(
            ["busy.swf"], WindowsParameters(windows=1, length=15, organizations=[2])
        )
        own = ExperimentTable("Table 1", ["policy", "ours"], [["x", 1.25], ["y", None]])
        return replace(made, tables=lambda _: [own], notes=["nothing is absent"])

    monkeypatch.setattr(experimenting, "preset_experiment", preset)
    output = succeeds(
        *("--preset", "skowron-2013", ".", "--exhibit", "table-1", "--windows", "7"),
        *("--seed", "3", "--cores", "1"),
    ).stdout
    logs = {"busy.swf": Path("busy.swf").resolve()}
    assert asked == [PresetParameters(logs, windows=7, seed=3, exhibits=("table-1",))]
    assert "\nTable 1\npolicy  ours\nx       1.25\ny          –\n" in output  # noqa: RUF001  # the dash of tables
    assert output.endswith("nothing is absent\n")


def test_a_cell_that_cannot_run_ends_it_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experimenting, "made_of", lambda _: experiment_of([Failing()]))
    fails("shapleyprio: nobody can run this; leave it out", "busy.swf", "--cores", "1")


# what it refuses


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("name at least one LOG, or a --preset", []),
        ("the preset sets --policy", ["--preset", "skowron-2013", ".", "--policy", "fcfs"]),
        ("the preset sets --deal-users", ["--preset", "skowron-2013", ".", "--deal-users", "3"]),
        ("the preset sets --recompute", ["--preset", "skowron-2013", ".", "--recompute", "9s"]),
        ("--predictor is for live; add --policy live", ["busy.swf", "--predictor", "limit"]),
        (
            "--coalitions is for shapley and live",
            ["busy.swf", "--policy", "fcfs", "--coalitions", "40"],
        ),
        ("--forecasts is about whole jobs", ["busy.swf", "--forecasts", "3", "--wide", "expand"]),
        (
            "--contended does not go with --forecasts",
            [*FORECASTS, "--contended", "9s"],
        ),
        ("there are no forecasts under ref", [*FORECASTS, "--policy", "ref"]),
        ("none of 200 windows of 15 s drawn do 99 jobs wait", [*FORECASTS, "--forecasts", "99"]),
        ("the preset sets --forecasts", ["--preset", "skowron-2013", ".", "--forecasts", "3"]),
        ("--exhibit goes with --preset", ["busy.swf", "--exhibit", "table-1"]),
        ("no exhibit 'table-9'", ["--preset", "skowron-2013", ".", "--exhibit", "table-9"]),
        ("none of skowron-2013's logs is at hand", ["--preset", "skowron-2013", "."]),
        ("nowhere: does not exist", ["--preset", "skowron-2013", "nowhere"]),
        ("nowhere.swf: cannot be read", ["nowhere.swf"]),
        ("unknown policy 'fair'", ["busy.swf", "--policy", "fair"]),
        ("'a' is not a duration", ["busy.swf", "--length", "a"]),
        ("'2,0' is not K or K,K,...", ["busy.swf", "--deal-users", "2,0"]),
        ("choose fewer organizations", ["busy.swf", "--cores", "1"]),
        (
            "--backfill goes with --wide rigid",
            ["busy.swf", "--wide", "expand", "--backfill", "none"],
        ),
        ("rows are written as CSV; name it .csv", ["busy.swf", "--results", "rows.txt"]),
        ("there is no directory", ["busy.swf", "--results", "nowhere/rows.csv"]),
        ("name the same file", ["busy.swf", "--results", "r.csv", "--json", "r.csv"]),
        ("name the same file", ["busy.swf", "--report", "r.html", "--json", "./r.html"]),
        ("a store grows", ["sqlite:///runs.db", "--keep", "kept"]),
        ("21 organizations; policies are compared with ref", ["busy.swf", "--deal-users", "21"]),
    ],
)
def test_one_line_for_what_cannot_be_done(message: str, arguments: list[str]) -> None:
    fails(message, *arguments)
