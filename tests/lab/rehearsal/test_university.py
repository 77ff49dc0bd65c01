"""An hour and a half of a university's cluster on a real Slurm, under its own configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.replay.traces import trace

pytestmark = pytest.mark.real_slurm

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
JOBS = 60
"""Released in that time."""

TOO_FAST = "today: the clock was too fast for this machine"


@pytest.mark.timeout(900)
def test_the_jobs_of_a_morning_pass_through_its_78_nodes(private_slurm_programs: None) -> None:
    log = trace("usc-jobs.sacct.xz")
    with tempfile.TemporaryDirectory(prefix="usc-") as made:
        folder = Path(made)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "shapleyprio", "rehearse", str(log), "--arm=today"),
                f"--slurm-conf={EXAMPLES / 'usc.slurm.conf'}",
                f"--organizations={EXAMPLES / 'usc.toml'}",
                *("--from=2025-05-07T06:00:00", "--days=0.0625", "--warm-up=10m", "--speed=80"),
                f"--json={folder / 'answer.json'}",
            ],
            env={**os.environ, "TMPDIR": made},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, 5}, done.stderr
        answer = json.loads((folder / "answer.json").read_text())
    _, today = answer["runs"]
    assert [fault for fault in today["faults"] if fault != TOO_FAST] == []
    late = max(today["delays"][name] for name in ("submission", "start", "length"))
    assert (late <= 15) == (done.returncode == 0)  # else the machine has more to do than this
    assert answer["jobs"] == JOBS
