"""How `status` and `explain` show the waiting work that counts in the estimate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from shapleyprio.cli.shown.waiting_work import MOST_USERS
from tests.daemon.consortium import NAME, brings, estimate, rank_by_estimate

if TYPE_CHECKING:
    from shapleyprio.store import WaitingWork
    from tests.cli.conftest import CommandLine


def ranked_by(shell: CommandLine, *waiting: WaitingWork) -> None:
    with shell.store() as store:
        rank_by_estimate(store, *waiting)


def test_status_shows_each_organizations_sum_and_the_users_who_bring_the_most(
    steered: CommandLine,
) -> None:
    many = [brings(f"user{n:03}", 1, 500 - n, account="biology") for n in range(300)]
    ranked_by(steered, *many, brings("ann", 4, 2))
    lines = steered.run("status").stdout.splitlines()
    physics, biology = (next(one for one in lines if name in one) for name in ("phy", "bio"))
    assert physics.endswith("4 jobs, 2 processor-h")
    assert biology.endswith("300 jobs, 105,150 processor-h")
    heading = lines.index(
        "waiting work in the estimate by user, the 10 largest of 301; --json has all:"
    )
    shown = [one.split() for one in lines[heading + 2 : heading + 2 + MOST_USERS]]
    assert shown[0] == ["user000", "biology", "biology", "1", "500"]
    assert [one[0] for one in shown] == [f"user{n:03}" for n in range(MOST_USERS)]
    assert "user" not in "".join(lines[heading + 2 + MOST_USERS :])
    found = json.loads(steered.run("status", "--json").stdout)["organizations"]
    assert {one["organization"]: len(one["waiting_work"]["users"]) for one in found} == {
        "physics": 1,
        "biology": 300,
    }
    assert found[0]["waiting_work"] == {
        "jobs": 4,
        "processor_seconds": 7200,
        "users": [{"user": "ann", "account": "physics", "jobs": 4, "processor_seconds": 7200}],
    }


def test_the_largest_of_all_organizations_comes_first(steered: CommandLine) -> None:
    ranked_by(steered, brings("ann", 4, 2), brings("bob", 1, 1, account="biology"))
    output = steered.run("status").stdout
    assert "waiting work in the estimate by user:\n" in output
    assert output.index("\nann ") < output.index("\nbob ")


def test_without_an_estimate_no_waiting_work_is_shown(steered: CommandLine) -> None:
    assert "aiting work" not in steered.run("status").stdout
    assert "newest estimate" not in steered.run("explain", "2").stdout


def test_where_nothing_counts_it_is_said(steered: CommandLine) -> None:
    ranked_by(steered)
    output = steered.run("status").stdout
    assert output.count(" none\n") == 2
    assert "by user" not in output
    expected = "No pending job of physics counts in the newest estimate.\n"
    assert expected in steered.run("explain", "2").stdout


def test_explain_says_how_much_is_the_users_and_who_brings_the_most(steered: CommandLine) -> None:
    users = [brings(name, 1, hours) for name, hours in (("ann", 9), ("bob", 7), ("eve", 5))]
    ranked_by(steered, *users, brings("user", 2, 1))
    for words in ("explain 2", "explain --user user"):
        assert (
            "\n5 pending jobs of physics count in the newest estimate, with 22 processor-hours, of "
            "these 2 jobs with 1 of user user.\nIt comes from ann (9 processor-h), bob (7 "
            "processor-h), eve (5 processor-h) and 1 more.\n"
        ) in steered.run(*words.split()).stdout
    assert ", of these 5 jobs with 22 of account physics.\n" in (
        steered.run("explain", "--account", "physics").stdout
    )


def test_explain_says_that_nothing_of_it_is_the_users(steered: CommandLine) -> None:
    ranked_by(steered, brings("ann", 1, 9))
    assert (
        "\n1 pending job of physics counts in the newest estimate, with 9 processor-hours, of "
        "these no jobs of user user.\n"
    ) in steered.run("explain", "2").stdout


def test_a_users_accounts_are_added_where_it_is_said_who_brings_the_most(
    steered: CommandLine,
) -> None:
    of_physics = brings("ann", 1, 9)
    ranked_by(steered, of_physics, brings("bob", 1, 5), of_physics)
    assert "It comes from ann (18 processor-h), bob" in steered.run("explain", "2").stdout


def test_work_of_an_estimate_that_a_correction_has_deleted_is_not_shown(
    steered: CommandLine,
) -> None:
    ranked_by(steered, brings("ann", 1, 9))
    with steered.store() as store, store.cluster(NAME).transaction() as rows:
        last = rows.history.last_cycle()
        assert last is not None
        rows.estimates.save_estimate([estimate(last.t - 5000)], [brings("ann", 1, 9)])
        rows.estimates.forget_estimates(last.t - 100)
    assert "aiting work" not in steered.run("status").stdout
    (physics, _) = json.loads(steered.run("status", "--json").stdout)["organizations"]
    assert (physics["value"], physics["waiting_work"]) == (None, None)
