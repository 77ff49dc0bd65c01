"""`shapleyprio replay --report --png`."""

from __future__ import annotations

import shlex
import sys
from html import unescape
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.cli.options.reporting import report_options, report_parameters
from shapleyprio.cli.options.workloads import workload_options
from tests.reports.workloads import log_in

ARGUMENTS = ["replay", "small.swf", "--deal-users", "2", "--processors", "4", "--policy", "fcfs"]


@pytest.fixture(autouse=True)
def _beside_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log_in(tmp_path)


def typed(arguments: list[str]) -> str:
    """The command line that a report would show."""
    found: list[str] = []

    @click.command("replay")
    @workload_options
    @click.option("--policy", multiple=True)
    @report_options
    def command(**options: object) -> None:
        found.append(report_parameters(options).command)

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return found[0]


def test_the_page_and_the_pictures_are_written() -> None:
    result = CliRunner().invoke(main, [*ARGUMENTS, "--report", "r.html", "--png", "pictures"])
    assert result.exit_code == 0, result.output
    assert "fcfs" in result.stdout
    page = unescape(Path("r.html").read_text())
    command = shlex.join(["shapleyprio", *ARGUMENTS, "--report", "r.html", "--png", "pictures"])
    assert command in page
    assert Path("pictures", "waits-fcfs.png").exists()


def test_an_audit_has_a_page_and_pictures() -> None:
    arguments = ["audit", *ARGUMENTS[1:6], "--period", "20s", "--report", "a.html", "--png", "p"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    page = unescape(Path("a.html").read_text())
    assert "shapleyprio audit small.swf" in page
    assert "--period 20" in page
    assert Path("p", "alone-recorded.png").exists()


def test_an_experiment_has_a_page_whose_command_can_be_typed_again() -> None:
    arguments = [
        *("experiment", "small.swf", "--policy", "fcfs", "--windows", "2", "--length", "15"),
        *("--deal-users", "2,3", "--processors", "3", "--cores", "1", "--report", "e.html"),
    ]
    result = CliRunner().invoke(main, [*arguments, "--png", "p"])
    assert result.exit_code == 0, result.output
    page = unescape(Path("e.html").read_text())
    assert shlex.join(["shapleyprio", *arguments, "--png", "p"]) in page
    assert Path("p", "means-organizations-3.png").exists()


@pytest.mark.parametrize("name", ["audit", "experiment"])
def test_a_page_that_could_not_be_written_costs_no_computing(name: str) -> None:
    arguments = [name, "small.swf", "--deal-users", "2", "--report", "absent/r.html"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "there is no directory absent" in result.stderr


def test_what_was_typed_is_shown_as_it_can_be_typed_again() -> None:
    arguments = ["a log.swf", "--deal-users", "2", "--seed", "0", "--window", "0:50", "--strict"]
    policies = ["--policy", "ref", "--policy", "fcfs"]
    assert shlex.split(typed([*arguments, *policies])) == [
        *("shapleyprio", "replay", "a log.swf", "--deal-users", "2", "--seed", "0"),
        *("--window", "0:50", "--strict", *policies),
    ]


@pytest.mark.parametrize("typed_json", [["--json"], ["--json=out"], ["--json", "out.json"]])
def test_the_file_of_json_cannot_be_taken_for_another_word(typed_json: list[str]) -> None:
    Path("small.json").touch()
    result = CliRunner().invoke(main, [*ARGUMENTS, "--report", "r.html", *typed_json])
    assert result.exit_code == 0, result.output
    file = typed_json[-1].rpartition("=")[2]
    shown = "-" if file == "--json" else file
    assert f" --json={shown} " in unescape(Path("r.html").read_text())


def test_passwords_of_stores_are_not_shown() -> None:
    url = "postgresql://me:secret@host/db"
    assert "secret" not in typed([url, "--deal-users", "2"])
    in_query = "postgresql://me@host/db?passWord=secret&sslmode=require"
    assert "sslmode=require" in typed([in_query, "--deal-users", "2"])
    assert "secret" not in typed([in_query, "--deal-users", "2"])


def test_a_missing_directory_is_found_out_before_anything_is_computed() -> None:
    result = CliRunner().invoke(main, [*ARGUMENTS, "--report", "absent/r.html"])
    assert result.exit_code == 2
    assert "there is no directory absent" in result.stderr


def test_without_the_extra_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("shapleyprio.reports")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = CliRunner().invoke(main, [*ARGUMENTS, "--report", "r.html"])
    assert result.exit_code == 2
    assert "pip install 'shapleyprio[report]'" in result.stderr
    assert not Path("r.html").exists()
