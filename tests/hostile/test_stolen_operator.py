"""What rights in Slurm are worth: the daemon's to whoever steals it, and a coordinator's."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.machine import slurm_release
from tests.end_to_end.consortium import CLUSTER, SETTINGS, spec
from tests.processes import DAEMON, as_user

pytestmark = pytest.mark.real_slurm

COORDINATOR = pwd.getpwnam("mail").pw_uid


@pytest.fixture(scope="module")
def slurm(prepared_database: Path) -> Iterator[PrivateSlurm]:
    """A full cluster on which the user daemon is an Operator, as shapleyprio's daemon is."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        Path(folder).chmod(0o755)  # users reach slurm.conf and munge there
        enforcing = replace(spec(1), extra={**SETTINGS, "AccountingStorageEnforce": "associations"})
        with PrivateSlurm(Path(folder, "c"), enforcing, prepared=prepared_database) as slurm:
            slurm.add_accounts({"alpha": None, "beta": None})
            where = ("account=alpha", f"cluster={CLUSTER}")
            slurm.run("sacctmgr", "-i", "add", "user", "daemon", *where, "adminlevel=Operator")
            for user in ("mail", "lp"):
                slurm.run("sacctmgr", "-i", "add", "user", user, *where_of("alpha"))
            slurm.run("sacctmgr", "-i", "add", "coordinator", "account=alpha", "names=mail")
            fill(slurm)
            yield slurm


def where_of(account: str) -> tuple[str, str]:
    return f"account={account}", f"cluster={CLUSTER}"


def fill(slurm: PrivateSlurm) -> None:
    """Lets a job of beta run, so that those that come then wait."""
    job = str(slurm.submit("beta", 3000, processors=6))

    def runs() -> bool:
        return slurm.run("squeue", "-h", "-o", "%T", "-j", job).strip() == "RUNNING"

    slurm.wait_until(runs, real_seconds=60, what="a job to run")


def test_use_the_right_of_a_coordinator(slurm: PrivateSlurm) -> None:
    def may(*words: str) -> bool:
        return as_user(COORDINATOR, slurm.environment, *words).returncode == 0

    ours, theirs = (str(slurm.submit(name, 3000, processors=6)) for name in ("alpha", "beta"))
    change, modify = ("scontrol", "update"), ("sacctmgr", "-i", "modify")
    for job in (ours, theirs):
        for field in ("Priority=9000000", "Nice=-5", "SiteFactor=7", "Account=beta"):
            assert not may(*change, f"JobId={job}", field), (job, field)
    assert not may(*change, f"JobId={theirs}", "TimeLimit=1")
    assert not may("scancel", theirs)
    for account in ("alpha", "beta"):
        for value in ("priority=5", "fairshare=50", "parent=root"):
            assert not may(*modify, "account", account, "set", value), (account, value)
    assert not may(*modify, "user", "mail", "set", "adminlevel=Operator")
    add = ("sacctmgr", "-i", "add")
    assert not may(*add, "account", "gamma", f"cluster={CLUSTER}")
    assert not may(*add, "account", "beta-own", "parent=beta", f"cluster={CLUSTER}")
    assert not may(*add, "user", "news", *where_of("beta"))
    # what one may: within the account, whose organization gets and pays what happens there
    assert may(*change, f"JobId={ours}", "TimeLimit=1")
    assert may("scancel", ours)
    assert may(*add, "user", "news", *where_of("alpha"))
    assert may(*add, "account", "alpha-own", "parent=alpha", f"cluster={CLUSTER}")
    assert may(*modify, "user", "lp", "where", "account=alpha", "set", "priority=5")


def test_use_the_right_of_an_operator(slurm: PrivateSlurm) -> None:
    def may(*words: str) -> bool:
        return as_user(DAEMON, slurm.environment, *words).returncode == 0

    job = str(slurm.submit("beta", 3000, processors=6))
    for change in ("SiteFactor=7", "TimeLimit=1", "Account=alpha", "Priority=9"):
        assert may("scontrol", "update", f"JobId={job}", change)
    assert may("scontrol", "hold", job)
    assert may("scancel", job)

    change_database = ("sacctmgr", "-i")
    assert may(*change_database, "add", "user", "games", "account=beta")
    assert may(*change_database, "modify", "account", "beta", "set", "maxjobs=0")
    assert may(*change_database, "delete", "user", "games", "account=beta")
    reservation = ("starttime=now+1day", "duration=1", "nodes=a1", "users=daemon")
    assert may("scontrol", "create", "reservation", *reservation)

    refused = (
        ("sacctmgr", "-i", "modify", "user", "daemon", "set", "adminlevel=Administrator"),
        ("sacctmgr", "-i", "modify", "user", "root", "set", "adminlevel=None"),
        ("sacctmgr", "-i", "modify", "qos", "normal", "set", "priority=9"),
        ("scontrol", "update", "NodeName=a1", "State=DRAIN", "Reason=theft"),
        ("scontrol", "update", "PartitionName=alpha", "State=DOWN"),
        ("scontrol", "shutdown"),
        ("sbatch", "--uid=0", "--account=alpha", "--wrap=id"),
    )
    assert [words for words in refused if may(*words)] == []
    # who is not in the database yet can be made an Operator, too, and once even more than that
    newcomers = {"bin": "Operator", "man": "Administrator"}
    for user, level in newcomers.items():
        made = may(*change_database, "add", "user", user, "account=beta", f"adminlevel={level}")
        assert made == (level == "Operator" or slurm_release().series == "22.05")
        shown = slurm.run("sacctmgr", "-nP", "show", "user", "format=User,AdminLevel")
        assert made == (f"{user}|{level}" in shown.splitlines())

    theirs = slurm.run(
        *("sacctmgr", "-nP", "list", "transactions", "Actor=daemon", "format=Action,Info")
    )
    for action in ("Add Users", "Modify Associations|max_jobs=0", "Remove Users"):
        assert action in theirs
    log = (slurm.directory / "log" / "slurmctld.log").read_text()
    assert f"_slurm_rpc_update_job: complete JobId={job} uid={DAEMON} " in log
    assert f"REQUEST_KILL_JOB JobId={job} uid {DAEMON}" in log
