"""`shapleyprio pause` and `resume`, and who is told of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.daemon.consortium import FIRST

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine


def cycle(shell: CommandLine) -> str:
    result = shell.run("daemon", "--once")
    assert result.exit_code == 0
    return result.stderr


def test_everybody_is_told_who_paused_since_when_and_why(steered: CommandLine) -> None:
    result = steered.run("pause", "--reason", " an odd\nqueue ")
    assert (result.exit_code, result.stdout) == (
        0,
        "Paused: with the next cycle priorities are put back as they were found.\n",
    )
    assert "steering is paused" in cycle(steered)
    assert steered.slurm.job(2).site_factor == 0
    sentence = "Steering is paused since 2027-01-15 "
    for command in (("status",), ("explain", "2"), ("explain", "--user", "user")):
        result = steered.run(*command)
        assert result.exit_code == 0
        assert sentence in result.stdout
        assert ": an odd queue.\n" in result.stdout
        found = json.loads(steered.run(*command, "--json").stdout)["pause"]
        assert (found["since"], found["reason"]) == (steered.slurm.now, "an odd queue")
        assert (found["user"] != "", found["keep"]) == (True, False)


def test_a_reason_is_shown_as_it_was_given(steered: CommandLine) -> None:
    """It is no markup of terminals."""
    for reason in ("quota of [/scratch]", "[red]x[/] :smile:"):
        assert steered.run("pause", "--reason", reason).exit_code == 0
        cycle(steered)
        result = steered.run("status")
        assert result.exit_code == 0
        assert f": {reason}.\n" in result.stdout
        assert steered.run("resume").exit_code == 0


def test_after_it_priorities_are_written_again(steered: CommandLine) -> None:
    assert steered.run("pause", "--reason", "x").exit_code == 0
    cycle(steered)
    result = steered.run("resume")
    assert result.exit_code == 0
    assert result.stdout.startswith("The pause since 2027-01-15 ")
    cycle(steered)
    assert steered.slurm.job(2).site_factor == FIRST
    assert "paused" not in steered.run("status").stdout


def test_priorities_may_be_kept(steered: CommandLine) -> None:
    result = steered.run("pause", "--keep", "--reason", "x")
    assert "stay as they are" in result.stdout
    cycle(steered)
    assert steered.slurm.job(2).site_factor == FIRST
    assert "Jobs keep the points that they had then" in steered.run("status").stdout


def test_what_cannot_be_done_is_said_in_one_line(steered: CommandLine) -> None:
    result = steered.run("resume")
    assert (result.exit_code, result.stderr) == (2, "shapleyprio: nothing is paused\n")
    assert steered.run("pause", "--reason", "x").exit_code == 0
    result = steered.run("pause", "--reason", "y")
    assert result.exit_code == 2
    assert result.stderr.startswith("shapleyprio: already paused since ")
    for words in ((), ("--reason", " ")):
        assert steered.run("pause", *words).exit_code == 2
