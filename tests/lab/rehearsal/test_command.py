"""What `shapleyprio rehearse` refuses, and what it shows of arms that are kept."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import main
from shapleyprio.cli.options.parameters import ReportParameters
from shapleyprio.lab.cli.parameters import RehearseParameters
from shapleyprio.lab.cli.rehearsing import prepare
from shapleyprio.lab.rehearsal.arms import ARMS
from tests.lab.rehearsal.test_answer import trace
from tests.lab.rehearsal.test_jobs import folder

__all__ = ["folder"]  # a fixture

FROM = "2026-01-01T10:05:00+00:00"
DAYS = 55 / (24 * 60)


def rehearse(folder: Path, *options: str) -> Result:
    files = {"slurm-conf": "slurm.conf", "associations": "dump", "qos": "qos"}
    named = [f"--{option}={folder / file}" for option, file in files.items()]
    organizations = f"--organizations={folder / 'who.toml'}"
    words = ["rehearse", str(folder / "jobs.sacct"), *named, organizations, *options]
    return CliRunner().invoke(main, words)


def refused(result: Result) -> str:
    """The one line of an error of the user's."""
    assert result.exit_code == 2, result.output
    assert not result.stdout
    line = result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    return line


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("slurm.conf", "NodeName=n1 CPUs=x\n", "slurm.conf:1: CPUs: 'x' is not a number"),
        ("dump", "hello\n", "dump:1: 'hello' is not a line of `sacctmgr dump CLUSTER`"),
        (
            "qos",
            "Name|Priority\nlow|a b\n",
            "qos:2: Priority: 'a b' is not a value that Slurm prints",
        ),
        ("jobs.sacct", "JobID|Submit|Start|End|ReqCPUS\n", "jobs.sacct"),
        ("who.toml", "[[organization]]\n", "who.toml"),
    ],
)
def test_a_file_that_cannot_be_right_is_one_line(
    folder: Path, file: str, text: str, message: str
) -> None:
    (folder / file).write_text(text)
    assert message in refused(rehearse(folder))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--arm=today", "--arm=today"), "the same --arm is named twice"),
        (("--set=SlurmUser=root",), "--set: 'SlurmUser=root' is not one of PriorityType, "),
        (("--from=2030-01-01",), "no job was released on these days"),
        (("--waits=/nonexistent/waits.csv",), "/nonexistent"),
    ],
)
def test_options_that_cannot_be_right_are_one_line(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in refused(rehearse(folder, *options))


@pytest.mark.parametrize("file", ["jobs.sacct", "slurm.conf", "dump", "qos", "who.toml"])
def test_nothing_that_is_read_is_overwritten(folder: Path, file: str) -> None:
    before = (folder / file).read_text()
    assert "and --json name the same file" in refused(rehearse(folder, f"--json={folder / file}"))
    assert (folder / file).read_text() == before


def test_arms_that_are_kept_are_shown_without_a_slurm(folder: Path) -> None:
    parameters = RehearseParameters(
        log=(str(folder / "jobs.sacct"),),
        time_zone="UTC",
        slurm_conf=folder / "slurm.conf",
        associations=folder / "dump",
        qos=folder / "qos",
        organizations=folder / "who.toml",
        since=datetime.fromisoformat(FROM),
        days=DAYS,
        max_nodes=1000,
        warm_up=300,
        arms=("today",),
        changes=(),
        repeat=1,
        speed=60,
        side_by_side=1,
        keep=folder / "kept",
        directory=None,
        json_file=None,
        waits_file=None,
        report=ReportParameters(file=None, pictures=None, command=""),
    )
    prepared = prepare(parameters)
    assert prepared.kept is not None
    prepared.kept.keep("today", trace(), ARMS["today"])
    options = (f"--from={FROM}", f"--days={DAYS}", "--warm-up=5m", "--arm=today")
    files = ("--keep", str(folder / "kept"), "--waits", str(folder / "waits.csv"))
    shown = rehearse(folder, *options, *files, f"--json={folder / 'answer.json'}")
    assert shown.exit_code == 0, shown.stderr
    assert "shapleyprio: kept: today" in shown.stderr
    assert "not taken over: TopologyPlugin: jobs on several nodes" in shown.stderr
    assert "mean wait today against what really happened: −18.1%" in shown.stdout
    for heading in ("organization", "partition", "size"):
        assert f"\n{heading} " in shown.stdout
    assert json.loads((folder / "answer.json").read_text())["jobs"] == 2
    assert (folder / "waits.csv").read_text().count("\n") == 3
