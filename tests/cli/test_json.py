"""`--json [FILE]` in all commands: where the results go, and which word is the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import COMMANDS, main
from shapleyprio.cli.options.json_output import OPTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import CommandLine

LOG = "; MaxProcs: 2\n1 0 0 5 1 -1 -1 1 -1 -1 1 7 1 -1 1 -1 -1 -1\n"
REPLAY = ("replay", "log.swf", "--deal-users", "1", "--policy", "fcfs")


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {below}", command.commands[below]) for below in command.commands)
        elif command is not None:
            yield name, command


@pytest.fixture
def _beside_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(LOG)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def parsed(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_all_commands_that_show_results_have_the_same_option() -> None:
    # they show what they do, no results, or write them into files of their own
    without = {
        *(
            "demo",
            "export",
            "first",
            "init",
            "db accept-clock",
            "db upgrade",
            "pause",
            "report",
            "resume",
        ),
    }
    declared = []
    for name, command in commands():
        found = [option.to_info_dict() for option in command.params if OPTION in option.opts]
        assert len(found) == (name not in without), name
        declared += found
    assert all(option == declared[0] for option in declared)


@pytest.mark.usefixtures("_beside_a_log")
@pytest.mark.parametrize("words", [["--json"], ["--json", "-"], ["--json=-"]])
def test_without_a_file_json_is_all_of_standard_output(words: list[str]) -> None:
    assert parsed(run(*REPLAY, *words))["policies"]


@pytest.mark.usefixtures("_beside_a_log")
@pytest.mark.parametrize("words", [["--json", "out.json"], ["--json=out"], ["--json", "out"]])
def test_with_a_file_the_tables_are_shown_as_well(words: list[str]) -> None:
    result = run(*REPLAY, *words)
    assert result.exit_code == 0, result.output
    assert "fcfs" in result.stdout
    (file,) = set(Path().iterdir()) - {Path("log.swf")}
    assert json.loads(file.read_text())["policies"]


@pytest.mark.usefixtures("_beside_a_log")
@pytest.mark.parametrize("option", [["--json"], ["--json", "-"], ["--json=-"], ["--json", "--"]])
def test_a_log_behind_the_option_is_the_log(option: list[str]) -> None:
    result = run("replay", "--deal-users", "1", "--policy", "fcfs", *option, "log.swf")
    assert parsed(result)["policies"]
    assert Path("log.swf").read_text() == LOG


@pytest.mark.usefixtures("_beside_a_log")
def test_a_file_in_front_of_the_log_ends_in_json() -> None:
    result = run("replay", "--deal-users", "1", "--policy", "fcfs", "--json", "o.json", "log.swf")
    assert result.exit_code == 0, result.output
    assert json.loads(Path("o.json").read_text())["policies"]


@pytest.mark.usefixtures("_beside_a_log")
@pytest.mark.parametrize(
    "words",
    [
        ["replay", "--deal-users", "1", "log.swf", "--json=log.swf"],
        ["audit", "--deal-users", "1", "log.swf", "--json=log.swf"],
        ["experiment", "log.swf", "--json=log.swf"],
    ],
)
def test_no_log_is_overwritten(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert "--json name the same file" in " ".join(result.stderr.split())
    assert Path("log.swf").read_text() == LOG


@pytest.mark.usefixtures("_beside_a_log")
@pytest.mark.parametrize("command", ["replay", "audit"])
@pytest.mark.parametrize("option", ["--organizations", "--nodes", "--accounts"])
def test_nothing_that_is_read_is_overwritten(command: str, option: str) -> None:
    Path("given").write_text("[[organization]]\n")
    given = [f"{option}=given"] + ([] if option == "--organizations" else ["--organizations=o"])
    Path("o").write_text("[[organization]]\n")
    result = run(command, "log.swf", *given, "--json=given")
    assert result.exit_code == 2
    assert f"{option} and --json name the same file" in " ".join(result.stderr.split())
    Path("link.swf").symlink_to("log.swf")
    result = run(command, "--deal-users", "1", "link.swf", "--json=log.swf")
    assert result.exit_code == 2
    assert Path("log.swf").read_text() == LOG


@pytest.mark.usefixtures("_beside_a_log")
@pytest.mark.parametrize("command", ["replay", "audit"])
def test_what_is_there_behind_a_log_is_another_log(command: str) -> None:
    result = run(command, "--deal-users", "1", "log.swf", "--json", "log.swf")
    assert json.loads(result.stdout)["policies"]
    assert Path("log.swf").read_text() == LOG


@pytest.mark.usefixtures("_beside_a_log")
def test_of_several_logs_none_is_taken_for_the_file() -> None:
    Path("other.swf").write_text(LOG)
    result = run("experiment", "--json", "log.swf", "other.swf", "--windows", "0")
    assert "Invalid value for '--windows'" in result.stderr
    assert Path("log.swf").read_text() == LOG


def test_a_name_of_a_shipped_file_is_not_taken_for_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(parsed(run("files", "--json", "slurm_conf"))) > 1
    names = [row["name"] for row in parsed(run("files", "--json"))]
    dashboard = next(name for name in names if name.endswith(".json"))
    result = run("files", "--json", dashboard)
    assert result.exit_code == 2
    assert f"{dashboard} is a NAME" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_command_without_arguments_takes_any_word_as_the_file(steered: CommandLine) -> None:
    file = steered.folder / "standings"
    shown = steered.run("status", "--json", str(file))
    assert shown.exit_code == 0, shown.output
    ages = r"\d+ s ago"
    assert re.sub(ages, "", shown.stdout) == re.sub(ages, "", steered.run("status").stdout)
    later = parsed(steered.run("status", "--json"))
    assert json.loads(file.read_text()) | {"age": later["age"]} == later


def test_the_database_has_it_too(steered: CommandLine) -> None:
    file = steered.folder / "sizes.json"
    assert "revision" in steered.run("db", "status", "--json", str(file)).stdout
    assert json.loads(file.read_text()) == parsed(steered.run("db", "status", "--json"))


def test_a_job_behind_the_option_is_the_job(steered: CommandLine) -> None:
    assert parsed(steered.run("explain", "--json", "2"))["job"]["label"] == "2"
    file = steered.folder / "why"
    assert steered.run("explain", "2", "--json", str(file)).exit_code == 0
    assert json.loads(file.read_text())["job"]["label"] == "2"


def test_what_a_rollback_did_is_there_for_machines(steered: CommandLine) -> None:
    (planned,) = parsed(steered.run("rollback", "--dry-run", "--json"))
    assert planned["target"] == "2"
    assert parsed(steered.run("rollback", "--json"))["applied"] == 1


def test_a_file_that_cannot_be_written_is_named_in_one_line(steered: CommandLine) -> None:
    result = steered.run("status", "--json", "/nowhere/s.json")
    assert result.exit_code == 2
    assert result.stderr == (
        "shapleyprio: /nowhere/s.json: cannot be written (No such file or directory); "
        "name another file\n"
    )
