"""The benchmarks run and say what they measured; how fast is not for tests."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from shapleyprio.cli import main
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.lab.bench.cycle import cycles, pool, prune, scale, year
from shapleyprio.lab.bench.cycle.workloads import CLUSTER, NOW, day_of_records
from shapleyprio.lab.bench.cycle.year import Done, literal_ledger
from shapleyprio.lab.bench.fairness import (
    contended,
    manipulations,
    organizations,
    predictors,
    splitting,
)
from shapleyprio.lab.bench.measure import Machine, Measurement, Ran, of_runs, run_apart
from shapleyprio.lab.bench.replay import (
    exports,
    peers,
    recompute,
    replay,
    replay_workloads,
)
from shapleyprio.lab.bench.replay.replay import LARGE, Case
from shapleyprio.lab.cli.bench import PARTS, render
from shapleyprio.replay.coalitions.estimate import estimate
from shapleyprio.replay.coalitions.game import game_of
from shapleyprio.replay.logs import reading
from shapleyprio.replay.logs.column_names import XDMOD_FIELDS
from shapleyprio.replay.policies import COMPARED, ONE_SCHEDULE, PREDICTORS, run_policy
from shapleyprio.replay.workloads.choices import WIDE
from shapleyprio.replay.workloads.workload import Window, jobs_of
from shapleyprio.slurm.text.accounting import accounting_line
from shapleyprio.slurm.text.values import SEPARATOR
from shapleyprio.store import Store

MADE_UP_ROWS = ["s < 0.02", "s < 80", "MB < 1000", "times > 1.6", "s < 0.3", "s < 10"]
"""Units and targets of what needs no logs."""

SMALL = ("--most-organizations", "2")
"""Without what is replayed in processes of its own."""


TWO_CORES = Machine(cores=2, cpu="of a test", python="CPython")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PENDING": 40, "RUNNING": 20, "RUNS": 2}.items():
        monkeypatch.setattr(cycles, name, value)
    sizes = {"PENDING": 40, "RUNNING": 20, "ORGANIZATIONS": 4, "NODES": 8, "MOST_WRITES": 30}
    for name, value in {**sizes, "CHANGES": 3, "RUNS": 2}.items():
        monkeypatch.setattr(scale, name, value)
    for name in ("CLUSTERS", "ORGANIZATIONS", "CYCLES"):
        monkeypatch.setattr(pool, name, 2)
    monkeypatch.setattr(replay, "RUNS", 1)
    monkeypatch.setattr(replay, "RICC_RUNS", 1)
    monkeypatch.setattr(replay, "SACCT_LINES", 10)
    monkeypatch.setattr(replay, "MADE_UP", (Case(organizations=2, below=0.02, runs=2),))
    large = Case(organizations=3, below=80.0, megabytes_below=1000.0, runs=1, one_core_too=True)
    monkeypatch.setattr(replay, "LARGE", (large,))
    monkeypatch.setattr(replay, "WHOLE_LOG", (Case(organizations=2, below=1.0, runs=2),))
    monkeypatch.setattr(replay_workloads, "JOBS", 50)
    monkeypatch.setattr(replay, "machine", lambda: TWO_CORES)


def measure(*arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, ["bench", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    measurements: list[dict[str, Any]] = json.loads(result.stdout)["measurements"]
    return measurements


def targets(measurements: list[dict[str, Any]]) -> Iterator[str]:
    """Unit and target of each, which has one and not two."""
    for row in measurements:
        assert (row["below"] is None) != (row["above"] is None), row
        sign, target = ("<", row["below"]) if row["above"] is None else (">", row["above"])
        yield f"{row['unit']} {sign} {target:.15g}"


def test_all_parts_are_measured() -> None:
    result = CliRunner().invoke(main, ["bench", "--records", "100", *SMALL, "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["machine"].keys() == {"cores", "cpu", "python"}
    parts = [row["name"] for row in report["measurements"]]
    parts_of_service = ["cycle", "cycle", *["ingest"] * 3]
    assert parts == [*parts_of_service, "replay", "replay"]
    assert all(row["value"] > 0 for row in report["measurements"])
    assert [row["below"] for row in report["measurements"][:4]] == [1.0, 1.0, None, None]


@pytest.mark.usefixtures("python_beyond_a_blank")
def test_large_clusters_are_measured_by_what_the_commands_print() -> None:
    first, later, memory = measure("scale")
    assert [row["unit"] for row in (first, later, memory)] == ["s", "s", "MB"]
    assert [row["below"] for row in (first, later, memory)] == [10.0, 1.0, 300.0]
    assert [row["runs"] for row in (first, later, memory)] == [1, 2, 1]
    assert min(row["value"] for row in (first, later, memory)) > 0


def test_a_table_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(main, ["bench", "cycle"])
    assert result.exit_code == 0
    machine, headings, *rows = result.stdout.splitlines()
    assert "CPython" in machine
    assert headings.split()[-4:] == ["runs", "median", "worst", "target"]
    assert {row.split()[-1] for row in rows} <= {"met", "missed"}
    assert [row.split()[0] for row in rows] == ["cycle", "cycle"]


# targets


def cells_of(measurement: Measurement) -> list[str]:
    """What the table shows behind the text."""
    text = io.StringIO()
    render(Console(file=text, width=200), TWO_CORES, [measurement])
    return text.getvalue().splitlines()[-1].split("text", 1)[1].split()


def test_what_is_to_be_small_meets_its_target_below_it() -> None:
    seconds = of_runs("replay", "text", [1.0, 3.0, 2.0], unit="s", below=2.5)
    assert cells_of(seconds) == ["3", "2", "s", "3", "s", "<", "2.5", "s", "met"]
    missed = of_runs("replay", "text", [2.5], unit="s", below=2.5)
    assert cells_of(missed)[-1] == "missed"


def test_what_is_to_be_large_meets_its_target_above_it() -> None:
    rates = of_runs("replay", "text", [1.9, 1.5, 1.7], unit="times", above=1.6)
    shown = ["3", "1.7", "times", "1.5", "times", ">", "1.6", "times", "met"]
    assert cells_of(rates) == shown
    missed = of_runs("replay", "text", [1_234_567.0], unit="lines/s", above=2_000_000.0)
    assert cells_of(missed)[1:3] == ["1,234,567", "lines/s"]
    assert cells_of(missed)[-3:] == ["2,000,000", "lines/s", "missed"]


def test_without_a_target_nothing_is_met_or_missed() -> None:
    assert of_runs("replay", "text", [1.0], unit="s").met is None


def test_narrow_terminals_cut_nothing_off() -> None:
    console = Console(file=io.StringIO(), width=60)
    what = "so many words that they take two lines of the table"
    rate = of_runs("replay", what, [1e6], unit="jobs/s", above=2e6)
    render(console, TWO_CORES, [rate])
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines[1:])) <= 60
    table = " ".join(" ".join(lines[2:]).split())
    assert table.startswith("replay so many words that 1 1,000,000 jobs/s missed they take two")
    assert "no room for: worst, target; wider terminals and --json show all" in table


# replays


@pytest.fixture
def _begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """What starts processes of a user's is left out."""
    for name in ("_start_up", "_first_replay"):
        monkeypatch.setattr(replay, name, lambda *_: of_runs("replay", "", [1.0], unit="s"))


def write_logs(folder: Path) -> None:
    """Small logs under the names of the real ones."""
    lines = [
        f"{job} {job} 0 {5 + job % 4} 1 -1 -1 1 -1 -1 1 {job % 5} 1 -1 -1 -1 -1 -1\n"
        for job in range(1, 41)
    ]
    for name in (replay.LPC, replay.RICC):
        (folder / name).write_bytes(gzip.compress("".join(lines).encode()))
    known = {"jobid": "7", "submit": "2017-01-01T00:00:00", "start": "2017-01-01T00:00:05"}
    known |= {"jobidraw": "7", "elapsed": "00:01:00", "ncpus": "1"}
    line = "|".join(known.get(name, "") for name in XDMOD_FIELDS) + "\n"
    (folder / replay.XDMOD).write_bytes(gzip.compress(line.encode()))


def test_every_measurement_of_a_replay_has_its_target(tmp_path: Path) -> None:
    write_logs(tmp_path)
    measured = measure("replay", "--logs", str(tmp_path))
    assert list(targets(measured)) == [
        *MADE_UP_ROWS,
        *("s < 60", "MB < 4000", "times < 1.1", "s < 1", "s < 60"),
        *["jobs/s > 1000000"] * len(ONE_SCHEDULE),
        *["lines/s > 1000000"] * 2,
        "lines/s > 200000",
    ]
    assert all(row["value"] > 0 for row in measured)
    assert all(f"{policy}," in str(measured) for policy in ONE_SCHEDULE)
    assert "40 lines of SWF, decompression included" in measured[-2]["what"]
    assert "reading 10 lines of text of sacct" in measured[-1]["what"]


@pytest.mark.usefixtures("_begun")
def test_the_dear_ones_can_be_left_out(tmp_path: Path) -> None:
    write_logs(tmp_path)
    most = ("--most-organizations", "1")
    whats = [row["what"] for row in measure("replay", "--logs", str(tmp_path), *most)]
    assert whats
    assert not [what for what in whats if "ref" in what]


@pytest.mark.usefixtures("_begun")
def test_logs_that_are_not_there_are_named(tmp_path: Path) -> None:
    arguments = ["bench", "replay", *SMALL, "--json"]
    result = CliRunner().invoke(main, arguments)
    (line,) = [line for line in result.stderr.splitlines() if "left out" in line]
    assert all(name in line for name in replay.LOGS)
    assert "name their place with --logs DIRECTORY" in line
    write_logs(tmp_path)
    (tmp_path / replay.RICC).unlink()
    result = CliRunner().invoke(main, [*arguments, "--logs", str(tmp_path)])
    (line,) = [line for line in result.stderr.splitlines() if "left out" in line]
    assert line == f"shapleyprio: left out: RICC's whole log ({replay.RICC}): not in {tmp_path}"
    assert not [row for row in json.loads(result.stdout)["measurements"] if "RICC" in row["what"]]


def write_contended_log(folder: Path) -> None:
    """Four users and two processors, which have too much to do; with time limits."""
    random = Random(3)  # the same log every time
    lines = [
        f"{job} {job * 2} {random.randrange(9)} {5 + random.randrange(9)} {1 + job % 2} -1 -1 "
        f"{1 + job % 2} 20 -1 1 {job % 4} 1 -1 -1 -1 -1 -1\n"
        for job in range(1, 201)
    ]
    text = "; MaxProcs: 2\n" + "".join(lines)
    (folder / "HPC2N-2002-2.2-cln.swf.gz").write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def contended_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_contended_log(tmp_path)
    monkeypatch.setattr(contended, "LENGTH", 100)
    monkeypatch.setattr(contended, "WHOLE_LENGTH", 100)
    monkeypatch.setattr(contended, "CONTENDED", 1)
    monkeypatch.setattr(manipulations, "IDLE", 5)
    monkeypatch.setattr(manipulations, "LONG", 5)
    for module in (manipulations, predictors, splitting):
        monkeypatch.setattr(module, "ORGANIZATIONS", 2)
        monkeypatch.setattr(module, "WINDOWS", 2)
    return tmp_path


def test_manipulations_are_tried_on_contended_windows(contended_logs: Path) -> None:
    measured = measure("manipulations", "--logs", str(contended_logs))
    found = {(row["what"], row["name"]): row["value"] for row in measured}
    assert {name for _, name in found} == {"directcontr", "fairshare", "live"}
    assert found["HPC2N, padded by 20 %: mean gain", "live"] < 0
    assert found["HPC2N, in single copies: mean gain", "fairshare"] != 0  # whole jobs were wide
    assert found["HPC2N, with phantoms twice as wide: mean gain", "live"] == 0
    assert found["HPC2N, with phantoms as wide as all: mean gain", "live"] < 0
    assert found["HPC2N, long jobs after short ones: mean gain", "live"] < 0
    assert ("HPC2N, twice the limits: organizations that gain", "live") in found
    assert ("HPC2N, twice the limits: mean gain", "directcontr") not in found
    assert all(1 <= row["runs"] <= 4 for row in measured)


def test_waits_are_measured_before_and_after_one_organization_becomes_two_members(
    contended_logs: Path,
) -> None:
    measured = measure("splitting", "--logs", str(contended_logs))
    assert [(row["name"], row["what"]) for row in measured] == [
        (policy, f"HPC2N, {whose} jobs, {members}: mean wait")
        for policy in splitting.POLICIES
        for whose in ("urgent", "others'")
        for members in ("one member", "two members")
    ]
    waits = [row["value"] for row in measured]
    assert waits[::2] != waits[1::2]  # becoming two changes something
    assert all(1 <= row["runs"] <= 4 and 0 <= row["value"] <= row["worst"] for row in measured)


def test_predictors_are_held_against_each_other_on_the_same_windows(
    contended_logs: Path,
) -> None:
    measured = measure("predictors", "--logs", str(contended_logs))
    names = [*COMPARED, "shapley", *(f"live, {name}" for name in PREDICTORS)]
    assert [(row["what"], row["name"]) for row in measured] == [
        (f"HPC2N, {kind} jobs: mean Δψ/p_tot", name) for kind in ("whole", "cut") for name in names
    ]
    assert max(row["value"] for row in measured[: len(COMPARED)]) >= contended.CONTENDED
    assert all((row["runs"], row["unit"]) == (2, "s") for row in measured)


def test_shapley_values_are_computed_from_scratch_and_again_in_processes_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str]) -> Ran:
        ran.append(command[-4:])
        return Ran(seconds=99.0, megabytes=300.0, last_line="1.5 0.5")

    monkeypatch.setattr(recompute, "run_apart", run)
    measured = measure("recompute")
    assert ran[:: recompute.RUNS][4:8] == [
        ["8", "1.0", days, wide] for wide in ("rigid", "expand") for days in ("0", "7")
    ]
    whole, *_, scratch, hour, memory = measured[13:21]
    assert (whole["what"], whole["value"], whole["below"], whole["met"]) == (
        "whole jobs, 8 organizations, no horizon: an hour was added",
        0.5,
        0.6,
        True,
    )
    assert scratch["what"] == "cut jobs, 8 organizations, no horizon: from scratch"
    assert (scratch["value"], scratch["below"], scratch["met"]) == (1.5, 2.0, True)
    assert (hour["value"], hour["below"], hour["met"]) == (0.5, 0.3, False)
    assert (memory["value"], memory["below"]) == (300.0, 1000.0)


def test_a_month_is_as_the_targets_want_it_and_computed_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = recompute.month(8, 1.0, "rigid")
    assert abs(len(workload.job) - recompute.JOBS) < 1000
    assert (workload.processing_time < workload.limit).all()
    released = int((workload.processing_time * workload.processors).sum())
    assert released / (int(workload.owned.sum()) * workload.window.length) == pytest.approx(1, 0.01)
    monkeypatch.setattr(recompute, "JOBS", 300)
    monkeypatch.setattr(recompute, "PROCESSORS", 20)
    for wide in WIDE:
        recompute.main(3, 1.0, 7, wide)
        assert len(capsys.readouterr().out.split()) == 2


def test_estimates_are_held_against_ref_and_with_many_organizations_against_many_coalitions(
    contended_logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(organizations, "ORGANIZATIONS", (2,))
    monkeypatch.setattr(organizations, "WINDOWS", 2)
    few = measure("organizations", "--logs", str(contended_logs))
    estimates = ["directcontr", organizations.FIRST_COME, organizations.SAMPLED]
    assert [(row["what"], row["name"]) for row in few] == [
        ("HPC2N, 2 organizations: mean Σ|φ̂ − φ|", name) for name in estimates
    ]
    assert all(row["runs"] == 2 and 0 <= row["value"] <= row["worst"] for row in few)
    assert few[0]["value"] > few[1]["value"]
    monkeypatch.setattr(organizations, "EXACT_ORGANIZATIONS", 1)
    many = measure("organizations", "--logs", str(contended_logs))
    assert [row["name"] for row in many] == [estimates[0], estimates[2]]


def test_with_few_organizations_what_counts_as_true_is_what_ref_has() -> None:
    workload = replace(recompute.month(3, 1.0, "rigid"), window=Window(start=0, length=20_000))
    workload = jobs_of(workload, np.flatnonzero(workload.release < 20_000))
    assert (
        estimate(game_of(workload), budget=1).contribution
        == run_policy(workload, "ref").contribution
    )


LITERAL = """
import sys
from pathlib import Path

log, processors, rule, folder = sys.argv[1:]
free, now, running, starts = int(processors), 0, [], []
for line in Path(log).read_text().splitlines():
    job, release, _, time, wide = map(int, line.split()[:5])
    now = max(now, release)
    while sum(q for end, q in running if end > now) + wide > int(processors):
        now = min(end for end, _ in running if end > now)
    running.append((now + time, wide))
    starts.append(f"{job};{now + 1000 + (rule == 'easy') * job}\\n")
Path(folder, f"sched-{Path(log).name}").write_text("".join(starts))
"""
"""First come, first served from its definition, in place of a simulator that pip would install."""


def test_a_peer_is_measured_with_the_same_jobs(
    contended_logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(_: peers.Peer, place: Path) -> Path:
        place.mkdir()
        return Path(sys.executable)

    driver = contended_logs / "driver.py"
    driver.write_text(LITERAL)
    monkeypatch.setattr(peers, "PEERS", [replace(peer, driver=driver) for peer in peers.PEERS])
    monkeypatch.setattr(peers, "_install", install)
    monkeypatch.setattr(peers, "JOBS", 30)
    monkeypatch.setattr(peers, "RUNS", 1)
    measured = measure("peers", "--logs", str(contended_logs))
    each = ["jobs/s", "MB"]
    assert [row["unit"] for row in measured] == each * 3 + ["jobs"] * 2 + each * 2 + ["jobs"]
    different = {row["what"].split(":")[0]: row for row in measured if row["unit"] == "jobs"}
    for peer in ("AccaSim", "Lapis"):
        assert different[f"HPC2N, fcfs, {peer}"]["value"] == 0
        assert different[f"HPC2N, fcfs, {peer}"]["met"]
    assert different["HPC2N, easy, AccaSim"]["value"] > 20


def test_where_pip_cannot_install_a_peer_it_is_said(tmp_path: Path) -> None:
    arguments = ("bench", "peers", "--logs", str(tmp_path))
    nowhere = {"PIP_INDEX_URL": (tmp_path / "none").as_uri(), "PIP_CONFIG_FILE": "/dev/null"}
    ended = CliRunner().invoke(main, arguments, env=nowhere)
    assert ended.exit_code == 2, ended.output
    (line,) = ended.stderr.strip().splitlines()[-1:]
    assert "accasim==1.1.3 cannot be installed; pip says: " in line


@pytest.mark.parametrize("part", [name for name, part in PARTS.items() if part.on_logs])
def test_what_is_measured_on_real_logs_asks_for_them(part: str) -> None:
    result = CliRunner().invoke(main, ["bench", part])
    assert result.exit_code == 2
    assert "add --logs DIRECTORY" in result.stderr


@pytest.mark.usefixtures("_begun")
def test_one_core_alone_is_not_held_against_two(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(cores=1, cpu="of a test", python="CPython")
    monkeypatch.setattr(replay, "machine", lambda: machine)
    result = CliRunner().invoke(main, ["bench", "replay", "--json"])
    assert result.exit_code == 0
    assert "left out: one core against two" in result.stderr
    units = [row["unit"] for row in json.loads(result.stdout)["measurements"]]
    assert units == ["s", "s", "MB", "s", "s"]


@pytest.mark.usefixtures("_begun")
def test_one_core_and_two_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what slows the machine down for a while slows both down."""
    turns: list[str] = []

    def run(command: list[str], progress: object) -> Ran:
        turns.append(command[-1])
        seconds = {"1": 8.0, "2": 4.0}[command[-1]] + len(turns) // 3 * 10
        return Ran(seconds=99.0, megabytes=len(turns), last_line=str(seconds))

    monkeypatch.setattr(replay, "run_apart", run)
    case = Case(organizations=3, below=10.0, megabytes_below=1000.0, runs=3, one_core_too=True)
    monkeypatch.setattr(replay, "LARGE", (case,))
    _, seconds, megabytes, times, *_ = measure("replay")
    assert turns == ["1", "2"] * 3
    assert (seconds["value"], seconds["worst"], seconds["met"]) == (14.0, 24.0, False)
    assert megabytes["value"] == 4
    assert (times["value"], times["worst"], times["met"]) == (18 / 14, 18 / 24, False)


@pytest.mark.usefixtures("_begun")
def test_the_largest_run_on_two_cores_alone_and_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[list[str]] = []

    def run(command: list[str], progress: object) -> Ran:
        turns.append(command[-2:])
        return Ran(seconds=99.0, megabytes=7.0, last_line="5")

    monkeypatch.setattr(replay, "run_apart", run)
    monkeypatch.setattr(replay, "LARGE", (LARGE[0], *LARGE[-2:]))
    measure("replay")
    assert turns == [["14", "1"], ["14", "2"]] * 3
    turns.clear()
    *_, seconds, megabytes, _, _ = measure("replay", "--most-organizations", "20")
    assert turns[-2:] == [["18", "2"], ["20", "2"]]
    assert (seconds["value"], seconds["below"], megabytes["value"]) == (5.0, 1800.0, 7.0)


def test_long_exports_are_read_plain_and_compressed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(exports, "LINES", 300)
    measured = measure("exports")
    assert [row["unit"] for row in measured] == ["s", "MB"] * (len(measured) // 2)
    assert [row["below"] for row in measured[:2]] == [25.0, 2000.0]
    assert len({row["what"] for row in measured}) - 1 == (3 if shutil.which("zstd") else 2)

    exports.write_export(tmp_path / "export.sacct", 300, lambda _: None)
    log = reading.read_log(str(tmp_path / "export.sacct"), strict=True)
    assert log.job.tolist() == list(range(1, 301))


@pytest.mark.parametrize("part", ["replay", "all"])
def test_missing_packages_are_reported_before_anything_is_measured(part: str) -> None:
    done = without_packages(part)
    assert done.returncode == 2
    assert done.stderr == (
        "shapleyprio: bench needs more packages: install the package "
        "shapleyprio-replay, or pip install 'shapleyprio[replay]'\n"
    )


def test_the_service_is_measured_without_the_packages_of_replay() -> None:
    done = without_packages("ingest", "--records", "10")
    assert done.returncode == 0, done.stderr
    assert "10 finished records" in done.stdout


def test_all_that_became_old_is_pruned_but_what_says_when_it_last_went_well(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    measured = list(prune.prune(url, 500, lambda _: None))
    transactions = [one for one in measured if one.what.endswith("one of these transactions")]
    assert [one.runs for one in transactions] == [1, 1]
    with Store.open(url) as opened, opened.cluster(CLUSTER).reading() as view:
        last = view.history.last_cycle()
        assert last is not None
        assert view.history.cycles() == [last]
        assert [push.cycle for push in view.pushes.latest()] == [last.number]
        assert len(list(view.runs.all_runs())) < 500


def without_packages(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where numpy is not installed."""
    program = f"""if True:
        import sys
        sys.modules["numpy"] = None
        from shapleyprio.cli import main
        main(["bench", *{arguments!r}])
    """
    return subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )


def test_a_program_run_apart_shows_its_time_memory_and_progress() -> None:
    program = "x = bytearray(300_000_000); print(1); print(2); print('the end')"
    seen: list[int] = []
    ran = run_apart([sys.executable, "-c", program], seen.append)
    assert (seen, ran.last_line) == ([1, 2], "the end")
    assert ran.seconds > 0
    assert ran.megabytes > 300


def test_a_program_that_fails_apart_is_reported_with_its_last_line() -> None:
    with pytest.raises(RuntimeError, match="ended with 1: ValueError: why"):
        run_apart([sys.executable, "-c", "raise ValueError('why')"])


@pytest.mark.parametrize("organizations", [5, 16])
def test_what_is_made_up_is_the_same_everywhere_and_as_the_targets_want_it(
    organizations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_workloads, "JOBS", 3_000)
    workload = replay_workloads.made_up(organizations)
    again = replay_workloads.made_up(organizations)
    for column in ("organization", "release", "processing_time", "job", "position"):
        assert (getattr(workload, column) == getattr(again, column)).all()
    assert len(workload.job) == 3_000
    assert (workload.system_processors, workload.window.length) == (70, 50_000)
    assert workload.owned.min() >= 1
    assert (np.diff(workload.owned) <= 0).all()
    assert workload.processing_time.min() >= 1
    assert 0 <= workload.release.min() <= workload.release.max() < 50_000
    load = workload.processing_time.sum() / (70 * 50_000)
    assert 1.2 < load < 1.4
    each = np.bincount(workload.organization, minlength=organizations)
    assert each.min() > 0.75 * 3_000 / organizations
    order = np.lexsort((workload.position, workload.release, workload.organization))
    assert (order == np.arange(3_000)).all()


def test_another_seed_makes_up_other_jobs() -> None:
    first, other = (replay_workloads.made_up(3, seed=seed) for seed in (1, 2))
    assert (first.release != other.release).any()


# the past


def test_every_record_of_the_past_can_be_read() -> None:
    records = [accounting_line(line, "cpu", SEPARATOR) for line in day_of_records(3, 500)]
    for record in records:
        assert isinstance(record, JobRecord)
        assert record.start is not None
        assert record.end is not None
        assert record.submit <= record.start < record.end < NOW
        assert record.processors


def test_what_a_pool_asks_of_the_database_is_counted_for_a_cluster_and_an_hour() -> None:
    transactions, rows, written = (row["value"] for row in measure("pool"))
    cycles_of_an_hour = 3600 / pool.POLL_SECONDS
    assert cycles_of_an_hour < transactions
    assert rows >= cycles_of_an_hour * 2 * pool.ORGANIZATIONS  # standings and balances
    assert written > 0


# a year


@pytest.mark.usefixtures("python_beyond_a_blank")
def test_days_are_lived_to_the_literal_ledger_and_a_month_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(year, "DAYS", 3)
    *needs, reports, wrong = measure("year")
    assert [row["unit"] for row in needs] == ["MB", "times", "MB", "times", "s", "times"]
    assert [row["below"] for row in needs] == [None, year.LEVEL_BELOW] * 3
    assert all(row["value"] > 0 for row in needs)
    assert reports["value"] == 1
    assert (wrong["value"], wrong["met"]) == (0, True)


def test_the_literal_ledger_counts_each_second_for_who_holds_then() -> None:
    """As a sum over all seconds."""
    job = Done("a", "b1", 3, begin=80, end=130)
    holders = {0: {"a": "a", "b1": "b"}, 110: {"a": "a", "b1": "c"}, 199: {}}

    def worth(begin: int, end: int) -> int:
        return 3 * sum(min(200 - second, 100) for second in range(begin, end))

    assert literal_ledger([job, job._replace(account="guest")], holders, 200, 100) == {
        "a": (0, worth(80, 130)),
        "b": (worth(80, 110), 0),
        "c": (worth(110, 130), 0),
    }
