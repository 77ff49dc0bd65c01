"""Some minutes of a small site on a real Slurm, under today's configuration and with the daemon.

All nodes are busy with jobs of physics, and from minute 8 on one is freed every two minutes. Jobs
of physics and of biology, which lent its node, wait; under today's weights QOS decides.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.lab.rehearsal.site_files import HEADER, WEIGHTS, write_site
from tests.processes import processes_mentioning

pytestmark = pytest.mark.real_slurm

BEGIN = 1767261600
GPU = ",gres/gpu=1"
ASKED = "billing=4,cpu=4,mem=40G,node=1"
MINUTE = 60


def line(number: int, who: str, qos: str, submit: int, start: int, seconds: int, wide: int) -> str:
    """A line of sacct; seconds count from the window's begin."""
    moments = (datetime.fromtimestamp(BEGIN + t, UTC).strftime("%FT%T") for t in (submit, start))
    return (
        f"{number}|{who}|long|{qos}|{'|'.join(moments)}|{seconds}|{wide}|COMPLETED|00:20:00|"
        f"{'fast' if number == 3 else ''}|{ASKED}"
    )


QOS = "Name|Priority|Preempt|MaxTRESPA\nnormal|0||\nlow|10||cpu=8\nhigh|1000||\n"
"""Nothing is limited or preempted, so that only the order counts."""

JOBS = (
    *(line(n, "physics|ann", "low", -3600, -600, 960 + 120 * n, 4) for n in range(1, 5)),
    *(line(n, "physics|ben", "low", 5 * MINUTE, 25 * MINUTE, 600, 4) for n in range(11, 15)),
    *(line(n, "physics|ben", "high", 6 * MINUTE, 15 * MINUTE, 600, 4) for n in range(21, 23)),
    # 60 GB for each of 8 processors are more than the site has today
    line(41, "physics|ben", "low", 8 * MINUTE, 9 * MINUTE, 60, 8).replace("40G", "480G"),
    *(line(n, "biology|eve", "low", 7 * MINUTE, 12 * MINUTE, 600, 4) + GPU for n in range(31, 33)),
)


@pytest.fixture
def site() -> Iterator[Path]:
    """A short path, for clusters are below it."""
    with tempfile.TemporaryDirectory(prefix="reh-") as made:
        folder = Path(made)
        write_site(folder)
        (folder / "qos").write_text(QOS)
        (folder / "weights.conf").write_text(WEIGHTS.replace("qos=2000", "qos=200000"))
        (folder / "tmp").mkdir()
        (folder / "jobs.sacct").write_text(
            "\n".join((f"{HEADER}|Constraints|ReqTRES", *JOBS)) + "\n"
        )
        yield folder


def rehearse(folder: Path) -> subprocess.CompletedProcess[str]:
    files = [f"--{name}={file}" for name, file in (("slurm-conf", "slurm.conf"), ("qos", "qos"))]
    return subprocess.run(
        [
            *(sys.executable, "-m", "shapleyprio", "rehearse", "jobs.sacct", *files),
            *("--associations=dump", "--organizations=who.toml", "--keep=kept", "--speed=50"),
            *("--from=2026-01-01T10:02:00", "--days=0.0125", "--warm-up=2m", "--side-by-side=2"),
            *("--arm=today", "--arm=directcontr", "--json=answer.json", "--waits=waits.csv"),
        ],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(900)
def test_todays_weights_and_the_daemon_order_the_same_jobs_each_its_way(
    private_slurm_programs: None, site: Path
) -> None:
    done = rehearse(site)
    assert done.returncode == 5, done.stderr  # one job was refused
    assert "not taken over: TopologyPlugin: jobs on several nodes may span more" in done.stderr
    assert [*(site / "tmp").iterdir(), *processes_mentioning(site)] == []
    answer = json.loads((site / "answer.json").read_text())
    assert [run["run"] for run in answer["runs"]] == ["recorded", "today", "directcontr"]
    assert answer["jobs"] == 9
    for run in answer["runs"][1:]:
        none, refused = (fault for fault in run["faults"] if "too fast" not in fault)
        assert none.endswith(": 1 jobs have no record")
        assert ": Slurm refused 1 jobs: " in refused
        assert run["delays"]["prompt"] == 0
    with (site / "waits.csv").open() as file:
        rows = list(csv.DictReader(file))
    waits = {
        run: {int(row["job"]): int(row[f"wait {run}"]) for row in rows}
        for run in ("recorded", "today", "directcontr")
    }
    assert waits["recorded"][21] == 9 * MINUTE
    today, steered = waits["today"], waits["directcontr"]
    # high has 1,000 points, which outweigh all fair share, and low has 10
    high = starts(today, 21, 22)
    assert max(high) < min(starts(today, 11, 12, 13, 14, 31, 32))
    # the account of biology may have 6 processors at a time
    first, second = sorted(starts(today, 31, 32))
    assert second >= min(first + 10 * MINUTE, 20 * MINUTE)  # when the window ends
    # biology has lent a node to physics since the beginning
    assert min(starts(steered, 31, 32)) < min(starts(steered, 11, 12, 13, 14, 21, 22))
    assert json.loads((site / "kept" / "today.json").read_text())["records"]

    again = rehearse(site)
    assert again.returncode == 5
    assert "kept: directcontr, today" in again.stderr
    assert json.loads((site / "answer.json").read_text()) == answer


def starts(waits: dict[int, int], *jobs: int) -> list[int]:
    """When jobs started; the first digit of each says when it was released."""
    released = {1: 5, 2: 6, 3: 7}
    return [waits[job] + released[job // 10] * MINUTE for job in jobs]
