from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.config import load_config
from shapleyprio.config.values import Address
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.lab.demo import collector
from shapleyprio.lab.demo.collector import collecting, reserved
from shapleyprio.lab.demo.consortium import CLUSTER, MEMBERS, write_configuration
from shapleyprio.lab.demo.screen import DemoResult, conclusion
from shapleyprio.lab.testbed import machine
from shapleyprio.lab.testbed.processes import wait_until
from shapleyprio.store import Store
from tests.processes import processes_mentioning

if TYPE_CHECKING:
    from click.testing import Result as Ended

FLOODING, STEADY, LENDING = (member.name for member in MEMBERS)


def demo(*arguments: str) -> Ended:
    return CliRunner().invoke(main, ["demo", *arguments], catch_exceptions=False)


def waits(output: str) -> dict[str, float]:
    """Mean wait in minutes by organization, from the summary table."""
    summary = output[output.index("mean wait") :]
    rows = re.findall(r"^(\w+) +\d+ +\d+ +([\d.]+) min", summary, re.MULTILINE)
    return {name: float(wait) for name, wait in rows}


def result(name: str, balance_per_part: float, wait: float) -> DemoResult:
    return DemoResult(
        name=name,
        submitted=10,
        started=9,
        wait=wait,
        wait_without=1800,
        earned=1.0,
        got=0.0,
        balance_per_part=balance_per_part,
    )


def test_who_lends_waits_less_than_who_floods() -> None:
    ended = demo("--simulated", "--hours", "1")
    assert ended.exit_code == 0, ended.output
    waited = waits(ended.output)
    assert waited[LENDING] < 5 < waited[FLOODING]
    assert waited[LENDING] < waited[STEADY]
    assert f"{LENDING} is owed most" in " ".join(ended.output.split())
    assert re.search(r"rollback: [1-9]\d* priorities put back", ended.output)


def test_the_configuration_of_the_demo_is_valid(tmp_path: Path) -> None:
    config = load_config(write_configuration(tmp_path, speed=60))
    assert [o.name for o in config.organizations] == [FLOODING, STEADY, LENDING]
    assert config.slurm.timeout == 1800
    assert (config.metrics.address, config.drift.interval) == (None, None)
    assert config.service.new_jobs_interval == 300


def test_those_who_watch_see_the_drift_too(tmp_path: Path) -> None:
    config = load_config(write_configuration(tmp_path, speed=60, address="127.0.0.1:9817"))
    assert (config.metrics.address, config.drift.interval) == (Address("127.0.0.1", 9817), 300)


def test_there_is_nothing_to_watch_without_a_real_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = demo("--simulated", "--watch")
    assert refused.exit_code == 2
    assert "drop --simulated" in refused.output
    monkeypatch.setattr(machine, "PROGRAMS", ("no-such-slurm",))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    lacking = demo("--watch")
    assert lacking.exit_code == 1
    assert "no-such-slurm" in lacking.output
    assert "there is no daemon to watch" in " ".join(lacking.output.split())


def test_without_prometheus_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(collector, "SEARCH_PATH", str(tmp_path))
    with reserved() as addresses, collecting(addresses, directory=tmp_path) as lines:
        said = "\n".join(lines)
    assert f"status page: http://{addresses.daemon}/" in said
    assert "Prometheus: not installed" in said


def test_who_does_not_watch_gets_no_prometheus(tmp_path: Path) -> None:
    with collecting(None, directory=tmp_path) as lines:
        assert lines == []
    assert list(tmp_path.iterdir()) == []


def test_a_directory_and_a_picture_of_the_last_screen_are_kept(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    kept = ("--directory", str(tmp_path / "kept"), "--svg", str(picture))
    ended = demo("--simulated", "--hours", "0.2", *kept)
    assert ended.exit_code == 0, ended.output
    assert "rollback" in picture.read_text()
    config = load_config(tmp_path / "kept" / "shapleyprio.toml")
    with Store.open(config.store.url) as store:
        assert read_status(store.cluster(CLUSTER)).cycle.outcome == "ok"
    again = demo("--simulated", "--directory", str(tmp_path / "kept"))
    assert again.exit_code == 2
    assert "is not empty" in again.output
    (tmp_path / "file").touch()
    below_a_file = demo("--simulated", "--directory", str(tmp_path / "file" / "kept"))
    assert below_a_file.exit_code == 2
    assert "cannot be created (Not a directory); name another" in below_a_file.output


def test_a_picture_that_cannot_be_written_is_one_line() -> None:
    ended = demo("--simulated", "--hours", "0.2", "--svg", "/proc/demo.svg")
    assert ended.exit_code == 2
    line = ended.stderr.removesuffix("\n")
    assert line.startswith("shapleyprio: /proc/demo.svg: cannot be written (")
    assert "\n" not in line


def test_without_slurm_and_without_root_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PROGRAMS", ("no-such-slurm",))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ended = demo("--hours", "0.2")
    assert ended.exit_code == 0, ended.output
    said = " ".join(ended.output.split())
    assert said.startswith("this machine lacks no-such-slurm")
    assert "so the same cycles run against a simulated Slurm" in said


def test_without_psutil_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("demo.real", "testbed.cluster", "testbed.processes", "testbed.steering"):
        monkeypatch.delitem(sys.modules, f"shapleyprio.lab.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "psutil", None)
    ended = demo("--hours", "0.2")
    assert ended.exit_code == 0, ended.output
    assert "pip install 'shapleyprio[demo]'" in ended.output


def test_the_conclusion_follows_the_numbers() -> None:
    said = conclusion([result("a", -5400, 900), result("b", 5400, 60)])
    assert said.startswith("b is owed most (balance +1.5 h, measured by what it earned)")
    assert "and came first: its jobs waited 1.0 min on average, against 15.0 min for a" in said
    assert "they would have waited 30.0 min" in said
    assert "no organization" in conclusion([result("a", 0, 0), result("b", 0, 0)])


@pytest.mark.real_slurm
def test_the_whole_demo_on_a_real_slurm(private_slurm_programs: None, tmp_path: Path) -> None:
    ended = subprocess.run(
        [*DEMO, "--hours", "0.25", "--directory", str(tmp_path / "d")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "slurm-wlm" in ended.stdout
    waited = waits(ended.stdout)
    assert waited[LENDING] < waited[FLOODING]
    assert processes_mentioning(tmp_path) == []


@pytest.mark.real_slurm
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_stop_everything(
    private_slurm_programs: None, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    running = subprocess.Popen(
        [*DEMO, "--directory", str(tmp_path / "d")], stdout=subprocess.PIPE, text=True
    )
    daemon_log = tmp_path / "d" / "daemon.log"
    wait_until(
        lambda: daemon_log.exists() and daemon_log.stat().st_size > 0,
        real_seconds=200,
        what="the daemon's first line",
    )
    running.send_signal(number)
    output, _ = running.communicate(timeout=200)
    assert running.returncode == code
    assert "everything is stopped, no process is left" in output
    assert processes_mentioning(tmp_path) == []


DEMO = [sys.executable, "-m", "shapleyprio", "demo"]
