"""Small trials on a real Slurm.

Of jobs that are cut: one organization floods it, one works, one lends and asks late. Of whole jobs:
one waits for all processors, and others may or may not pass it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shapleyprio.lab.testbed.processes import wait_until
from tests.processes import processes_mentioning

pytestmark = pytest.mark.real_slurm

SECONDS = 240
LATE = 320
"""When the lender asks; jobs that end between 240 and 260 have been followed by others by then."""

SELDOM = ("--poll-interval", "1m", "--new-jobs-interval", "off")
"""Often enough for what is late by more than a minute, and much less work for the machine."""

JOBS = {"flooding": (4, 10, 0), "working": (10, 1, 0), "lending": (10, 1, LATE)}
"""Organization -> how many jobs, of how many processors, and when they are released."""

ORGANIZATIONS = "".join(
    f'[[organization]]\nname = "{name}"\nusers = ["{user}"]\nprocessors = 2\n'
    for user, name in enumerate(JOBS, start=1)
)
DAEMONS = ("shapleyprio-site-factor", "shapleyprio-live-site-factor")
TRIAL = ("trial", "log.swf", "--organizations", "who.toml", "--wide", "expand")
SHORT = (
    '[[trial]]\nname = "short"\nlog = "log.swf"\norganizations = "who.toml"\n'
    'arm = ["shapleyprio-nice"]\nwindow = "0:100"\nwide = "expand"\n'
)
TRIALS = ("trials", "list.toml", "--repeat", "2", "--keep", "results", "--side-by-side", "2")

RUNNING, WIDE, PASSING, TOO_LONG = range(1, 5)
"""Numbers of jobs that stay whole."""

WHOLE = {
    RUNNING: (0, 480, 4, 480, 1),
    WIDE: (30, 60, 6, 60, 2),
    PASSING: (60, 100, 2, 120, 3),
    TOO_LONG: (300, 100, 2, 3600, 1),
}
"""Number -> when a job is released, how long it lasts, its processors, limit and user.

When the last one comes, the third has ended, so that two processors are idle until the first ends.
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """With the log and the organizations; a short path, for clusters are below it."""
    with tempfile.TemporaryDirectory(prefix="trial-") as made:
        path = Path(made)
        (path / "who.toml").write_text(ORGANIZATIONS)
        (path / "tmp").mkdir()
        released = [
            (release, SECONDS, width, -1, user)
            for user, (count, width, release) in enumerate(JOBS.values(), start=1)
            for _ in range(count)
        ]
        (path / "log.swf").write_text(lines_of(sorted(released)))
        (path / "whole.swf").write_text(lines_of(WHOLE.values()))
        yield path


def lines_of(jobs: Iterable[tuple[int, ...]]) -> str:
    return "".join(
        f"{number} {release} -1 {seconds} {width} -1 -1 -1 {limit} -1 1 {user}{' -1' * 6}\n"
        for number, (release, seconds, width, limit, user) in enumerate(jobs, start=1)
    )


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "shapleyprio", *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left_in(folder: Path) -> list[str]:
    """Files and processes of the trial."""
    return [*map(str, (folder / "tmp").iterdir()), *processes_mentioning(folder)]


@pytest.fixture
def report(private_slurm_programs: None, folder: Path) -> dict[str, Any]:
    """What the trial wrote, after which nothing of it is left."""
    ended = start(
        folder,
        *TRIAL,
        *(option for arm in DAEMONS for option in ("--arm", arm)),
        *("--window", "0:900", *SELDOM),
        *("--json", "-", "--jobs"),
    )
    output, errors = ended.communicate(timeout=500)
    assert ended.returncode == 0, errors
    assert left_in(folder) == []
    trial: dict[str, Any] = json.loads(output)
    return trial


@pytest.mark.timeout(600)
def test_who_is_owed_starts_first_and_every_job_has_a_record(report: dict[str, Any]) -> None:
    assert tuple(arm["arm"] for arm in report["arms"]) == DAEMONS
    for arm in report["arms"]:
        check(arm)


def check(arm: dict[str, Any]) -> None:
    assert (arm["missing"], arm["requeued"]) == (0, 0)
    assert len(arm["jobs"]) == sum(arm["states"].values()) == 60
    assert arm["written"] > 0
    assert set(arm["cycles"]) == {"ok"}
    starts: dict[str, list[int]] = {name: [] for name in JOBS}
    for job in arm["jobs"]:
        assert job["submitted"] >= job["release"]
        if job["start"] is not None:
            assert job["start"] >= job["submitted"]
            assert set(job["owners"]) < set(JOBS)
            assert sum(job["owners"].values()) == job["processors"] == 1
            assert job["processing_time"] >= SECONDS
            starts[job["organization"]].append(job["start"])
    owed = starts["lending"]
    assert len(owed) == JOBS["lending"][0]
    others = [*starts["flooding"], *starts["working"]]
    assert not [second for second in others if LATE <= second < max(owed)]
    assert min(others) < LATE < max(others)


@pytest.mark.timeout(300)
def test_whole_jobs_span_nodes_and_pass_only_where_nobody_is_delayed(
    private_slurm_programs: None, folder: Path
) -> None:
    ended = start(
        folder,
        *("trial", "whole.swf", "--organizations", "who.toml", "--window", "0:700", *SELDOM),
        *("--arm", "slurm-fairshare", "--arm", "shapleyprio-site-factor", "--json", "-", "--jobs"),
    )
    output, errors = ended.communicate(timeout=250)
    assert ended.returncode == 0, errors
    report = json.loads(output)
    assert report["wide"] == "rigid"
    for arm in report["arms"]:
        jobs = {job["job"]: job for job in arm["jobs"]}
        assert arm["started"] == len(jobs) == len(WHOLE)
        begin = {number: job["start"] for number, job in jobs.items()}
        assert begin[RUNNING] < begin[PASSING] < begin[WIDE] < begin[TOO_LONG]
        assert begin[PASSING] + jobs[PASSING]["processing_time"] < jobs[TOO_LONG]["submitted"]
        assert jobs[WIDE]["owners"] == dict.fromkeys(JOBS, 2)
        assert sum(jobs[RUNNING]["owners"].values()) == 4
        assert arm["out_of_turn"] == 0


def test_trials_of_a_list_run_once(private_slurm_programs: None, folder: Path) -> None:
    (folder / "list.toml").write_text(SHORT)
    first = start(folder, *TRIALS)
    table, errors = first.communicate(timeout=250)
    assert first.returncode == 0, errors
    assert left_in(folder) == []
    assert [line.split()[:2] for line in table.splitlines()[1:4]] == [
        ["short", "50"],
        ["mean", "50"],
        ["median", "50"],
    ]
    report = json.loads((folder / "results" / "short.2.json").read_text())
    assert report["arms"][0]["started"] > 0
    again = start(folder, *TRIALS)
    assert again.communicate(timeout=250) == (table, "")


def test_ctrl_c_leaves_nothing(private_slurm_programs: None, folder: Path) -> None:
    running = start(folder, *TRIAL, "--arm", "fifo", "--arm", "shapleyprio-nice")

    def two_arms_have_jobs() -> bool:
        assert running.poll() is None, running.communicate()[1]
        logs = (folder / "tmp").glob("*/*/log/slurmctld.log")
        return sum("sched: Allocate" in log.read_text(errors="replace") for log in logs) == 2

    wait_until(two_arms_have_jobs, real_seconds=200, what="jobs of both arms to run")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=200)
    assert running.returncode == 130
    assert left_in(folder) == []
