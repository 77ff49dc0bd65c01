"""What users of a real Slurm try with their jobs and accounts, as real users of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shapleyprio.config import load_config
from shapleyprio.daemon.accounting import after_end
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.fairness.worth import worth
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.store import Store
from tests.end_to_end.consortium import (
    ALL_CPUS,
    CLUSTER,
    GUESTS,
    MEMBERS,
    SETTINGS,
    Consortium,
    clear,
    spec,
)
from tests.end_to_end.ledgers import like_one_read_afresh
from tests.processes import DAEMON, as_user

pytestmark = pytest.mark.real_slurm

BIN = 2
"""Another user of Debian, in one account only."""

GAMES = 5
"""A third one, whom accounting does not know."""

ACCOUNTS = {"daemon": ("alpha", "gamma", GUESTS), "bin": ("beta",)}
ENFORCED = "AccountingStorageEnforce=associations,qos,limits"
KILL_WAIT = "4"
SCHEDULER = "batch_sched_delay=0,sched_interval=5,bf_interval=2,bf_continue,enable_user_top"


@pytest.fixture(scope="module")
def shared(prepared_database: Path) -> Iterator[PrivateSlurm]:
    """A cluster with two users, who may `scontrol top`, and one of whom coordinates alpha."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        Path(folder).chmod(0o755)  # users reach slurm.conf and munge there
        settings = {"SchedulerParameters": SCHEDULER, "KillWait": KILL_WAIT}
        generous = replace(spec(1), extra=SETTINGS | settings)
        with PrivateSlurm(Path(folder, "c"), generous, prepared=prepared_database) as slurm:
            slurm.add_accounts(dict.fromkeys((*MEMBERS, GUESTS)))
            for user, accounts in ACCOUNTS.items():
                where = (f"account={','.join(accounts)}", f"cluster={CLUSTER}")
                slurm.run("sacctmgr", "-i", "add", "user", user, *where)
            slurm.run("sacctmgr", "-i", "add", "coordinator", "account=alpha", "names=daemon")
            yield slurm


@pytest.fixture
def consortium(shared: PrivateSlurm, tmp_path: Path) -> Iterator[Consortium]:
    """The consortium while a guest's job keeps all nodes busy."""
    consortium = Consortium(shared, tmp_path)
    consortium.configure()
    consortium.occupy()
    try:
        yield consortium
    finally:
        consortium.close()
        for user in (*ACCOUNTS, "games"):
            shared.run("scancel", f"--user={user}")
        clear(shared)


def act(consortium: Consortium, *words: str, user: int = DAEMON) -> str:
    """A command of a user that works; returns what it prints."""
    done = _try(consortium, *words, user=user)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _try(
    consortium: Consortium, *words: str, user: int = DAEMON
) -> subprocess.CompletedProcess[str]:
    return as_user(user, consortium.cluster.environment, *words)


def submit(consortium: Consortium, account: str, *options: str, user: int = DAEMON) -> int:
    """Submits a job that waits; it asks for all nodes."""
    words = ("--parsable", f"--account={account}", "--ntasks=6", "--output=/dev/null")
    return int(act(consortium, "sbatch", *words, *options, "--wrap=true", user=user))


def errors_of_check(consortium: Consortium) -> list[str]:
    checked = json.loads(consortium.run("check", "--json").stdout)
    return [one["subject"] for one in checked["findings"] if one["severity"] == "error"]


def test_keep_the_points_of_one_account_under_another(consortium: Consortium) -> None:
    look_between_cycles(consortium)
    with consortium.daemon():
        consortium.await_cycles(1)
        job = submit(consortium, "alpha")
        best = consortium.points()["alpha"]
        began = time.monotonic()
        consortium.until(lambda: factor(consortium, job) == best, what="the points of alpha")
        assert time.monotonic() - began < 3600
        act(consortium, "scontrol", "update", f"JobId={job}", f"Account={GUESTS}")
        assert consortium.waiting()[job].account == GUESTS
        consortium.until(lambda: factor(consortium, job) == 0, what="the points of nobody")
        act(consortium, "scontrol", "update", f"JobId={job}", "Account=gamma")
        worst = consortium.points()["gamma"]
        consortium.until(lambda: factor(consortium, job) == worst, what="the points of gamma")


def factor(consortium: Consortium, job: int) -> int | None:
    return consortium.waiting()[job].site_factor


def test_work_for_nothing_until_kill_wait_is_over(consortium: Consortium) -> None:
    clear(consortium.cluster)
    ignores = "trap '' TERM CONT; [ -n \"$SLURM_RESTART_COUNT\" ] && exit; "
    computes = "; while :; do :; done"
    with consortium.daemon():
        consortium.await_cycles(1)  # what ended before is no part of the ledger
        jobs = [
            _submit_two_processors(consortium, f"{ignores}{ends}{computes}")
            for ends in ("scancel $SLURM_JOB_ID", "scontrol requeue $SLURM_JOB_ID")
        ]
        honest = _submit_two_processors(consortium, "true")
        consortium.until(
            lambda: "daemon" in users_after_end(consortium, of=jobs), what="work after both ends"
        )
        consortium.await_cycles(1)
        metrics = consortium.metrics()
    with consortium.reading() as view:
        runs = [run for run, _ in view.runs.all_runs() if run.key.job_id in (*jobs, honest)]
        (found,) = view.runs.users_after_end(0, 2**40, 9)
    assert all(run.end is not None and run.end - run.begin <= 1 for run in runs if run.end)
    assert (found.organization, found.jobs) == ("alpha", 2)
    assert 2 * 2 * 3 <= found.processor_seconds <= 2 * 2 * 30
    name = "shapleyprio_work_after_end_processor_seconds_total"
    assert (
        f'{name}{{cluster="{CLUSTER}",organization="alpha"}} {found.processor_seconds}' in metrics
    )
    assert f'{name}{{cluster="{CLUSTER}",organization="beta"}} 0.0' in metrics
    labels = f'cluster="{CLUSTER}",organization="alpha",user="daemon"'
    name = "shapleyprio_user_work_after_end_processor_seconds"
    assert f"{name}{{{labels}}} {found.processor_seconds}" in metrics
    shown = consortium.succeed("history", "--after-end")
    assert ["daemon", "alpha", "2", str(found.processor_seconds)] in [
        line.split()[:4] for line in shown.splitlines()
    ]


def _submit_two_processors(consortium: Consortium, script: str) -> int:
    words = ("--parsable", "--account=alpha", "--ntasks=2", "--nodes=1", "--output=/dev/null")
    return int(act(consortium, "sbatch", *words, "--requeue", f"--wrap={script}"))


def users_after_end(consortium: Consortium, of: list[int]) -> set[str]:
    """Users with work after the ends of that many jobs."""
    with consortium.reading() as view:
        return {one.user for one in view.runs.users_after_end(0, 2**40, 9) if one.jobs == len(of)}


def test_add_to_the_points_of_one_s_jobs_by_scontrol_top(consortium: Consortium) -> None:
    consortium.configure(channel="nice")
    assert errors_of_check(consortium) == ["SchedulerParameters"]
    jobs = [submit(consortium, "gamma", f"--nice={nice}") for nice in (0, 40, 800)]
    rival = submit(consortium, "beta", user=BIN)
    consortium.once()
    last = consortium.points()["gamma"]
    for turn in range(4):
        act(consortium, "scontrol", "top", str(jobs[turn % 3]))
        consortium.once()
    waiting = consortium.waiting()
    assert all(waiting[job].nice >= -last for job in jobs)
    assert all(waiting[job].priority < waiting[rival].priority for job in jobs)
    act(consortium, "scontrol", "top", str(jobs[2]))
    consortium.succeed("rollback")
    assert all(consortium.waiting()[job].nice >= 0 for job in jobs)


def test_ask_for_less_than_no_nice(consortium: Consortium) -> None:
    """Slurm's own rule, on which the channel nice relies: users cannot, whatever stands there."""
    consortium.configure(channel="nice")
    job = submit(consortium, "gamma")
    consortium.once()
    ours = consortium.waiting()[job].nice
    assert ours < 0
    for nice in (ours - 1, ours + 1, -1):
        assert _try(consortium, "scontrol", "update", f"JobId={job}", f"Nice={nice}").returncode
    assert consortium.waiting()[job].nice == ours
    assert _try(consortium, "sbatch", "--nice=-1", "-Agamma", "--wrap=true").returncode


def test_keep_the_points_by_a_limit_that_slurm_cannot_show(consortium: Consortium) -> None:
    """squeue shows a limit of more than 365 days as INVALID."""
    job = submit(consortium, "beta", "--time=UNLIMITED", user=BIN)
    found = consortium.waiting()[job].priority
    consortium.once()
    given = factor(consortium, job)
    assert given == consortium.points()["beta"] > 0
    act(consortium, "scontrol", "update", f"JobId={job}", "TimeLimit=525601", user=BIN)
    consortium.configure(organizations=("alpha", "gamma", "beta"))
    consortium.once()
    assert factor(consortium, job) == consortium.points()["beta"] < given
    assert json.loads(consortium.succeed("status", "--json"))["quarantined"] == 0
    consortium.succeed("rollback")
    assert consortium.waiting()[job].priority == found


def test_hold_a_job_with_the_best_points_and_release_it_later(consortium: Consortium) -> None:
    kept = submit(consortium, "alpha")
    other = submit(consortium, "beta", user=BIN)
    consortium.once()
    best = consortium.points()["alpha"]
    assert factor(consortium, kept) == best > consortium.points()["beta"]
    act(consortium, "scontrol", "hold", str(kept))
    consortium.configure(organizations=("beta", "alpha", "gamma"))
    look_between_cycles(consortium)
    with consortium.daemon():
        consortium.await_cycles(1)
        due = consortium.points()
        assert factor(consortium, other) == due["beta"] == best > due["alpha"]
        act(consortium, "scontrol", "release", str(kept))
        consortium.until(lambda: factor(consortium, kept) == due["alpha"], what="what is due")
    waiting = consortium.waiting()
    assert 0 < waiting[kept].priority < waiting[other].priority


def look_between_cycles(consortium: Consortium) -> None:
    """Configures a cycle an hour, and a look at the queue every other second."""
    text = consortium.config_file.read_text()
    slow = text.replace('poll_interval = "1s"', 'poll_interval = "1h"')
    consortium.config_file.write_text(slow.replace('interval = "5s"', 'interval = "2s"'))


def test_be_paid_again_for_a_job_by_requeueing_it_while_it_runs(consortium: Consortium) -> None:
    clear(consortium.cluster)
    times = 4
    words = ("--parsable", "--account=alpha", "--partition=beta", "--ntasks=2", "--requeue")
    job = int(act(consortium, "sbatch", *words, "--output=/dev/null", "--wrap=exec sleep 600"))
    for _ in range(times - 1):
        consortium.await_start(job)
        consortium.wait(1.5)
        act(consortium, "scontrol", "requeue", str(job))
        consortium.once()
        consortium.let_start(job)
    consortium.await_start(job)
    consortium.wait(1.5)
    act(consortium, "scancel", str(job))

    def executions() -> list[tuple[int, int]]:
        rows = consortium.accounted("JobIDRaw", "Start", "End")
        ended = [row for row in rows if row[0] == str(job) and row[2].isdigit()]
        return [(int(begin), int(end)) for _, begin, end in ended]

    # the last one may have ended before accounting hears that it has started
    consortium.until(lambda: len(executions()) == times, what="accounting to know all executions")
    consortium.once()
    executed = executions()
    with consortium.reading() as view:
        standings = {row.organization: row for row in view.history.latest_standings()}
    alpha, beta = standings["alpha"], standings["beta"]
    assert len(executed) == times
    assert alpha.utility == sum(2 * worth(begin, end, alpha.t) for begin, end in executed) > 0
    assert beta.contribution == alpha.utility
    assert alpha.balance == -beta.balance < 0
    like_one_read_afresh(consortium)


def test_end_more_jobs_in_one_second_than_are_asked_for_at_once(
    consortium: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And let them work on, which counts once for each."""
    monkeypatch.setattr(after_end, "MOST_ASKED", ALL_CPUS - 1)
    clear(consortium.cluster)
    works_on = "trap '' TERM CONT; while :; do sleep 1; done"
    words = ("--parsable", "--account=alpha", f"--array=1-{ALL_CPUS}", "--output=/dev/null")
    with Store.open(consortium.url(), create=True) as store:
        config = load_config(consortium.config_file)
        cycle = Cycle(config, consortium.slurm, store.cluster(CLUSTER))
        cycle.run()  # what ended before is no part of the ledger
        array = act(consortium, "sbatch", *words, f"--wrap={works_on}").strip()
        consortium.until(lambda: running(consortium) == ALL_CPUS, what="all tasks to run")
        consortium.wait(1.5)
        act(consortium, "scancel", array)
        counted: list[int] = []

        def count() -> bool:
            counted.append(cycle.run().after_end.get("alpha", 0))
            return counted[-1] > 0

        consortium.until(count, what="work after the ends")
        cycle.run()
    with consortium.reading() as view:
        runs = [run for run, _ in view.runs.all_runs() if run.account == "alpha"]
        (found,) = view.runs.users_after_end(0, 2**40, 9)
        standings = {row.organization: row for row in view.history.latest_standings()}
    assert (len(runs), len({run.end for run in runs})) == (ALL_CPUS, 1)
    assert (found.jobs, found.processor_seconds) == (ALL_CPUS, sum(counted))
    assert ALL_CPUS * 3 <= found.processor_seconds <= ALL_CPUS * 30
    t = standings["alpha"].t
    assert standings["alpha"].utility == sum(worth(run.begin, run.end, t) for run in runs) > 0


def running(consortium: Consortium) -> int:
    """How many jobs and tasks of the user run."""
    queue = ("squeue", "-h", "-r", "--user=daemon", "--state=RUNNING", "-o", "%A")
    return len(consortium.cluster.run(*queue).split())


def test_end_every_cycle_by_an_account_with_a_line_end_in_its_name(consortium: Consortium) -> None:
    listed = (
        "beta|root|5|9\n1|beta||3",
        "x\n1|beta|9|99\n1|evil||98\n1|y",
        "a|b",
        "esc\x1b[2J",
    )
    for name in listed:
        act(consortium, "sacctmgr", "-i", "add", "account", f"name={name}", "parent=alpha")
    layout = consortium.slurm.layout()
    assert layout.accounts == dict.fromkeys((*MEMBERS, GUESTS))
    assert consortium.slurm.account_priorities()["beta"].own is None
    assert consortium.slurm.coordinators().by_account == {"alpha": ("daemon",)}
    victim = submit(consortium, "beta", user=BIN)
    assert consortium.once() == 1
    assert factor(consortium, victim) == consortium.points()["beta"]
    assert errors_of_check(consortium) == []


def test_rewrite_another_s_job_and_charge_another_s_account(consortium: Consortium) -> None:
    """Last, for it takes the cluster's protection away."""
    cluster = consortium.cluster
    victim = submit(consortium, "beta", user=BIN)
    # or slurmctld may end while it asks slurmdbd for the job's index, and then refuse to change it
    consortium.await_accounted(victim)
    file = cluster.paths.slurm_conf
    text = file.read_text()
    assert ENFORCED in text
    file.write_text(text.replace(ENFORCED, "AccountingStorageEnforce=nosteps"))
    cluster.restart("slurmctld")
    own = (victim, victim, "all", "normal", 1, 0, 1_800_000_000, 6, "1:00", 1_800_000_000)
    line = "\x1f".join(("|".join(map(str, own)), "gamma", "bin", "None", "\n"))
    forged = f"x\x1b[2J\n{line}{victim}"
    strange = [submit(consortium, account, user=GAMES) for account in (forged, "alpha2")]
    charged = submit(consortium, "gamma", user=GAMES)

    assert errors_of_check(consortium) == ["AccountingStorageEnforce"]
    assert consortium.run("daemon", "--once").returncode == 3
    assert consortium.pushes() == []

    allowed = consortium.config_file.read_text().replace(
        "[slurm]", "[slurm]\nallow_unenforced_accounts = true"
    )
    consortium.config_file.write_text(allowed)
    consortium.until(lambda: factor(consortium, victim) is not None, what="the victim's factor")
    for _ in range(3):
        consortium.once()
    points = consortium.points()
    waiting = consortium.waiting()
    assert waiting[victim].account == "beta"
    assert waiting[victim].site_factor == points["beta"]
    assert waiting[charged].site_factor == points["gamma"]  # what is allowed is allowed
    assert {push.key for push in consortium.pushes()} == {str(victim), str(charged)}
    assert strange[1] in waiting
    status = json.loads(consortium.succeed("status", "--json"))
    assert status["of_unknown_accounts"] == 1  # the forged line's job is not believed to be one
    assert status["quarantined"] > 0
    for command in (["status"], ["check"], ["daemon", "--once"]):
        printed = consortium.run(*command)
        shown = printed.stdout + printed.stderr
        assert all(line.isprintable() for line in shown.split("\n")), command
    assert "alpha2" in consortium.run("check").stdout
