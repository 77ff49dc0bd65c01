"""What the daemon costs a real Slurm is measured; how much it is is not for tests."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.lab.bench.slurm import costs
from shapleyprio.lab.bench.slurm import costs as slurm
from shapleyprio.lab.bench.slurm import queue as slurm_queue
from shapleyprio.lab.bench.slurm.costs import calls_by_type, usual
from shapleyprio.lab.cli import trialling
from shapleyprio.lab.testbed.machine import SlurmUnavailableHere
from shapleyprio.lab.testbed.processes import processes_of, wait_until

PENDING = 20
AT_ONCE = 15
"""Writes of a cycle at most."""

SDIAG = """\
Server thread count:  3

Remote Procedure Call statistics by message type
\tREQUEST_PARTITION_INFO                  ( 2009) count:7      ave_time:230    total_time:1613
\tACCOUNTING_UPDATE_MSG                   (10001) count:2      ave_time:386    total_time:772

Remote Procedure Call statistics by user
\troot            (       0) count:23     ave_time:398    total_time:9165
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary directories are made; a short path, for a cluster is below it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        monkeypatch.setenv("TMPDIR", made)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(made)
    monkeypatch.undo()


@pytest.mark.real_slurm
def test_the_cost_on_a_real_slurm_is_reported(
    private_slurm_programs: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "RUNS", 1)
    for module in (slurm, slurm_queue):
        monkeypatch.setattr(module, "MOST_SUBMITTED", PENDING - 1)  # so this is a long queue
    monkeypatch.setattr(slurm_queue, "MOST_WRITES", AT_ONCE)
    monkeypatch.setattr(costs, "JOBS", 3)
    monkeypatch.setattr(costs, "SHORTEST_SECONDS", 2.0)
    result = CliRunner().invoke(
        main,
        [
            *("bench", "slurm", "--pending", str(PENDING), "--poll-interval", "2s", "--json"),
            *("--channel", "qos", "--channel", "site_factor", "--channel", "association"),
        ],
    )
    assert result.exit_code == 0, result.output
    measured = {row["what"]: row for row in json.loads(result.stdout)["measurements"]}
    assert all(row["name"] == "slurm" and row["met"] is None for row in measured.values())
    calls = [what for what in measured if "calls to slurmctld" in what]
    channels = ["site_factor", "association", "qos"]  # the default, then by name
    assert [what.split(",")[0] for what in calls] == [name for name in channels for _ in range(2)]
    writes = [re.findall(r"(\d+) REQUEST_UPDATE_JOB\b", what) for what in calls]
    assert writes == [[], [str(AT_ONCE)], [], [str(PENDING)], [], []]
    (first,) = (row for what, row in measured.items() if "until all jobs are served" in what)
    assert first["what"].startswith("site_factor")
    assert first["value"] > 0
    assert any(f"{AT_ONCE} of {PENDING} writes" in what for what in measured)
    assert all(measured[what]["value"] > 0 for what in calls)
    to_priority = {
        what: row for what, row in measured.items() if "from submission to priority" in what
    }
    assert {row["runs"] for row in to_priority.values()} == {3}
    assert {what.split(":")[0]: row["worst"] == 0 for what, row in to_priority.items()} == {
        "site_factor": False,
        "channel qos": True,
        "channel association": True,
        "table of points": True,
    }
    looks = [row["value"] for what, row in measured.items() if "first look" in what]
    assert len(looks) == 3
    assert all(value > 0 for value in looks)
    assert list(folder.iterdir()) == []


@pytest.mark.real_slurm
def test_ctrl_c_leaves_nothing(private_slurm_programs: None, folder: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "shapleyprio", "bench", "slurm", "--pending", str(PENDING)],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    found: list[Path] = []

    def measuring() -> bool:
        assert running.poll() is None, running.communicate()[1]
        found[:] = folder.glob("*/slurm/*.db")
        return bool(found)

    wait_until(measuring, real_seconds=200, what="the first cycle")
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=100)
    assert (running.returncode, output, errors) == (130, "", "shapleyprio: interrupted\n")
    assert processes_of(found[0].parent) == []
    assert list(folder.iterdir()) == []


def test_where_slurm_cannot_be_had_one_line_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise SlurmUnavailableHere("this machine lacks slurmctld")

    monkeypatch.setattr(trialling, "ensure_installed", refuse)
    result = CliRunner().invoke(main, ["bench", "slurm"])
    assert result.exit_code == 3
    assert result.stderr == "shapleyprio: this machine lacks slurmctld\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--poll-interval", "soon"),
        ("--poll-interval", "0s"),
        ("--channel", "priority"),
        ("--pending", "0"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(options: tuple[str, str]) -> None:
    result = CliRunner().invoke(main, ["bench", "slurm", *options])
    assert result.exit_code == 2
    assert options[0] in result.stderr


def test_calls_are_read_by_type_and_not_by_user() -> None:
    expected = {"REQUEST_PARTITION_INFO": 7, "ACCOUNTING_UPDATE_MSG": 2}
    assert calls_by_type(SDIAG) == expected
    assert calls_by_type("nothing of the kind") == {}


def test_what_nodes_report_now_and_then_is_no_cost_of_the_daemon() -> None:
    runs = [Counter(ping=3), Counter(ping=3, registration=2), Counter(ping=3)]
    assert usual(runs) == {"ping": 3}
