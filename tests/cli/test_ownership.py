"""`shapleyprio ownership`: who owned what since when, and corrections that are shown first."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from shapleyprio.cli.options.types import BEGINNING, instant
from shapleyprio.common.wording import clock_time
from tests.daemon.consortium import BIOLOGY, NAME, NOW, PHYSICS
from tests.leases import another_steers, nobody_steers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapleyprio.store import Store
    from tests.cli.conftest import CommandLine

EMPTY = {**PHYSICS, "accounts": [], "partitions": []}
PATIENCE_SECONDS = 60

OPENED = NOW + 10 - 30 * 86_400
RECOUNT = ("ownership", "recount", "--since", "always")
TO_BIOLOGY = ("ownership", "set", "a2", "biology", "--since", clock_time(NOW + 4))


@pytest.fixture
def mistaken(shell: CommandLine) -> CommandLine:
    """One cycle has run while nothing was known of physics."""
    shell.write(shell.file, EMPTY, BIOLOGY)
    assert shell.run("daemon", "--once").exit_code == 0
    shell.configure()
    return shell


def content(shell: CommandLine) -> list[str]:
    """What is in the store, without leases."""
    with closing(sqlite3.connect(shell.folder / "store.db")) as connection:
        lines = connection.iterdump()
        return [line for line in lines if not line.startswith('INSERT INTO "lease"')]


def balances(shell: CommandLine) -> dict[str, int]:
    answer = json.loads(shell.run("status", "--json").stdout)
    return {row["organization"]: row["balance"] for row in answer["organizations"]}


def test_all_that_is_held_is_listed_together_where_it_has_one_history(
    steered: CommandLine,
) -> None:
    steered.slurm.wait(60)
    steered.write(steered.file, {**PHYSICS, "nodes": ["b1"]}, BIOLOGY, {"name": "beta"})
    assert steered.run("daemon", "--once").exit_code == 0
    result = steered.run("ownership")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"c1 counts from {clock_time(OPENED)}"
    day, second = clock_time(NOW + 70).split()
    assert [line.split() for line in lines[2:8]] == [
        ["account", "biology", "biology", "always"],
        ["account", "guest", "nobody", "always"],
        ["account", "physics", "physics", "always"],
        ["nodes", "a[1-2]", "physics", "always"],
        ["node", "b1", "biology", "always"],
        ["physics", day, second],
    ]
    assert lines[8:] == ["organization beta owns no node and no account"]


def test_who_owned_what_as_json(steered: CommandLine) -> None:
    assert steered.run(*TO_BIOLOGY, "--yes").exit_code == 0
    answer = json.loads(steered.run("ownership", "--json").stdout)
    assert (answer["cluster"], answer["opened"], answer["correctable"]) == (NAME, OPENED, OPENED)
    assert [one for one in answer["tenures"] if one["name"] == "a2"] == [
        {"kind": "node", "name": "a2", "organization": "physics", "since": None,
         "until": NOW + 4},
        {"kind": "node", "name": "a2", "organization": "biology", "since": NOW + 4,
         "until": None},
    ]  # fmt: skip
    (row,) = answer["corrections"]
    assert (row["number"], row["name"], row["at"]) == (1, "a2", NOW + 10)
    assert row["after"][1] == {"organization": "biology", "since": NOW + 4}


def test_a_correction_is_shown_first_and_done_only_if_asked_for(mistaken: CommandLine) -> None:
    before = content(mistaken)
    result = mistaken.run(*RECOUNT)
    assert result.exit_code == 0
    assert content(mistaken) == before
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "account physics: nobody always → physics always",
        "nodes a[1-2]: nobody always → physics always",
    ]
    assert [line.split() for line in lines[3:5]] == [
        ["physics", "0.0%", "66.7%", "0.0%", "0.0%", "0", "s", "+3.67", "s"],
        [
            "biology",
            "100.0%",
            "33.3%",
            "100.0%",
            "100.0%",
            "−3.67",
            "s",
            "−3.67",
            "s",
        ],
    ]
    assert lines[5:] == [
        f"as of {clock_time(NOW + 10)}, with direct contributions",
        "nothing is changed yet; stop the daemon and add --yes to do it",
    ]
    assert balances(mistaken)["physics"] == 0
    result = mistaken.run(*RECOUNT, "--yes")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:-1] == lines[:-1]
    assert result.stdout.splitlines()[-1] == "done; recorded as correction 1"
    assert mistaken.run("daemon", "--once").exit_code == 0
    assert balances(mistaken) == {"physics": 440, "biology": -440}
    output = mistaken.run("ownership").stdout
    assert f"correction 1, {clock_time(NOW + 10)} by " in output
    assert "  nodes a[1-2]: nobody always → physics always\n" in output
    assert mistaken.run(*RECOUNT).stdout == "already recorded so; nothing to correct\n"


def test_a_correction_as_json(mistaken: CommandLine) -> None:
    answer = json.loads(mistaken.run(*RECOUNT, "--json").stdout)
    assert (answer["done"], answer["correction"], answer["t"]) == (False, None, NOW + 10)
    assert {each["name"] for each in answer["tenures"]} == {"a1", "a2", "physics"}
    physics = answer["organizations"][0]
    assert physics["before"] == {"contribution": 0, "utility": 0, "balance": 0}
    assert physics["after"] == {"contribution": 440, "utility": 0, "balance": 440}
    answer = json.loads(mistaken.run(*RECOUNT, "--json", "--yes").stdout)
    assert (answer["done"], answer["correction"]) == (True, 1)


def test_beside_a_daemon_a_correction_is_shown_but_refused(mistaken: CommandLine) -> None:
    before = content(mistaken)
    with mistaken.store() as store, another_steers(store.cluster(NAME)):
        assert mistaken.run(*RECOUNT).exit_code == 0
        result = mistaken.run(*RECOUNT, "--yes")
    assert result.exit_code == 6
    assert "steers cluster c1; stop it first" in result.stderr
    assert content(mistaken) == before


@pytest.mark.parametrize("correction", [RECOUNT, TO_BIOLOGY])
def test_while_a_daemon_writes_a_correction_is_refused_for_the_daemon(
    mistaken: CommandLine, monkeypatch: pytest.MonkeyPatch, correction: tuple[str, ...]
) -> None:
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    writes = Event()

    def write_for_long(store: Store) -> None:
        with store.cluster(NAME).transaction():
            writes.set()
            time.sleep(1)

    with mistaken.store() as store, another_steers(store.cluster(NAME)):
        daemon = Thread(target=write_for_long, args=[store])
        daemon.start()
        assert writes.wait(PATIENCE_SECONDS)
        result = mistaken.run(*correction, "--yes")
        daemon.join()
    assert result.exit_code == 6
    assert "steers cluster c1; stop it first" in result.stderr


def test_a_correction_gives_the_lease_back(mistaken: CommandLine) -> None:
    assert mistaken.run(*RECOUNT, "--yes").exit_code == 0
    with mistaken.store() as store:
        assert nobody_steers(store.cluster(NAME))


def test_what_the_configuration_says_otherwise_is_pointed_out(steered: CommandLine) -> None:
    lines = steered.run(*TO_BIOLOGY).stdout.splitlines()
    since = clock_time(NOW + 4)
    assert lines[0] == f"node a2: physics always → physics always, biology since {since}"
    assert lines[-1] == (
        "the configuration gives node a2 to physics: that counts from the daemon's next cycle on"
    )
    assert "the configuration" not in steered.run(*RECOUNT).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "a9", "biology"), "no account or node 'a9' is known"),
        (("set", "a1", "gnu"), "no organization 'gnu' is or ever was configured; known are"),
        (("set", "physics", "biology", "--kind", "node"), "no node 'physics' is known"),
        (("recount", "--since", "2100-01-01"), "2100-01-01 00:00:00 lies in the future"),
        (("recount", "--since", "yesterday"), "'yesterday' is not a date; expected one such as"),
    ],
)
def test_what_cannot_be_corrected_is_one_clear_line(
    steered: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    since = () if "--since" in arguments else ("--since", "always")
    for more in ((), ("--yes",)):
        result = steered.run("ownership", *arguments, *since, *more)
        assert result.exit_code == 2
        assert message in result.stderr.splitlines()[-1]


def test_without_a_store_there_is_nothing_to_correct(shell: CommandLine, tmp_path: Path) -> None:
    assert shell.run("ownership").exit_code == 4
    result = shell.run(*RECOUNT)
    assert result.exit_code == 2
    assert "the store has no ledger of cluster c1 yet" in result.stderr
    assert shell.run(*RECOUNT, "--yes").exit_code == 4
    assert [file.name for file in tmp_path.iterdir()] == ["shapleyprio.toml"]


@pytest.fixture
def in_kolkata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_kolkata")
@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("2027-01-15", 1_800_000_000 - 13 * 3600 - 1800),
        ("2027-01-15 13:30", 1_800_000_000),
        ("2027-01-15T13:30:07", 1_800_000_007),
        ("2027-01-15T08:00:00Z", 1_800_000_000),
        ("2027-01-15T09:00:00+01:00", 1_800_000_000),
        ("1969-01-01", BEGINNING),
        ("always", BEGINNING),
    ],
)
def test_dates_are_local_unless_they_have_a_zone(text: str, second: int) -> None:
    assert instant(text) == second
    if second:
        assert instant(clock_time(second)) == second


def test_partitions_that_were_ever_left_out_are_listed_and_recounted(steered: CommandLine) -> None:
    steered.slurm.wait(60)
    steered.write(steered.file, PHYSICS, BIOLOGY, fairness={"leave_out_partitions": ["all"]})
    assert steered.run("daemon", "--once").exit_code == 0
    lines = steered.run("ownership").stdout.splitlines()
    assert [line.split() for line in lines if "part" in line] == [
        ["partition", "all", "taking", "part", "always"]
    ]
    assert ["left", "out", *clock_time(NOW + 70).split()] in [line.split() for line in lines]
    result = steered.run(*RECOUNT)
    assert result.stdout.splitlines()[0] == (
        f"partition all: taking part always, left out since {clock_time(NOW + 70)} "
        "→ left out always"
    )
