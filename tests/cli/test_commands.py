"""Every command: what it prints, as a table and as JSON, and what it changes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from shapleyprio.cli import COMMANDS, main
from tests.service.consortium import FIRST, LAST, NAME, NOW

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine


def as_json(shell: CommandLine, *arguments: str) -> Any:
    result = shell.run(*arguments, "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


# -- help


@pytest.mark.parametrize("command", [*COMMANDS, "db upgrade", "db status"])
def test_every_command_has_help(command: str) -> None:
    for option in ("-h", "--help"):
        result = CliRunner().invoke(main, [*command.split(), option])
        assert result.exit_code == 0
        assert result.output.startswith(f"Usage: main {command} [OPTIONS]")


def test_the_help_names_every_command_and_exit_code() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name, line in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", result.output, re.MULTILINE)
    assert "2 bad configuration or usage" in result.output


def test_help_loads_no_command() -> None:
    script = (
        "import sys; from shapleyprio.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print('sqlalchemy' in sys.modules, 'rich' in sys.modules)"
    )
    told = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert told.splitlines()[-1] == "False False"


def test_version() -> None:
    result = CliRunner().invoke(main, ["-V"])
    assert re.fullmatch(r"shapleyprio, version \d\S+\n", result.output)


# -- daemon --once


def test_one_cycle(shell: CommandLine) -> None:
    result = shell.run("daemon", "--once")
    assert result.exit_code == 0
    assert "written=1" in result.stderr
    assert shell.slurm.job(2).site_factor == FIRST
    with shell.store() as store, store.reading(NAME) as view:
        assert view.lease() is None


def test_one_cycle_logs_json_if_so_configured(shell: CommandLine) -> None:
    shell.configure(service={"log_format": "json"})
    line = json.loads(shell.run("daemon", "--once").stderr)
    assert (line["event"], line["number"], line["written"]) == ("cycle", 1, 1)
    assert line["timestamp"].endswith("Z")


def test_a_dry_run_shows_what_would_be_written(shell: CommandLine) -> None:
    result = shell.run("daemon", "--once", "--dry-run")
    assert result.exit_code == 0
    assert shell.slurm.job(2).site_factor == 0
    row = next(line for line in result.stdout.splitlines() if "site_factor" in line)
    for cell in ("2", "physics", "0", str(FIRST), "planned", "place 1 of 2, balance 440"):
        assert cell in row


def test_a_dry_run_with_nothing_to_do(steered: CommandLine) -> None:
    assert steered.run("daemon", "--once", "--dry-run").stdout == "nothing to write\n"


# -- status


def test_status_shows_a_row_for_every_organization(steered: CommandLine) -> None:
    result = steered.run("status")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["physics", "66.7%", "440", "0", "440", "-4", "s", str(FIRST), "1", "0"] in rows
    assert ["biology", "33.3%", "220", "660", "-440", "+4", "s", str(LAST), "0", "1"] in rows
    assert "last cycle 1: ok, 2 records read, 1 priorities written" in result.stdout


def test_status_as_json(steered: CommandLine) -> None:
    told = as_json(steered, "status")
    assert (told["cluster"], told["t"], told["cycle"]) == (NAME, NOW + 10, 1)
    assert [row["organization"] for row in told["organizations"]] == ["physics", "biology"]
    assert told["organizations"][0].keys() == {
        *("organization", "share", "contribution", "utility", "balance"),
        *("drift_seconds", "priority", "pending", "running"),
    }


def test_status_shows_what_went_wrong_since(steered: CommandLine) -> None:
    steered.slurm.take_down("slurmctld")
    assert steered.run("daemon", "--once").exit_code == 3
    steered.slurm.bring_up("slurmctld")
    steered.slurm.take_down("slurmdbd")
    assert steered.run("daemon", "--once").exit_code == 3
    assert steered.run("status").exit_code == 0


# -- explain


def test_explain(steered: CommandLine) -> None:
    result = steered.run("explain", "2")
    assert result.exit_code == 0
    assert result.stdout.startswith("Job 2 of account physics waits with priority ")
    assert f"That is place 1 of 2 and gives its jobs {FIRST} points." in result.stdout


def test_explain_as_json(steered: CommandLine) -> None:
    told = as_json(steered, "explain", "2")
    assert (told["organization"], told["place"], told["points"]) == ("physics", 1, FIRST)
    assert told["pushes"] == [
        {"cycle": 1, "at": NOW + 10, "old": 0, "new": FIRST, "state": "applied"}
    ]


# -- history


def test_history_of_standings(steered: CommandLine) -> None:
    steered.slurm.wait(30)
    steered.run("daemon", "--once")
    rows = as_json(steered, "history")
    assert [(row["cycle"], row["organization"]) for row in rows] == [
        (2, "biology"),
        (2, "physics"),
        (1, "biology"),
        (1, "physics"),
    ]
    assert len(as_json(steered, "history", "--organization", "physics")) == 2
    assert len(as_json(steered, "history", "--limit", "1")) == 1
    assert "biology" in steered.run("history").stdout


def test_history_of_cycles(steered: CommandLine) -> None:
    (row,) = as_json(steered, "history", "--cycles")
    assert (row["number"], row["outcome"], row["written"]) == (1, "ok", 1)
    assert " ok " in steered.run("history", "--cycles").stdout


def test_history_of_writes(steered: CommandLine) -> None:
    (push,) = as_json(steered, "history", "--pushes")
    assert (push["target"], push["old"], push["new"]) == ("2", 0, FIRST)
    assert push["state"] == "applied"
    assert as_json(steered, "history", "--job", "2") == [push]
    assert as_json(steered, "history", "--job", "3") == []
    assert "applied" in steered.run("history", "--pushes").stdout
    assert steered.run("history", "--job", "3").stdout == "nothing to write\n"


# -- rollback


def test_rollback(steered: CommandLine) -> None:
    assert steered.slurm.job(2).site_factor == FIRST
    dry = steered.run("rollback", "--dry-run")
    assert dry.exit_code == 0
    assert str(FIRST) in dry.stdout
    assert steered.slurm.job(2).site_factor == FIRST
    result = steered.run("rollback")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 priorities put back, 0 put back unseen")
    assert steered.slurm.job(2).site_factor == 0
    with steered.store() as store, store.reading(NAME) as view:
        assert view.lease() is None


# -- db


def test_db_upgrade_makes_a_store_and_then_finds_it(shell: CommandLine) -> None:
    assert shell.run("db", "upgrade").stdout.startswith("upgraded the store from revision none to")
    result = shell.run("db", "upgrade")
    assert result.exit_code == 0
    assert re.fullmatch(r"the store is at revision \S+ already\n", result.stdout)


def test_db_status(steered: CommandLine) -> None:
    told = as_json(steered, "db", "status")
    assert told["revision"] == told["head"]
    assert told["clusters"] == [NAME]
    assert told["rows"]["cycle"] == 1
    result = steered.run("db", "status")
    assert f"clusters: {NAME}" in result.stdout
    assert re.search(r"cycle\W+1\b", result.stdout)


def test_db_status_of_a_store_that_is_not_there(shell: CommandLine) -> None:
    told = as_json(shell, "db", "status")
    assert told["revision"] is None
    assert (told["clusters"], told["rows"]) == ([], {})
    assert "run `shapleyprio db upgrade`" in shell.run("db", "status").stdout
