"""What the recipes of CONTRIBUTING.md add goes the whole way, in a checkout that has it.

`test_recipes.py` runs this in such a checkout.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

from shapleyprio.cli import check, main
from shapleyprio.replay.policies import RunOptions, run_policy
from shapleyprio.replay.policies.own import own_decisions
from tests.cli.conftest import CommandLine, shell_in
from tests.cli.test_replay import write_log
from tests.daemon.consortium import FIRST, LAST
from tests.replay.strategies import Job, workload_of_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE, CHANNEL = "fewest_running", "steep_nice"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Biology fills the cluster; job 2 is one of physics with a nice of 3, job 3 one of biology."""
    with shell_in(tmp_path, monkeypatch) as shell:
        shell.slurm.submit("biology", processing_time=9)
        shell.configure(fairness={"rule": RULE}, push={"channel": CHANNEL})
        monkeypatch.setattr(check, "connect", lambda *_: shell.slurm)
        yield shell


@pytest.fixture
def steered(shell: CommandLine) -> CommandLine:
    ran = shell.run("daemon", "--once")
    assert ran.exit_code == 0, ran.output
    return shell


def test_check_says_what_the_channel_demands(shell: CommandLine) -> None:
    shown = shell.run("check")
    assert "users may set the nice of their own jobs" in " ".join(shown.output.split())


def test_a_cycle_writes_what_the_rule_and_the_channel_come_to(steered: CommandLine) -> None:
    slurm = steered.slurm
    assert {job: slurm.job(job).nice for job in (2, 3)} == {2: 3 - 2 * FIRST, 3: -2 * LAST}
    assert slurm.job(2).priority - slurm.job(3).priority == 2 * (FIRST - LAST) - 3


def test_status_explain_and_history_show_both(steered: CommandLine) -> None:
    status = json.loads(steered.run("status", "--json").stdout)
    assert status["rule"] == RULE
    assert {row["organization"]: row["reason"] for row in status["organizations"]} == {
        "physics": "0 processors at work",
        "biology": "12 processors at work",
    }
    text = steered.run("explain", "3").stdout
    assert f"the rule {RULE} gave biology rank 2 of 2 (12 processors at work)" in text
    assert "An organization's rank falls as its jobs start, and rises as they end." in text
    assert "But in Slurm" not in text
    steered.slurm.set_nice(3, 7)
    text = steered.run("explain", "3").stdout
    assert f"But in Slurm its nice is 7 now, not {-2 * LAST}." in text
    written = json.loads(steered.run("history", "--pushes", "--json").stdout)
    assert {row["channel"] for row in written} == {CHANNEL}


def test_a_user_who_asks_for_another_nice_gets_the_points_again(steered: CommandLine) -> None:
    steered.slurm.set_nice(3, 7)
    assert steered.run("daemon", "--once").exit_code == 0
    assert steered.slurm.job(3).nice == 7 - 2 * LAST


def test_rollback_puts_back_what_was_there(steered: CommandLine) -> None:
    assert steered.run("rollback").exit_code == 0
    assert {job: steered.slurm.job(job).nice for job in (2, 3)} == {2: 3, 3: 0}


def test_another_channel_puts_back_what_was_there(steered: CommandLine) -> None:
    steered.configure(fairness={"rule": RULE}, push={"channel": "site_factor"})
    assert steered.run("daemon", "--once").exit_code == 0
    job = steered.slurm.job(2)
    assert (job.nice, job.site_factor) == (3, FIRST)


def test_a_replay_decides_as_the_rule_says() -> None:
    jobs = [Job(u, second, 3 + u) for second in range(6) for u in (0, 1) for _ in range(2)]
    workload = workload_of_jobs([2, 1], jobs, 30)
    rule = run_policy(workload, f"rule:{RULE}")
    expected = own_decisions(
        workload,
        "own",
        lambda situation: sorted(situation.waiting, key=lambda item: item.running),
        RunOptions(),
    )
    for column in ("job", "start", "owner", "copies"):
        np.testing.assert_array_equal(getattr(rule, column), getattr(expected, column))
    other = run_policy(workload, "directcontr")
    assert rule.start.tolist() != other.start.tolist() or rule.job.tolist() != other.job.tolist()


def test_the_command_replays_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_log()
    arguments = ["replay", "log.swf", "--deal-users", "2", "--policy", f"rule:{RULE}", "--json"]
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert f"rule:{RULE}" in {policy["policy"] for policy in found["policies"]}
