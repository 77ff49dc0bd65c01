"""What goes wrong ends a command with one line on standard error and its own exit code."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import main
from shapleyprio.cli.common import exit_code_of
from shapleyprio.daemon.client import DaemonError
from shapleyprio.slurm.port import SlurmUnavailableError
from tests.daemon.consortium import NAME
from tests.leases import another_steers, take_away

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine

STORED = ["status", "history", "explain 2"]
UNIT = Path(__file__).parents[2] / "systemd" / "shapleyprio.service"
LOGGED = re.compile(r" \[(info|error) *\] ")
CONFIGURED = ["daemon --once", *STORED, "rollback", "db upgrade", "db status", "check"]


def fails(result: Result, code: int, message: str) -> None:
    assert result.exit_code == code
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert all(line.startswith("shapleyprio: ") for line in lines if not LOGGED.search(line))
    assert message in lines[-1]


@pytest.mark.parametrize("command", CONFIGURED)
def test_2_no_configuration(shell: CommandLine, command: str) -> None:
    shell.file.unlink()
    fails(shell.run(*command.split()), 2, "no such file; `shapleyprio init --config")


@pytest.mark.parametrize("command", CONFIGURED)
def test_2_a_bad_configuration(shell: CommandLine, command: str) -> None:
    shell.configure(push={"channel": "telepathy"})
    fails(shell.run(*command.split()), 2, "push.channel: 'telepathy' is not")


def test_2_a_reload_of_a_bad_file(shell: CommandLine) -> None:
    reloads = [
        line.partition("=")[2]
        for line in UNIT.read_text(encoding="utf-8").splitlines()
        if line.startswith("ExecReload=")
    ]
    hang_up, check = reloads
    assert hang_up == "/bin/kill -HUP $MAINPID", "the daemon itself says what it refuses"
    program, *words = check.split()
    assert program == "shapleyprio"
    words[words.index("/etc/shapleyprio/shapleyprio.toml")] = str(shell.file)
    shell.slurm.take_down("slurmctld")
    assert shell.run(*words).exit_code == 0
    shell.configure(push={"channel": "telepathy"})
    fails(shell.run(*words), 2, "push.channel: 'telepathy' is not")


def test_2_another_cluster_is_configured(shell: CommandLine) -> None:
    shell.configure(slurm={"cluster": "c2"})
    for command in (["daemon", "--once"], ["rollback"]):
        fails(shell.run(*command), 2, "slurm.cluster: 'c2' is configured, but Slurm here is 'c1'")


def test_2_an_unknown_job(steered: CommandLine) -> None:
    fails(steered.run("explain", "99"), 2, "no job 99 is pending")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["status", "--nonsense"],
        ["explain"],
        ["history", "--limit", "0"],
        ["history", "--limit", "9" * 30],
        ["demo", "--simulated", "--hours", "nan"],
        [
            *("rehearse", "log", "--slurm-conf", "/dev/null", "--organizations", "/dev/null"),
            *("--days", "nan"),
        ],
        ["demo", "--simulated", "--svg", "/nonexistent/demo.svg"],
    ],
)
def test_2_bad_usage(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [("stauts", "status"), ("ownership sett", "set"), ("db updgrade", "upgrade")],
)
def test_2_a_misspelt_command_names_the_one_that_was_meant(arguments: str, meant: str) -> None:
    result = CliRunner().invoke(main, arguments.split())
    assert result.exit_code == 2
    name = arguments.split()[-1]
    assert f"No such command {name!r}; did you mean {meant!r}?" in result.stderr


@pytest.mark.parametrize("command", ["daemon --once", "explain 99", "rollback"])
def test_3_slurm_is_away(steered: CommandLine, command: str) -> None:
    steered.slurm.take_down("slurmctld")
    fails(steered.run(*command.split()), 3, "slurmctld does not answer")


def test_3_slurm_refuses(shell: CommandLine) -> None:
    shell.slurm.missing_privileges = {"site_factor": "AdminLevel"}
    fails(shell.run("daemon", "--once"), 3, "AdminLevel")


@pytest.mark.parametrize("command", [*STORED, "rollback"])
def test_4_there_is_no_store(shell: CommandLine, command: str) -> None:
    fails(shell.run(*command.split()), 4, "there is no such file; run `shapleyprio db upgrade`")


@pytest.mark.parametrize("command", STORED)
def test_4_the_store_is_empty(shell: CommandLine, command: str) -> None:
    shell.run("db", "upgrade")
    fails(shell.run(*command.split()), 4, "`shapleyprio daemon --once` makes a first cycle")


def test_4_a_store_without_tables(shell: CommandLine) -> None:
    sqlite3.connect(shell.url.removeprefix("sqlite:///")).execute("VACUUM").connection.close()
    fails(shell.run("status"), 4, "run `shapleyprio db upgrade`")


@pytest.mark.parametrize(
    "command", ["daemon --once", *STORED, "rollback", "db upgrade", "db status"]
)
def test_4_a_newer_release_wrote_the_store(steered: CommandLine, command: str) -> None:
    with sqlite3.connect(steered.url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    fails(steered.run(*command.split()), 4, "a newer release wrote it")


@pytest.mark.parametrize(
    "command", ["daemon --once", *STORED, "rollback", "db upgrade", "db status"]
)
def test_4_a_test_version_wrote_the_store(steered: CommandLine, command: str) -> None:
    with sqlite3.connect(steered.url.removeprefix("sqlite:///")) as connection:
        connection.execute("ALTER TABLE run DROP COLUMN counted")
    connection.close()
    fails(steered.run(*command.split()), 4, "give the store an empty database")


def test_4_several_clusters_and_none_is_named(steered: CommandLine) -> None:
    with steered.store() as store, store.cluster("c0").transaction() as transaction:
        take_away(transaction)
    for command in STORED:
        fails(steered.run(*command.split()), 4, "the store holds c0, c1; name one of them")
    steered.configure(slurm={"cluster": NAME})
    assert steered.run("status").exit_code == 0


def test_4_no_cycle_has_succeeded(shell: CommandLine) -> None:
    shell.slurm.take_down("slurmdbd")
    shell.run("daemon", "--once")
    assert shell.run("status").exit_code == 4


def test_5_the_clock_goes_back(steered: CommandLine) -> None:
    steered.slurm.skew = -1000
    fails(steered.run("daemon", "--once"), 5, "is 1000 s behind the last cycle")


@pytest.mark.parametrize("command", ["daemon --once", "rollback"])
def test_6_another_process_steers_the_cluster(steered: CommandLine, command: str) -> None:
    steered.slurm.writes.clear()
    with steered.store() as store, another_steers(store.cluster(NAME)):
        result = steered.run(*command.split())
    fails(result, 6, "steers cluster c1; stop it first")
    assert ("--standby" in result.stderr) == command.startswith("daemon")
    assert steered.slurm.writes == []


def test_a_defect_is_not_hidden(shell: CommandLine) -> None:
    shell.slurm.layout_changes = {"no such attribute": 1}
    result = shell.run("daemon", "--once")
    assert result.exit_code == 1
    assert isinstance(result.exception, TypeError)


def test_kinds_of_known_errors_have_their_code() -> None:
    assert exit_code_of(SlurmUnavailableError("away")) == 3
    assert exit_code_of(DaemonError("refused", 4)) == 4
    assert exit_code_of(MemoryError()) == 2
    assert exit_code_of(ValueError("a defect")) is None
