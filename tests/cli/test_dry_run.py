"""`shapleyprio daemon --dry-run`: what it prints, and that it goes without a trace."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.estimation import live
from shapleyprio.store import Store
from tests.daemon.consortium import BIOLOGY, FIRST, LAST, NAME, PHYSICS
from tests.leases import another_steers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import CommandLine

DRY = ("daemon", "--once", "--dry-run")


OWED, OWES = ("+3.67", "s"), ("−3.67", "s")


def made(shell: CommandLine) -> set[str]:
    """Files beside the configuration."""
    return {file.name for file in shell.folder.iterdir()} - {"shapleyprio.toml"}


def test_a_dry_run_shows_the_ranking_and_how_much_would_be_written(shell: CommandLine) -> None:
    result = shell.run(*DRY)
    assert result.exit_code == 0
    assert shell.slurm.job(2).site_factor == 0
    assert made(shell) == set()
    lines = result.stdout.splitlines()
    assert lines[0].endswith(": a dry run, nothing is written or kept")
    assert lines[1].startswith(f"{shell.folder}/store.db has no ledger of this cluster yet")
    assert [line.split() for line in lines[3:5]] == [
        ["physics", "66.7%", "66.7%", "0.0%", *OWED, str(FIRST), "1", "0", "1"],
        ["biology", "33.3%", "33.3%", "100.0%", *OWES, str(LAST), "0", "1", "0"],
    ]
    assert lines[5:] == ["1 write; --verbose lists them"]
    assert "new ledger" not in result.stderr


def test_a_dry_run_says_at_once_that_it_waits_for_an_estimate(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PATIENCE_SECONDS", 0.05)  # a worker takes longer to start
    shell.configure(fairness={"rule": "shapley"}, estimation={"time_limit": "50s"})
    result = shell.run(*DRY)
    assert result.exit_code == 0
    (said,) = [line for line in result.stderr.splitlines() if "waiting for an estimate" in line]
    assert said.endswith("at_most_seconds=50")


def test_verbose_lists_every_write(shell: CommandLine) -> None:
    result = shell.run(*DRY, "--verbose")
    row = next(line for line in result.stdout.splitlines() if "site_factor" in line)
    for cell in ("2", "physics", "0", str(FIRST), "planned", "rank 1 of 2, balance +3.67 s"):
        assert cell in row


def test_ten_thousand_jobs_are_one_line(shell: CommandLine) -> None:
    for _ in range(10_000):
        shell.slurm.submit("physics", processing_time=9)
    result = shell.run(*DRY)
    left = "2000 writes, 8001 more left to the next cycle; --verbose lists them"
    assert left in result.stdout
    assert len(result.stdout.splitlines()) == 6


def test_a_dry_run_as_json(shell: CommandLine) -> None:
    answer = json.loads(shell.run(*DRY, "--json").stdout)
    assert (answer["cluster"], answer["new_store"], answer["before_t"]) == (NAME, True, None)
    assert (answer["writes"], answer["moves"]) == (1, [])
    physics, biology = answer["organizations"]
    assert (physics["organization"], physics["rank"], physics["contribution"]) == (
        *("physics", 1, 440),
    )
    assert (physics["writes"], biology["writes"], physics["before"]) == (1, 0, None)
    assert "pushes" not in answer
    answer = json.loads(shell.run(*DRY, "--json", "--verbose").stdout)
    assert [(push["target"], push["new"]) for push in answer["pushes"]] == [("2", FIRST)]


def test_a_dry_run_with_nothing_to_do_still_shows_the_ranking(steered: CommandLine) -> None:
    before = (steered.folder / "store.db").read_bytes()
    lines = steered.run(*DRY).stdout.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["physics", "biology"]
    assert lines[-1] == "nothing to write"
    assert lines[-2] == "  every organization keeps its rank and its points"
    assert (steered.folder / "store.db").read_bytes() == before
    assert made(steered) == {"store.db"}


def test_another_configuration_shows_what_would_change(steered: CommandLine) -> None:
    new = steered.folder / "new.toml"
    steered.write(new, {**BIOLOGY, "partitions": ["pb", "pa"]}, {**PHYSICS, "partitions": []})
    steered.slurm.wait(500)
    result = steered.run(*DRY, "--config", str(new))
    assert result.exit_code == 0
    assert "nodes a[1-2]: physics → biology from now on" in result.stdout
    answer = json.loads(steered.run(*DRY, "--json", "--config", str(new)).stdout)
    assert {move["name"] for move in answer["moves"]} == {"a1", "a2"}
    assert answer["organizations"][0]["before"]["rank"] == 1
    rows = [line.split()[:2] for line in steered.run("status").stdout.splitlines()]
    assert ["physics", "66.7%"] in rows


def test_all_that_changes_hands_is_shown(steered: CommandLine) -> None:
    new = steered.folder / "new.toml"
    steered.write(new, {**BIOLOGY, "accounts": ["guest"], "partitions": ["pa"]}, PHYSICS)
    lines = steered.run(*DRY, "--config", str(new)).stdout.splitlines()
    assert sorted(line for line in lines if "from now on" in line) == [
        "account biology: biology → nobody from now on",
        "account guest: nobody → biology from now on",
        "node b1: biology → nobody from now on",
        "nodes a[1-2]: physics → biology from now on",
    ]


def test_an_organization_for_which_nothing_counts_is_named(steered: CommandLine) -> None:
    new = steered.folder / "new.toml"
    steered.write(new, PHYSICS, BIOLOGY, {"name": "beta"})
    result = steered.run(*DRY, "--config", str(new))
    sentence = "organization beta owns no node and no account"
    assert sentence in result.stdout.splitlines()
    assert sentence in result.stderr
    answer = json.loads(steered.run(*DRY, "--json", "--config", str(new)).stdout)
    assert answer["without_any"] == ["beta"]
    assert "owns no node" not in steered.run(*DRY).stdout


def test_a_dry_run_needs_no_lease(steered: CommandLine) -> None:
    with steered.store() as store, another_steers(store.cluster(NAME)):
        assert steered.run("daemon", "--once").exit_code == 6
        with store.cluster(NAME).reading() as view:
            before = view.lease.read()
        assert steered.run(*DRY).exit_code == 0
        with store.cluster(NAME).reading() as view:
            after = view.lease.read()
    assert before is not None
    assert after is not None
    assert (after.holder, after.token) == (before.holder, before.token)


@pytest.mark.parametrize("option", ["--verbose", "--json"])
def test_options_of_a_dry_run_are_refused_without_one(shell: CommandLine, option: str) -> None:
    result = shell.run("daemon", "--once", option)
    assert result.exit_code == 2
    assert "--verbose and --json go with --dry-run" in result.stderr
    assert made(shell) == set()


PROGRAM = """
import sys
from shapleyprio.cli import daemon, main
from shapleyprio.daemon.steering import composition
from tests.daemon.consortium import Cluster
slurm = Cluster()
slurm.fill("biology")
slurm.submit("physics", nice=3, processing_time=9)
slurm.wait(10)
daemon.connect = composition.connect = lambda *_: slurm
main()
"""


def start(shell: CommandLine, *arguments: str) -> subprocess.Popen[str]:
    """A daemon on a simulated cluster, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "daemon", *arguments, "--config", str(shell.file)],
        env={**os.environ, "TMPDIR": str(shell.folder / "tmp"), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(process: subprocess.Popen[str], wanted: str) -> str:
    """Standard output up to a line with that text."""
    assert process.stdout is not None
    answer = ""
    for line in process.stdout:
        answer += line
        if wanted in line:
            return answer
    raise AssertionError(f"ended without {wanted!r}:\n{answer}")


@pytest.fixture
def temporary(shell: CommandLine) -> Path:
    place = shell.folder / "tmp"
    place.mkdir()
    return place


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_dry_run_goes_on_beside_the_daemon_until_it_is_stopped(
    shell: CommandLine, temporary: Path, number: signal.Signals
) -> None:
    shell.configure(metrics={"address": "off"}, service={"poll_interval": "1s"})
    steers = start(shell)
    try:
        read_until(steers, "number=1")
        dry = start(shell, "--dry-run")
        try:
            for _ in range(2):
                answer = read_until(dry, "1 write; --verbose")
                assert "every organization keeps its rank" in answer
            assert len(list(temporary.iterdir())) == 1
        finally:
            dry.send_signal(number)
            dry.communicate(timeout=60)
        assert dry.returncode == 0
        assert list(temporary.iterdir()) == []
        last = re.findall(r"number=(\d+)", read_until(steers, "number="))[-1]
        with shell.store() as store, store.cluster(NAME).reading() as view:
            assert {row.outcome for row in view.history.cycles()} == {"ok"}
            assert view.history.next_cycle() > int(last)
    finally:
        steers.terminate()
        steers.communicate(timeout=60)
    assert steers.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_dry_run_that_is_killed_in_its_cycle_deletes_its_copy(
    shell: CommandLine, temporary: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    # naps, as a signal that comes just before a sleep does not cut it short
    stuck = (
        "import time; slurm.pending = lambda: "
        "[print('stuck', flush=True), *(time.sleep(0.1) for _ in range(990))]"
    )
    monkeypatch.setitem(globals(), "PROGRAM", PROGRAM.replace("main()", f"{stuck}\nmain()"))
    Store.open(shell.url, create=True).close()
    dry = start(shell, "--once", "--dry-run")
    read_until(dry, "stuck")
    assert len(list(temporary.iterdir())) == 1
    dry.send_signal(number)
    dry.communicate(timeout=60)
    assert dry.returncode == 128 + number
    assert list(temporary.iterdir()) == []
