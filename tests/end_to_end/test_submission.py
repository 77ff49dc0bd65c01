"""Points at submission on a real slurmctld: whatever the table is like, no job is refused."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from shapleyprio.common.shipped import find
from shapleyprio.config import load_config
from shapleyprio.daemon.checking.check import check
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.lab.testbed import machine
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.steering import MODULE, SCRIPT, give_points_at_submission
from shapleyprio.slurm.points_table import LARGEST_TABLE, PointsTable, write_table
from shapleyprio.store import PushState, Store
from tests.end_to_end.consortium import (
    ALL_CPUS,
    BASE_PRIORITY,
    CLUSTER,
    GUESTS,
    MEMBERS,
    Consortium,
    clear,
    spec,
)
from tests.processes import DAEMON, as_user

pytestmark = pytest.mark.real_slurm

POINTS = {"alpha": 300_000, "beta": 200_000, "gamma": 100_000}
LASTS = 900


@pytest.fixture(scope="module")
def scripted(prepared_database: Path) -> Iterator[PrivateSlurm]:
    """A cluster with the script, whose table would be beside its directory."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        Path(folder).chmod(0o755)  # users reach slurm.conf and munge there
        with PrivateSlurm(Path(folder, "c"), spec(1), prepared=prepared_database) as slurm:
            accounts = dict.fromkeys((*MEMBERS, GUESTS))
            slurm.add_accounts(accounts)
            users = ("user", "daemon", f"account={','.join(accounts)}", f"cluster={CLUSTER}")
            slurm.run("sacctmgr", "-i", "add", *users)
            give_points_at_submission(slurm, table_of(slurm))
            yield slurm


@pytest.fixture
def cluster(scripted: PrivateSlurm) -> Iterator[PrivateSlurm]:
    """The cluster, in which all nodes are busy."""
    Consortium(scripted, scripted.directory).occupy()
    yield scripted
    table_of(scripted).unlink(missing_ok=True)
    clear(scripted)


def table_of(cluster: PrivateSlurm) -> Path:
    return cluster.directory.with_name("points")


def table(**changes: int) -> PointsTable:
    return PointsTable(**{"written": int(time.time()), "lasts": LASTS, **changes}, points=POINTS)


def points_at(cluster: PrivateSlurm, job: int) -> int:
    """What the job has beside the priority that every job has."""
    shown = cluster.run("squeue", "-h", "-j", str(job), "-o", "%Q").split()[0]
    return int(shown) - BASE_PRIORITY


def test_every_kind_of_new_job_has_the_points_of_its_account(cluster: PrivateSlurm) -> None:
    write_table(table_of(cluster), table())
    submit = partial(cluster.submit, seconds=60)
    for account in MEMBERS:
        assert points_at(cluster, submit(account)) == POINTS[account]
    assert points_at(cluster, submit("ALPHA")) == POINTS["alpha"]
    assert points_at(cluster, submit(GUESTS)) == 0
    assert points_at(cluster, submit("alpha", array="0-9")) == POINTS["alpha"]
    first = submit("beta")
    assert points_at(cluster, submit("beta", dependency=f"afterok:{first}")) == POINTS["beta"]

    modify = ("sacctmgr", "-i", "modify", "user", machine.user_name())
    cluster.run(*modify, "set", "defaultaccount=gamma")
    default = cluster.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=true")
    assert points_at(cluster, int(default)) == POINTS["gamma"]

    held = submit("gamma", extra=["--hold"])
    cluster.run("scontrol", "release", str(held))
    assert points_at(cluster, held) == POINTS["gamma"]

    def is_now(state: str) -> bool:
        return cluster.run("squeue", "-h", "-j", str(held), "-o", "%T").strip() == state

    others = set(cluster.run("squeue", "-h", "-o", "%A").split()) - {str(held)}
    cluster.run("scancel", *others)
    cluster.wait_until(lambda: is_now("RUNNING"), real_seconds=60, what="it to run")
    cluster.run("scontrol", "requeue", str(held))
    cluster.wait_until(lambda: is_now("PENDING"), real_seconds=60, what="it to wait again")
    assert points_at(cluster, held) == POINTS["gamma"]


def test_a_waiting_job_that_changes_its_account_has_the_points_of_the_other(
    cluster: PrivateSlurm,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    write_table(table_of(cluster), table())
    user = partial(as_user, DAEMON, cluster.environment)
    submitted = user("sbatch", "--parsable", "--account=alpha", "-o/dev/null", "--wrap=true")
    assert submitted.stderr == ""
    job = int(submitted.stdout)

    def update(*words: str) -> str:
        return user("scontrol", "update", f"JobId={job}", *words).stderr

    assert update("Account=beta") == ""
    assert points_at(cluster, job) == POINTS["beta"]
    assert update("Account=gamma", "TimeLimit=5") == ""
    assert points_at(cluster, job) == POINTS["gamma"]
    assert update(f"Account={GUESTS}") == ""
    assert points_at(cluster, job) == 0
    assert update("Account=alpha", "Comment=mine") == ""
    assert "permission denied" in update("Nice=7")
    cluster.run("scontrol", "update", f"JobId={job}", "Nice=-7")
    assert points_at(cluster, job) == POINTS["alpha"] + 7
    cluster.run("scontrol", "update", f"JobId={job}", "Account=beta", "SiteFactor=5")
    assert points_at(cluster, job) == 5 + 7

    table_of(cluster).unlink()
    assert update("Account=gamma") == ""
    assert points_at(cluster, job) == 5 + 7


def test_no_table_keeps_a_job_from_being_submitted(cluster: PrivateSlurm) -> None:
    file = table_of(cluster)
    good = table().text()
    contents = {
        "empty": "",
        "half written": good[: len(good) // 2],
        "cut by a byte": good[:-1],
        "another version": good.replace("points 1", "points 2"),
        "no number": good.replace("300000", "many"),
        "too old": table(written=int(time.time()) - LASTS - 10).text(),
        "from the future": table(written=int(time.time()) + LASTS + 10).text(),
        "garbage": "\0\xff%s\n" * 1000,
        "20 MB": good[:-1] + "x" * 20 * LARGEST_TABLE,
    }
    assert points_at(cluster, cluster.submit("alpha", 60)) == 0
    for kind, content in contents.items():
        file.write_text(content, encoding="latin-1")
        assert points_at(cluster, cluster.submit("alpha", 60)) == 0, kind
    file.unlink()
    file.mkdir()
    assert points_at(cluster, cluster.submit("alpha", 60)) == 0
    file.rmdir()
    huge = good.replace("300000", "9999999999")
    file.write_text(huge)
    assert points_at(cluster, cluster.submit("alpha", 60)) > POINTS["alpha"]
    file.write_text(good)
    assert points_at(cluster, cluster.submit("alpha", 60)) == POINTS["alpha"]
    log = (cluster.directory / "log" / "slurmctld.log").read_text(errors="replace")
    complaints = re.findall(r"shapleyprio: \S+: (.*)", log)
    assert any("it is cut short" in line for line in complaints)
    assert complaints[-1] == "in use again"


def test_a_sites_own_script_takes_the_module_in(cluster: PrivateSlurm) -> None:
    folder = cluster.paths.slurm_conf.parent
    script, module = folder / SCRIPT, folder / MODULE
    ours = script.read_text(), module.read_text()
    (example,) = re.findall(r"```lua\n(.*?)```", find("slurm_conf/README.md").read_text(), re.S)
    write_table(table_of(cluster), table())
    try:
        own = example.replace("/etc/slurm", str(folder)).replace(
            "   -- what the site", '   job_desc.comment = "the site was here"\n   -- what the site'
        )
        replace_script(script, own)
        job = cluster.submit("beta", 60)
        assert points_at(cluster, job) == POINTS["beta"]
        assert "Comment=the site was here" in cluster.run("scontrol", "show", "job", str(job))

        module.unlink()
        replace_script(script, ours[0])
        assert points_at(cluster, cluster.submit("beta", 60)) == 0
    finally:
        module.write_text(ours[1])
        replace_script(script, ours[0])
    assert points_at(cluster, cluster.submit("beta", 60)) == POINTS["beta"]


def replace_script(script: Path, text: str) -> None:
    """Changes the script so that slurmctld, which looks at seconds, notices."""
    later = script.stat().st_mtime + 2
    script.write_text(text)
    os.utime(script, (later, later))


def test_the_daemon_finds_nothing_to_write_and_puts_everything_back(
    consortium: Consortium, cluster: PrivateSlurm
) -> None:
    consortium.configure()
    text = consortium.config_file.read_text()
    consortium.config_file.write_text(
        text.replace("[push]\n", f'[push]\ntable = "{table_of(cluster)}"\n')
    )
    config = load_config(consortium.config_file)
    with Store.open(consortium.url(), create=True) as opened:
        store = opened.cluster(CLUSTER)
        cycle = Cycle(config, consortium.slurm, store)
        assert cycle.run().plan.pushes == []
        time.sleep(1)  # a job of the same second might be older than the table
        new = [cluster.submit(name, 60, processors=ALL_CPUS) for name in MEMBERS]
        held = cluster.submit("beta", 60, extra=["--hold"])
        given = {job: points_at(cluster, job) for job in new}
        assert list(given.values()) == list(consortium.points().values())
        consortium.until(
            lambda: all(consortium.waiting()[job].site_factor is not None for job in new),
            what="Slurm's scheduler to look at the jobs",
        )
        report = cycle.run()
        assert (report.plan.pushes, report.plan.missed) == ([], 0)
        assert {push.state for push in consortium.pushes()} == {PushState.AT_SUBMISSION}
        assert {int(push.key): push.new for push in consortium.pushes()} == given
        findings = check(config, consortium.slurm, cluster.now())
        assert not {one.subject for one in findings} & {"push.table", "JobSubmitPlugins"}

        array = cluster.submit("gamma", 60, processors=ALL_CPUS, array="0-3")
        roll_back(store, consortium.slurm)
    assert not table_of(cluster).exists()
    cluster.run("scontrol", "release", str(held))
    assert {points_at(cluster, job) for job in (*new, held, array)} == {0}
    assert points_at(cluster, cluster.submit("alpha", 60)) == 0
    consortium.close()
