"""Every command: what it prints, as a table and as JSON, and what it changes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from shapleyprio.cli import COMMANDS, main
from shapleyprio.cli.common import user
from shapleyprio.common.wording import MISSING, clock_time
from shapleyprio.store import LATER, CycleRow, Store
from tests.daemon.consortium import FIRST, LAST, NAME, NOW
from tests.daemon.forecasting.examples import forecast
from tests.leases import nobody_steers
from tests.store.examples import work_after_end

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine


def as_json(shell: CommandLine, *arguments: str) -> Any:
    result = shell.run(*arguments, "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


# -- help


@pytest.mark.parametrize("command", [*COMMANDS, "db upgrade", "db status", "db accept-clock"])
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
    answer = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert answer.splitlines()[-1] == "False False"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("shapleyprio sta", "plain,status\n"),
        ("shapleyprio db up", "plain,upgrade\n"),
        ("shapleyprio stauts --", "plain,--version\nplain,--help\n"),
        ("shapleyprio db stauts --", "plain,--help\n"),
        ("shapleyprio bench sl", "\n"),
    ],
)
def test_a_shell_completes_words_behind_a_command_that_there_is_not(
    monkeypatch: pytest.MonkeyPatch, words: str, offered: str
) -> None:
    monkeypatch.setattr("shapleyprio.cli.find_spec", lambda _: None)  # without the laboratory
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = CliRunner().invoke(
        main, prog_name="shapleyprio", env={**asked, "_SHAPLEYPRIO_COMPLETE": "bash_complete"}
    )
    assert (result.exit_code, result.output) == (0, offered)


def test_version() -> None:
    result = CliRunner().invoke(main, ["-V"])
    assert re.fullmatch(r"shapleyprio, version \d\S+\n", result.output)


# -- daemon --once


def test_one_cycle(shell: CommandLine) -> None:
    result = shell.run("daemon", "--once")
    assert result.exit_code == 0
    assert "written=1" in result.stderr
    assert re.search("records_read=[0-9]+ runs_new_or_changed=[0-9]+ ", result.stderr)
    assert shell.slurm.job(2).site_factor == FIRST
    with shell.store() as store:
        assert nobody_steers(store.cluster(NAME))


def test_one_cycle_logs_json_if_so_configured(shell: CommandLine) -> None:
    shell.configure(service={"log_format": "json"})
    lines = map(json.loads, shell.run("daemon", "--once").stderr.splitlines())
    opening, slurm, line, pruned = lines
    events = [other["event"] for other in (opening, slurm, pruned)]
    assert events == ["a new ledger is open", "Slurm", "pruned"]
    assert (line["event"], line["number"], line["written"]) == ("cycle", 1, 1)
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_what_libraries_log_is_written_as_the_daemons_own_lines(
    shell: CommandLine, log_format: str
) -> None:
    shell.configure(service={"log_format": log_format})
    program = (
        "import logging, sys, time\n"
        "from apscheduler.schedulers.background import BackgroundScheduler\n"
        "from shapleyprio.cli.logs import set_up_logging\n"
        "from shapleyprio.config import load_config\n"
        "from pathlib import Path\n"
        "set_up_logging(load_config(Path(sys.argv[1])))\n"
        "scheduler = BackgroundScheduler()\n"
        "scheduler.start()\n"
        "scheduler.add_job(lambda: time.sleep(0.5), 'interval', seconds=0.1, max_instances=1)\n"
        "time.sleep(0.5)\n"
        "scheduler.shutdown()\n"
        "logging.getLogger('urllib3').warning('slow %s', 'answer\\x1b')\n"
    )
    words = [sys.executable, "-c", program, str(shell.file)]
    (line,) = subprocess.run(words, check=True, capture_output=True, text=True).stderr.splitlines()
    if log_format == "json":
        entry = json.loads(line)
        assert (entry["event"], entry["level"]) == ("slow answer\\x1b", "warning")
        assert entry["timestamp"].endswith("Z")
    else:
        assert re.fullmatch(r"\S+Z \[warning *\] slow answer\\x1b *", line)


def test_the_first_cycle_says_once_what_counts_from_when_and_who_holds_what(
    shell: CommandLine,
) -> None:
    opening = next(
        line for line in shell.run("daemon", "--once").stderr.splitlines() if "new ledger" in line
    )
    horizon = 30 * 86_400
    counting_from = datetime.fromtimestamp(NOW + 10 - horizon, UTC).isoformat()
    assert f"counting_from={counting_from}" in opening
    assert "accounts='physics 1, biology 1, nobody 1'" in opening
    assert "nodes='physics 2, biology 1, nobody 0'" in opening
    assert "to_correct='shapleyprio ownership recount --since DATE'" in opening
    assert "new ledger" not in shell.run("daemon", "--once").stderr


# -- status


def test_status_shows_a_row_for_every_organization(steered: CommandLine) -> None:
    result = steered.run("status")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    owed, owes = ("+3.67", "s", MISSING), ("−3.67", "s", MISSING)
    assert ["physics", "66.7%", "66.7%", "0.0%", *owed, str(FIRST), "1", "0"] in rows
    assert ["biology", "33.3%", "33.3%", "100.0%", *owes, str(LAST), "0", "1"] in rows
    assert "Late or ahead: not known, since no window has been replayed yet." in result.stdout
    begin = clock_time(NOW + 10)
    assert f"The rule directcontr has steered since {begin}, by the channel" in result.stdout
    assert re.search(
        r"No daemon has run since [-0-9: ]+ \([0-9]+ s ago\)\.\n"
        r"last cycle 1: ok, [0-9]+ s ago, 1 records read, 1 priorities written\n",
        result.stdout,
    )


def test_status_as_json(steered: CommandLine) -> None:
    answer = as_json(steered, "status")
    assert (answer["cluster"], answer["t"], answer["cycle"]) == (NAME, NOW + 10, 1)
    assert [row["organization"] for row in answer["organizations"]] == ["physics", "biology"]
    assert answer["organizations"][0].keys() == {
        *("organization", "share", "contribution", "utility", "balance"),
        *("contribution_share", "utility_share"),
        *("balance_per_part", "score", "reason", "priority", "pending", "running", "value"),
        *("waiting_work", "drift_seconds", "parent"),
    }


def test_status_shows_what_went_wrong_since(steered: CommandLine) -> None:
    steered.slurm.take_down("slurmdbd")
    assert steered.run("daemon", "--once").exit_code == 3
    steered.slurm.take_down("slurmdbd")
    assert steered.run("daemon", "--once").exit_code == 3
    assert steered.run("status").exit_code == 0


# -- explain


def test_explain(steered: CommandLine) -> None:
    result = steered.run("explain", "2")
    assert result.exit_code == 0
    assert result.stdout.startswith("Job 2 of account physics waits with priority ")
    assert f"That is rank 1 of 2 and gives its jobs {FIRST} points." in result.stdout


def test_explain_as_json(steered: CommandLine) -> None:
    answer = as_json(steered, "explain", "2")
    assert (answer["organization"], answer["rank"], answer["points"]) == ("physics", 1, FIRST)
    assert answer["pushes"] == [
        {"cycle": 1, "at": NOW + 10, "channel": "site_factor", "target": "2"}
        | {"old": 0, "new": FIRST, "state": "applied"}
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


@pytest.mark.parametrize("more", [(), ("--drift",), ("--forecasts",)])
def test_history_of_an_organization_that_never_was_is_refused(
    steered: CommandLine, more: tuple[str, ...]
) -> None:
    result = steered.run("history", "--organization", "phisics", *more)
    assert result.exit_code == 2
    assert "'phisics' is neither configured nor on record; configured are biology" in (
        result.stderr
    )
    assert steered.run("history", "--organization", "physics", *more).exit_code == 0


def test_history_of_forecasts_has_those_of_jobs_that_started(steered: CommandLine) -> None:
    far = replace(forecast(3, NOW), late=LATER, median=LATER)
    other = replace(forecast(5, NOW), organization="biology")
    with steered.store() as store, store.cluster(NAME).transaction() as transaction:
        transaction.forecasts.save([], [forecast(2, NOW), far, forecast(4, NOW), other])
        transaction.forecasts.note_starts({2: NOW + 900, 3: NOW + 1000, 5: NOW + 200})
    far_row, row = as_json(steered, "history", "--forecasts", "--organization", "physics")
    assert row == {
        **asdict(forecast(2, NOW)),
        "start": NOW + 900,
        "held": True,
    }
    assert (far_row["job_id"], far_row["median"], far_row["late"]) == (3, None, None)
    lines = steered.run("history", "--forecasts").stdout.splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["3", "2", "5"]
    assert [line.split()[-2:] for line in lines[1:]] == [
        [MISSING, "yes"],
        ["min", "yes"],
        ["min", "no"],
    ]


def test_history_of_cycles(steered: CommandLine) -> None:
    (row,) = as_json(steered, "history", "--cycles")
    assert (row["number"], row["outcome"], row["written"]) == (1, "ok", 1)
    assert " ok " in steered.run("history", "--cycles").stdout


def test_a_failed_cycle_did_not_happen_in_1970(steered: CommandLine) -> None:
    began = 1_800_000_100
    failed = CycleRow(number=2, started=began, finished=began, outcome="slurm_unavailable")
    with (
        Store.open(steered.url) as store,
        store.cluster(NAME).transaction() as transaction,
    ):
        transaction.history.save_cycle(failed)
    assert as_json(steered, "history", "--cycles")[0]["t"] is None
    shown = steered.run("history", "--cycles").stdout
    assert clock_time(began) in shown
    assert "1970" not in shown


def test_history_of_work_after_the_end_of_jobs(steered: CommandLine) -> None:
    assert as_json(steered, "history", "--after-end") == []
    assert "no work after" in steered.run("history", "--after-end").stdout
    row = work_after_end(organization="", user="e\x1bve", processor_seconds=1234)
    with (
        Store.open(steered.url) as store,
        store.cluster(NAME).transaction() as transaction,
    ):
        transaction.runs.save_work_after_end([row], asked_until=7)
    (found,) = as_json(steered, "history", "--after-end")
    assert (found["jobs"], found["processor_seconds"]) == (1, 1234)
    shown = steered.run("history", "--after-end").stdout
    assert "e\\x1bve" in shown
    assert shown.splitlines()[-1].split()[1:4] == ["nobody", "1", "1,234"]


def test_changes(steered: CommandLine) -> None:
    steered.configure(push={"influence": 500})
    steered.slurm.wait(30)
    steered.run("daemon", "--once")
    always = ["--since", "always"]
    told = [(row["kind"], row["what"]) for row in as_json(steered, "changes", *always)]
    assert ("steering", "rule directcontr, channel site_factor") in told
    assert ("configuration", "push.influence: not set \u2192 500") in told
    shown = steered.run("changes", *always).stdout
    assert "push.influence: not set \u2192 500" in shown
    later = steered.run("changes", "--since", "2099-01-01").stdout
    assert later.startswith("nothing changed since 2099-01-01 00:00:00")


def test_history_of_writes(steered: CommandLine) -> None:
    (push,) = as_json(steered, "history", "--pushes")
    assert (push["target"], push["old"], push["new"]) == ("2", 0, FIRST)
    assert push["state"] == "applied"
    assert as_json(steered, "history", "--job", "2") == [push]
    assert as_json(steered, "history", "--job", "3") == []
    assert "applied" in steered.run("history", "--pushes").stdout
    assert steered.run("history", "--job", "3").stdout == "no writes to job 3 on record\n"


def test_history_says_where_the_priority_of_a_job_is_written(steered: CommandLine) -> None:
    steered.configure(push={"channel": "association"})
    steered.run("daemon", "--once")
    job = steered.slurm.submit("biology", processing_time=9)
    steered.run("daemon", "--once")
    assert as_json(steered, "history", "--job", str(job)) == []
    said = " ".join(steered.run("history", "--job", str(job)).stdout.split())
    assert said.startswith(f"no writes to job {job} on record: with the channel association")
    assert f"`shapleyprio explain {job}`" in said
    assert "`shapleyprio history --target ACCOUNT`" in said
    (push,) = as_json(steered, "history", "--target", "biology")
    assert (push["channel"], push["target"], push["state"]) == ("association", "biology", "applied")
    assert as_json(steered, "history", "--target", "nobody") == []


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
    with steered.store() as store:
        assert nobody_steers(store.cluster(NAME))


def test_a_rollback_does_not_say_that_slurm_refused_what_has_ended(steered: CommandLine) -> None:
    steered.slurm.cancel(2)
    steered.slurm.take_down("slurmdbd")
    result = steered.run("rollback")
    assert (result.exit_code, result.stdout) == (
        0,
        "0 priorities put back, 0 put back unseen (jobs that run, are held, or whose line could not"
        " be read), 1 not put back: the job has ended, or Slurm did not do it (`shapleyprio history"
        " --pushes` says why)\n",
    )


# -- db


def test_db_upgrade_makes_a_store_and_then_finds_it(shell: CommandLine) -> None:
    assert shell.run("db", "upgrade").stdout.startswith("upgraded the store from revision none to")
    result = shell.run("db", "upgrade")
    assert result.exit_code == 0
    assert re.fullmatch(r"the store is already at revision \S+\n", result.stdout)


def test_db_accept_clock_lets_the_daemon_go_on(steered: CommandLine) -> None:
    steered.slurm.skew = 7200
    assert steered.run("daemon", "--once").exit_code == 0
    steered.slurm.skew = 0
    result = steered.run("daemon", "--once")
    assert result.exit_code == 5
    assert "run `shapleyprio db accept-clock`" in result.stderr
    result = steered.run("db", "accept-clock")
    assert (result.exit_code, result.stdout) == (
        0,
        f"the ledger stands at {clock_time(steered.slurm.now)}, no longer at "
        f"{clock_time(steered.slurm.now + 7200)}\n",
    )
    told = as_json(steered, "changes", "--since", "always")
    what = f"{user()} accepted the controller's clock, 2 h behind the ledger"
    assert [row["what"] for row in told if row["kind"] == "clock"] == [what]
    assert steered.run("daemon", "--once").exit_code == 0
    result = steered.run("db", "accept-clock")
    assert result.exit_code == 5
    assert "nothing to accept" in result.stderr


def test_db_status(steered: CommandLine) -> None:
    answer = as_json(steered, "db", "status")
    assert answer["revision"] == answer["head"]
    assert answer["clusters"] == [NAME]
    assert answer["rows"]["cycle"] == 1
    result = steered.run("db", "status")
    assert f"clusters: {NAME}" in result.stdout
    assert re.search(r"cycle\W+1\b", result.stdout)


def test_db_status_of_a_store_that_is_not_there(shell: CommandLine) -> None:
    answer = as_json(shell, "db", "status")
    assert answer["revision"] is None
    assert (answer["clusters"], answer["rows"]) == (None, None)
    assert "run `shapleyprio db upgrade`" in shell.run("db", "status").stdout


def test_db_status_does_not_say_that_an_older_store_holds_nothing(
    steered: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.cli.db.HEAD", "9999")
    (line,) = steered.run("db", "status").stdout.splitlines()
    assert re.fullmatch(
        r"revision \d{4}, this release has 9999 \(run `shapleyprio db upgrade`\)", line
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--forecasts --drift", "--drift and --forecasts exclude each other"),
        ("--cycles --pushes", "--cycles and --pushes exclude each other"),
        ("--drift --cycles --pushes", "--cycles and --pushes and --drift exclude each other"),
        ("--job 2 --cycles", "--job goes with --pushes"),
        ("--job 2 --drift", "--job goes with --pushes"),
        ("--target physics --cycles", "--target goes with --pushes"),
        ("--job 2 --target physics", "--job and --target exclude each other"),
        (
            "--organization physics --job 2",
            "--organization goes with standings, --drift and --forecasts",
        ),
        (
            "--organization physics --pushes",
            "--organization goes with standings, --drift and --forecasts",
        ),
        (
            "--organization physics --cycles",
            "--organization goes with standings, --drift and --forecasts",
        ),
    ],
)
def test_a_history_of_two_things_is_refused(
    steered: CommandLine, options: str, message: str
) -> None:
    result = steered.run("history", *options.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in " ".join(result.stderr.split())
