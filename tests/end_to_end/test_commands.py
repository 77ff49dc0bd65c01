"""Every command on a live cluster: what it prints and the exit code it ends with."""

from __future__ import annotations

import json
import re
import socket
from contextlib import suppress

import pytest

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from tests.end_to_end.consortium import ALL_CPUS, GUESTS, MEMBERS, Consortium, NewStore

pytestmark = pytest.mark.real_slurm

SPEED = 1


@pytest.fixture(scope="module")
def steered(
    cluster: PrivateSlurm, tmp_path_factory: pytest.TempPathFactory, new_store: NewStore
) -> tuple[Consortium, dict[str, int]]:
    """A consortium after a cycle, and a pending job of each account."""
    consortium = Consortium(cluster, tmp_path_factory.mktemp("steered"), new_store())
    consortium.configure()
    consortium.occupy()
    jobs = {
        name: cluster.submit(name, 60, processors=ALL_CPUS, nice=20) for name in (*MEMBERS, GUESTS)
    }
    assert consortium.once() == len(MEMBERS)
    return consortium, jobs


def test_status_shows_every_organizations_standing(
    steered: tuple[Consortium, dict[str, int]],
) -> None:
    consortium, _ = steered
    status = json.loads(consortium.succeed("status", "--json"))
    assert (status["outcome"], status["failure"], status["quarantined"]) == ("ok", None, 0)
    rows = status["organizations"]
    assert [row["organization"] for row in rows] == list(MEMBERS)
    for row in rows:
        assert row["share"] == pytest.approx(1 / 3)
        assert (row["pending"], row["running"], row["utility"]) == (1, 0, 0)
        assert row["balance"] == row["contribution"] - row["utility"]
    printed = consortium.succeed("status")
    assert all(name in printed for name in MEMBERS)


def test_explain_shows_the_organizations_rank_and_the_users_nice(
    steered: tuple[Consortium, dict[str, int]],
) -> None:
    consortium, jobs = steered
    output = json.loads(consortium.succeed("explain", str(jobs["beta"]), "--json"))
    assert (output["organization"], output["rank"], output["organizations"]) == ("beta", 2, 3)
    assert output["points"] == consortium.points()["beta"]
    assert output["ahead"] == 1
    assert [push["new"] for push in output["pushes"]] == [output["points"]]
    printed = consortium.succeed("explain", str(jobs["beta"]))
    assert "rank 2 of 3" in printed
    assert "nice of 20" in printed
    assert "No organization claims" in consortium.succeed("explain", str(jobs[GUESTS]))
    of_account = json.loads(consortium.succeed("explain", "--account", "beta", "--json"))
    (summary,) = of_account["organizations"]
    assert (summary["waiting"], summary["next"]["job_id"]) == (1, jobs["beta"])
    assert summary["before"] == {"alpha": 1}


def test_explain_of_a_job_that_does_not_wait_is_a_usage_error(
    steered: tuple[Consortium, dict[str, int]],
) -> None:
    consortium, _ = steered
    refused = consortium.run("explain", "4000000")
    assert refused.returncode == 2
    assert refused.stderr.startswith("shapleyprio: no job 4000000 is pending")


def test_who_waits_for_how_long_is_shown(
    steered: tuple[Consortium, dict[str, int]],
) -> None:
    consortium, _ = steered
    waits = json.loads(consortium.succeed("status", "--waits", "--json"))["waits"]
    waiting = {row["organization"]: row for row in waits if row["pending"]}
    assert waiting.keys() == set(MEMBERS)
    assert all(row["pending"] == 1 and 0 <= row["oldest"] < 600 for row in waiting.values())
    printed = consortium.succeed("status", "--waits").splitlines()
    (heading,) = (line.split() for line in printed if "median wait" in line)
    assert heading[:3] == ["organization", "partition", "started"]


def test_history_and_the_stores_status_are_reported(
    steered: tuple[Consortium, dict[str, int]],
) -> None:
    consortium, jobs = steered
    pushes = json.loads(consortium.succeed("history", "--pushes", "--json"))
    assert {push["target"] for push in pushes} == {str(jobs[name]) for name in MEMBERS}
    cycles = json.loads(consortium.succeed("history", "--cycles", "--json"))
    assert {(cycle["outcome"], cycle["written"]) for cycle in cycles} == {("ok", 3)}
    standings = json.loads(consortium.succeed("history", "--organization", "gamma", "--json"))
    assert [row["organization"] for row in standings] == ["gamma"]
    store = json.loads(consortium.succeed("db", "status", "--json"))
    assert store["clusters"] == [consortium.cluster.spec.name]


def test_check_finds_no_fault_with_a_good_configuration(
    steered: tuple[Consortium, dict[str, int]],
) -> None:
    consortium, _ = steered
    done = consortium.run("check", "--json")
    findings = json.loads(done.stdout)["findings"]
    assert "error" not in {finding["severity"] for finding in findings}
    # the guests' account belongs to nobody, which is worth a warning
    assert done.returncode == 1
    assert any(GUESTS in finding["subject"] for finding in findings)


def test_a_misspelt_key_is_refused_with_its_place_and_the_nearest_one(
    steered: tuple[Consortium, dict[str, int]],
) -> None:
    consortium, _ = steered
    config = consortium.directory / "misspelt-key.toml"
    good = consortium.config_file.read_text()
    config.write_text(good.replace("channel =", "chanel ="))
    line = config.read_text().splitlines().index('chanel = "site_factor"') + 1
    for command in ("check", "daemon"):
        done = consortium.run(command, config=config)
        assert done.returncode == 2
        assert done.stderr == (
            f"shapleyprio: {config}:{line}: push.chanel: unknown key; did you mean 'channel'?\n"
        )


def test_a_draft_of_the_live_cluster_passes_its_own_check(
    steered: tuple[Consortium, dict[str, int]],
) -> None:
    consortium, _ = steered
    config = consortium.directory / "drafted.toml"
    done = consortium.run("init", config=config)
    assert done.returncode == 0, done.stderr
    text = config.read_text()
    default = re.search(r'^#url = ".*"$', text, re.MULTILINE)
    assert default is not None  # a folder that packages make
    config.write_text(text.replace(default[0], f'url = "{consortium.url()}"'))
    assert consortium.run("check", config=config).returncode < 2


def test_an_address_that_is_taken_keeps_no_daemon_from_steering(consortium: Consortium) -> None:
    consortium.configure()
    taken = socket.create_server(("127.0.0.1", consortium.metrics_port))
    with taken, consortium.daemon() as daemon:
        consortium.await_cycles()
        assert f"address=127.0.0.1:{consortium.metrics_port}" in daemon.log()
        taken.close()
        consortium.until(
            lambda: served(consortium), what="metrics at an address that is free again"
        )


def served(consortium: Consortium) -> bool:
    with suppress(OSError):
        return "shapleyprio_" in consortium.metrics()
    return False


def test_while_accounting_is_away_one_line_says_so(
    consortium: Consortium, cluster: PrivateSlurm
) -> None:
    consortium.configure()
    consortium.succeed("db", "upgrade")
    cluster.kill("slurmdbd")
    try:
        done = consortium.run("daemon", "--once")
    finally:
        cluster.restart("slurmdbd")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "slurmdbd does not answer" in line
