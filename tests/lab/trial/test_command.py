"""`shapleyprio trial` up to the boot of the first arm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import main
from shapleyprio.config import load_config
from shapleyprio.lab.testbed import machine
from shapleyprio.lab.trial.arms import ARMS, Arm
from shapleyprio.lab.trial.plan import OwnNodes
from shapleyprio.lab.trial.running import ArmRun, Conditions
from shapleyprio.lab.trial.steering import Pace, configuration
from shapleyprio.slurm.channels import CHANNELS
from tests.replay.strategies import Job, workload_of_jobs

DEAL = ("--deal-users", "2")
LINE = "1 0 -1 10 1 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
WORKLOAD = workload_of_jobs([2, 0], [Job(0, 0, 10)], length=6000)


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(f"; MaxProcs: 3\n{LINE}")


def trial(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["trial", "log.swf", *arguments])


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("either --organizations FILE or --deal-users K", ""),
        ("go with --deal-users", "--organizations x.toml --processors 4"),
        ("is not one of 'slurm-fairshare'", "--deal-users 2 --arm fair"),
        ("named twice", "--deal-users 2 --arm fifo --arm fifo"),
        ("write for instance 30s or 5m", "--deal-users 2 --poll-interval soon"),
        ("write for instance 30s or 5m", "--deal-users 2 --poll-interval 0"),
        ("write for instance 0:50000", "--deal-users 2 --window 50000"),
        ("101 is not in the range", "--deal-users 2 --speed 101"),
        ("--jobs goes with --json", "--deal-users 2 --jobs"),
        (". is not empty; name a new directory", "--deal-users 2 --directory ."),
        ("there is no directory nowhere", "--deal-users 2 --json nowhere/a.json"),
        ("choose another --window", "--deal-users 2 --window 1000:10"),
    ],
)
def test_contradictions_are_usage_errors(message: str, arguments: str) -> None:
    ended = trial(*arguments.split())
    assert ended.exit_code == 2, ended.output
    assert ended.stdout == ""
    assert message in " ".join(ended.stderr.split())


def test_without_slurm_and_without_root_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PROGRAMS", ("no-such-slurm",))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ended = trial(*DEAL)
    assert ended.exit_code == 3
    assert ended.stderr.startswith("shapleyprio: this machine lacks no-such-slurm")


@pytest.mark.parametrize("module", ["numpy", "psutil"])
def test_missing_packages_are_named_in_one_line(module: str) -> None:
    program = f"""if True:
        import sys
        sys.modules["{module}"] = None
        from shapleyprio.cli import main
        main(["trial", "log.swf", "--deal-users", "2"])
    """
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == (
        "shapleyprio: trial needs more packages: install the package "
        "shapleyprio-replay, or pip install 'shapleyprio[trial]'\n"
    )


def test_the_help_names_every_arm() -> None:
    text = CliRunner().invoke(main, ["trial", "--help"]).output
    assert all(f"{name}  " in text for name in ARMS)


@pytest.mark.parametrize("channel", list(CHANNELS))
def test_the_daemons_configuration_is_valid(tmp_path: Path, channel: str) -> None:
    file = tmp_path / "shapleyprio.toml"
    pace = Pace(poll_seconds=45, new_jobs_seconds=None)
    arm = Arm(name="one", settings={}, channel=channel)
    text = configuration(
        OwnNodes(WORKLOAD), arm, cluster="trial", url="sqlite:////x", pace=pace, since=60, speed=60
    )
    file.write_text(text)
    config = load_config(file)
    assert [organization.name for organization in config.organizations] == ["o1", "o2"]
    assert [organization.nodes for organization in config.organizations] == [("n1",), ()]
    assert (config.push.channel, config.push.influence) == (channel, None)
    assert (config.service.poll_interval, config.slurm.timeout) == (45, 30 * 60)
    assert config.service.new_jobs_interval is None
    assert config.fairness.horizon is None
    assert config.fairness.since == 60
    assert (config.metrics.address, config.drift.interval) == (None, None)


@pytest.mark.parametrize("name", ARMS)
def test_only_the_named_policy_orders_organizations(name: str) -> None:
    settings = OwnNodes(WORKLOAD).spec(ARMS[name], speed=60).extra
    weights = {key: int(value) for key, value in settings.items() if "Weight" in key}
    age = weights.pop("PriorityWeightAge", 0)
    counting = {key.removeprefix("PriorityWeight") for key, weight in weights.items() if weight}
    assert counting == {"slurm-fairshare": {"Fairshare"}, "shapleyprio-qos": {"QOS"}}.get(
        name, set()
    )
    assert age < 100_000  # less than a step between organizations


def test_progress_shows_the_time_left() -> None:
    from shapleyprio.lab.cli.trial_progress import progress_text

    conditions = Conditions(plan=OwnNodes(WORKLOAD), speed=60, pace=Pace(30, 5))
    run = ArmRun(name="fifo", arm=ARMS["fifo"], conditions=conditions)
    assert progress_text(run) == "waiting"
    run.progress.doing, run.progress.second, run.progress.submitted = "running", 1500, 1
    run.progress.real_seconds = 30  # the clock was slower than it may be
    assert progress_text(run) == "1 of 1 jobs, 1:30 left"
