"""The channel association on a real Slurm: right at submission, down to the last sub-account."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import psutil
import pytest

from shapleyprio.slurm.layout import UNSET_PRIORITY
from shapleyprio.store import PushState
from tests.end_to_end.consortium import (
    ALL_CPUS,
    BASE_PRIORITY,
    BELOW,
    CLUSTER,
    GUESTS,
    MEMBERS,
    Consortium,
    RunningDaemon,
    clear,
)

pytestmark = pytest.mark.real_slurm

SPEED = 1
FOUND = 500
"""What stands at a sub-account before we come."""

ACCOUNTS = (*MEMBERS, GUESTS, *BELOW)


@pytest.fixture(autouse=True)
def busy(consortium: Consortium) -> Iterator[None]:
    """Nothing starts; all lend alike, so that the first listed leads. Empty again in the end."""
    consortium.slurm.write("association", {"alpha-lab": FOUND})
    consortium.occupy()
    yield
    consortium.close()
    clear(consortium.cluster)
    consortium.slurm.write("association", dict.fromkeys(ACCOUNTS, UNSET_PRIORITY))


def own(consortium: Consortium) -> dict[str, int | None]:
    """Account -> what is set at it in accounting."""
    found = consortium.slurm.account_priorities()
    return {account: found[account].own for account in ACCOUNTS}


def in_force(consortium: Consortium) -> dict[str, int]:
    """Account -> what slurmctld goes by, for the account and its users."""
    shown = consortium.slurm.priorities_in_force(ACCOUNTS)
    found = {account: {shown[account]} for account in ACCOUNTS}
    for association, priority in consortium.slurm.users_priorities_in_force(ACCOUNTS).items():
        found[association.account].add(priority)
    return {account: priority for account, (priority,) in found.items()}


def expected(consortium: Consortium) -> dict[str, int]:
    points = consortium.points()
    return {**points, **dict.fromkeys(BELOW, points["alpha"])}


def test_a_job_has_its_priority_from_its_submission_on_and_waiting_ones_follow(
    consortium: Consortium,
) -> None:
    old = consortium.cluster.submit("alpha-desk", 60, processors=ALL_CPUS, nice=3)
    consortium.configure(channel="association")
    assert consortium.once() == len(MEMBERS) + len(BELOW)
    points = consortium.points()
    assert in_force(consortium) == {**expected(consortium), GUESTS: 0}
    new = {name: consortium.cluster.submit(name, 60) for name in (*MEMBERS, *BELOW, GUESTS)}
    jobs = consortium.waiting()  # asked once, at once
    base = BASE_PRIORITY
    assert {name: jobs[job].priority - base for name, job in new.items()} == (
        {**expected(consortium), GUESTS: 0}
    )
    assert jobs[old].priority == base + points["alpha"] - 3, "it was touched"
    assert consortium.once() == 0

    explained = json.loads(consortium.succeed("explain", str(new["alpha-desk"]), "--json"))
    assert [(push["channel"], push["target"]) for push in explained["pushes"]] == [
        ("association", "alpha-desk")
    ]
    checked = json.loads(consortium.run("check", "--json").stdout)["findings"]
    assert "error" not in {finding["severity"] for finding in checked}
    assert not [one for one in checked if one["subject"].startswith("organization")]

    consortium.slurm.write("association", {"beta": 7})  # somebody else
    consortium.configure(channel="association", organizations=MEMBERS[::-1])
    assert consortium.once() == 4, "all but beta, which is left as it was set"
    assert own(consortium)["beta"] == 7
    jobs = consortium.waiting()
    for name in ("alpha-desk", "gamma"):
        assert jobs[new[name]].association == consortium.points()["alpha" if "-" in name else name]
    assert (jobs[new["gamma"]].nice, jobs[old].nice, jobs[old].site_factor) == (0, 3, 0)

    consortium.succeed("rollback")
    put_back = dict.fromkeys(ACCOUNTS) | {"alpha-lab": FOUND, "beta": 7}
    assert own(consortium) == put_back
    assert in_force(consortium) == {
        **dict.fromkeys(ACCOUNTS, 0),
        "alpha-lab": FOUND,
        "alpha-desk": FOUND,
        "beta": 7,
    }


def test_a_daemon_killed_in_the_middle_of_changes_loses_nothing(consortium: Consortium) -> None:
    for number in range(3):
        turned = MEMBERS[number:] + MEMBERS[:number]
        consortium.configure(channel="association", organizations=turned)
        with consortium.daemon() as daemon:
            consortium.await_push()
            time.sleep(0.1 * number)
            daemon.kill()
    consortium.once()
    assert consortium.open_pushes() == 0
    assert in_force(consortium) == {**expected(consortium), GUESTS: 0}
    consortium.succeed("rollback")
    assert own(consortium) == dict.fromkeys(ACCOUNTS) | {"alpha-lab": FOUND}


@pytest.mark.parametrize("program", ["slurmdbd", "sacctmgr"])
def test_what_writes_priorities_may_be_killed_in_the_middle(
    consortium: Consortium, program: str
) -> None:
    consortium.configure(channel="association")
    consortium.once()
    for number in (1, 2):
        turned = MEMBERS[number:] + MEMBERS[:number]
        consortium.configure(channel="association", organizations=turned)
        with consortium.daemon() as daemon:
            session = await_session(consortium, daemon, turned)
            time.sleep(0.02 * (number - 1))
            if program == "slurmdbd":
                consortium.cluster.kill("slurmdbd")
                consortium.cluster.restart("slurmdbd")
            else:
                with suppress(psutil.NoSuchProcess):  # it may have been done by then
                    for process in session:
                        process.kill()
            consortium.await_cycles()
            assert daemon.end() == 0
        assert consortium.order() == list(turned)
        stands = expected(consortium)
        assert in_force(consortium) == {**stands, GUESTS: 0}
        assert own(consortium) == {**stands, GUESTS: None}
        last = {push.target: push for push in consortium.pushes()}
        assert {target: push.new for target, push in last.items()} == stands
        assert {push.state for push in last.values()} == {PushState.APPLIED}
    consortium.succeed("rollback")
    assert own(consortium) == dict.fromkeys(ACCOUNTS) | {"alpha-lab": FOUND}
    assert in_force(consortium) == {
        **dict.fromkeys(ACCOUNTS, 0),
        "alpha-lab": FOUND,
        "alpha-desk": FOUND,
    }


def test_what_slurmctld_has_not_heard_of_is_written_again(consortium: Consortium) -> None:
    """Where slurmdbd is killed after a commit slurmctld never hears of it.

    What that leaves is brought about in its database.
    """
    consortium.configure(channel="association")
    consortium.once()
    before = expected(consortium)
    consortium.configure(channel="association", organizations=MEMBERS[::-1])
    consortium.once()
    stands = expected(consortium)
    unheard = {name: value for name, value in stands.items() if value != before[name]}
    assert unheard.keys() >= {"alpha", "alpha-desk", "gamma"}
    consortium.slurm.write("association", {name: before[name] for name in unheard})
    for name, value in unheard.items():
        commit(consortium, name, str(value))
    consortium.cluster.kill("slurmdbd")
    consortium.cluster.restart("slurmdbd")
    assert own(consortium) == {**stands, GUESTS: None}
    assert in_force(consortium) == {**before, GUESTS: 0}
    assert consortium.once() == len(unheard)
    assert in_force(consortium) == {**stands, GUESTS: 0}
    assert consortium.once() == 0

    for name in ACCOUNTS:
        commit(consortium, name, str(FOUND) if name == "alpha-lab" else "NULL")
    consortium.succeed("rollback")
    assert in_force(consortium) == {
        **dict.fromkeys(ACCOUNTS, 0),
        "alpha-lab": FOUND,
        "alpha-desk": FOUND,
    }


def commit(consortium: Consortium, account: str, priority: str) -> None:
    """Sets the priority of an account in slurmdbd's database alone."""
    statement = (
        f"UPDATE {CLUSTER}_assoc_table SET priority={priority} WHERE acct='{account}' AND user=''"
    )
    socket = consortium.cluster.paths.database_socket
    consortium.cluster.run("mariadb", f"--socket={socket}", "slurm_acct_db", "-e", statement)


def await_session(
    consortium: Consortium, daemon: RunningDaemon, order: Sequence[str]
) -> list[psutil.Process]:
    """Waits until the daemon changes priorities to that order.

    Returns:
        the sacctmgr that does so; none if it was over too soon to be seen.
    """
    found: list[psutil.Process] = []

    def writes() -> bool:
        for child in psutil.Process(daemon.process.pid).children():
            with suppress(psutil.Error):
                if child.cmdline()[1:] == ["-i"]:
                    found.append(child)
        return bool(found) or consortium.order() == list(order)

    consortium.until(writes, what="sacctmgr to write")
    return found[:1]
