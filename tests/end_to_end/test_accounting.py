"""Whatever jobs and daemons go through, the ledger says what accounting says in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from shapleyprio.fairness.ledger import Standing
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.machine import TestbedError
from tests.end_to_end.consortium import ALL_CPUS, GUESTS, MEMBERS, NODES, Consortium, clear
from tests.end_to_end.ledgers import like_one_read_afresh, stored_ledger

pytestmark = pytest.mark.real_slurm

SPEED = 60
EVERYBODY = (*MEMBERS, NOBODY)
OWNERS = {node: name for name, nodes in NODES.items() for node in nodes}
HOLDERS = {name: name for name in MEMBERS} | {GUESTS: NOBODY}
OVERLAP = "60s"
"""Shorter than what happens below takes, so that what is late must not be missed for good."""


def standings_by_hand(consortium: Consortium, t: int) -> dict[str, Standing]:
    """What sacct's rows are worth at t, part by part; every node of a job works as much.

    What a guest's job uses counts for nobody.
    """
    worth: Counter[tuple[str, str]] = Counter()
    parts: Counter[str] = Counter()
    times = ("Submit", "Start", "End", "Suspended")
    fields = ("Account", *times, "State", "AllocCPUS", "NodeList")
    for account, submit, start, end, suspended, state, cpus, nodes in consortium.accounted(*fields):
        if not start.isdigit() or state == "PENDING" or HOLDERS[account] == NOBODY:
            continue
        hours, minutes, seconds = map(int, suspended.split(":"))
        begin = max(int(start), int(submit))  # of a job that was resized
        begin += 3600 * hours + 60 * minutes + seconds
        executed = range(max(begin, consortium.since), t if state == "RUNNING" else int(end))
        used = nodes.split(",")  # no two names of ours are ever folded into brackets
        processors, rest = divmod(int(cpus), len(used))
        assert rest == 0
        holder = HOLDERS[account]
        parts[holder] += int(cpus) * len(executed)
        for node in used:
            worth[holder, OWNERS[node]] += processors * sum(t - second for second in executed)
    return {
        name: Standing(
            contribution=sum(value for (_, owner), value in worth.items() if owner == name),
            utility=sum(value for (holder, _), value in worth.items() if holder == name),
            parts=parts[name],
        )
        for name in EVERYBODY
    }


def assert_the_ledger_equals_a_read_from_scratch(consortium: Consortium) -> None:
    consortium.await_settled()
    consortium.await_cycles()
    ledger, t = like_one_read_afresh(consortium)

    standings = ledger.standings(t, EVERYBODY)
    assert standings == standings_by_hand(consortium, t)
    contributions = sum(standing.contribution for standing in standings.values())
    assert contributions == sum(standing.utility for standing in standings.values())
    assert contributions > 0


@pytest.fixture(autouse=True)
def empty(consortium: Consortium) -> Iterator[None]:
    yield
    consortium.close()
    clear(consortium.cluster)


def is_resized(cluster: PrivateSlurm, job: int) -> bool:
    """Whether a job has been cut to one node; Slurm refuses until slurmdbd has numbered the job."""
    with suppress(TestbedError):
        cluster.run("scontrol", "update", f"JobId={job}", "NumNodes=1")
        return True
    return False


def test_every_kind_of_job_is_worth_what_accounting_says_in_the_end(
    consortium: Consortium,
) -> None:
    cluster = consortium.cluster
    consortium.configure(poll_seconds=30, overlap=OVERLAP)
    with consortium.daemon() as daemon:
        on_two = ("--nodes=2", "--nodelist=b1,c1")
        resized = cluster.submit("beta", 180, processors=4, extra=on_two)
        consortium.await_start(resized)
        consortium.until(lambda: is_resized(cluster, resized), what="a smaller job")
        runs_on = cluster.submit("alpha", 3600, partition="gamma")
        requeued = cluster.submit("beta", 180, partition="gamma")
        suspended = cluster.submit("gamma", 120, partition="alpha")
        cancelled = cluster.submit("gamma", 3600, partition="alpha")
        cluster.submit("alpha", 60, processors=2, partition="beta")
        cluster.submit("beta", 30, array="0-5")
        cluster.run(
            *("sbatch", "--account=gamma", "--ntasks=1", "--partition=beta", "--time=10"),
            *("--output=/dev/null", ":", "--ntasks=1", "--partition=alpha"),
            "--wrap=exec sleep 60",
        )
        cluster.submit(GUESTS, 30)
        never = cluster.submit("alpha", 60, processors=ALL_CPUS)
        jobs = (runs_on, requeued, suspended, cancelled, never)
        for job in jobs[:4]:
            consortium.await_start(job)
        consortium.wait(30)
        cluster.run("scontrol", "suspend", str(suspended))
        consortium.requeue(requeued)
        consortium.cancel(cancelled, never)
        consortium.wait(90)
        consortium.let_start(requeued)
        cluster.run("scontrol", "resume", str(suspended))
        consortium.until(
            lambda: cluster.run("squeue", "-h", "-o", "%A").split() == [str(runs_on)],
            what="all jobs to end but one",
        )
        assert_the_ledger_equals_a_read_from_scratch(consortium)
        assert daemon.end() == 0
    rows = consortium.accounted("JobIDRaw", "State", "Suspended", "JobID", "NodeList")
    states = {
        job: [row[1].split()[0] for row in rows if row[0] == str(job)] for job in (*jobs, resized)
    }
    assert states == {
        runs_on: ["RUNNING"],
        requeued: ["REQUEUED", "COMPLETED"],
        suspended: ["COMPLETED"],
        cancelled: ["CANCELLED"],
        resized: ["RESIZING", "COMPLETED"],
        never: ["CANCELLED"],
    }
    paused = [int(row[0]) for row in rows if row[2] != "00:00:00"]
    assert paused == [suspended]
    assert sum("+" in row[3] for row in rows) == 2  # the components of one job
    assert sum("_" in row[3] for row in rows) == 6  # the tasks of one array
    assert "b1,c1" in {row[4] for row in rows}
    assert {cycle.outcome for cycle in consortium.cycles()} == {"ok"}


def test_an_outage_of_the_accounting_daemon_longer_than_the_overlap_loses_nothing(
    consortium: Consortium,
) -> None:
    cluster = consortium.cluster
    consortium.configure(poll_seconds=30, overlap=OVERLAP)
    with consortium.daemon() as daemon:
        consortium.until(lambda: consortium.good_cycles() > 0, what="the first cycle")
        for number, name in enumerate(MEMBERS * 4):
            cluster.submit(name, 40 + 20 * number, partition=MEMBERS[(number + 1) % 3])
        consortium.await_cycles(1)
        cluster.kill("slurmdbd")
        try:
            down = cluster.now()
            for number, name in enumerate(MEMBERS * 3):
                cluster.submit(name, 30 + 10 * number)
                consortium.wait(25)
            consortium.until(
                lambda: consortium.cycles()[-1].outcome == "slurm_unavailable",
                what="a cycle to fail",
            )
            assert cluster.now() - down > 3 * 60
        finally:
            cluster.restart("slurmdbd")
        consortium.until(lambda: not cluster.run("squeue", "-h").strip(), what="all jobs to end")
        assert_the_ledger_equals_a_read_from_scratch(consortium)
        assert daemon.end() == 0


def test_a_mistake_in_the_first_configuration_leaves_no_trace_or_is_repaired_exactly(
    consortium: Consortium,
) -> None:
    cluster = consortium.cluster
    consortium.configure(poll_seconds=30, overlap=OVERLAP)
    good = consortium.config_file.read_text()
    empty = good.replace('accounts = ["alpha"]', "").replace('partitions = ["alpha"]', "")
    consortium.config_file.write_text(empty)
    jobs = [cluster.submit(name, 60, partition="alpha") for name in ("alpha", "beta")]
    consortium.until(lambda: not cluster.run("squeue", "-h").strip(), what="all jobs to end")
    assert len(consortium.starts(jobs)) == len(jobs)
    consortium.await_settled()
    dry = consortium.succeed("daemon", "--once", "--dry-run")
    assert "organization alpha owns no node and no account" in dry
    assert not consortium.has_store()

    consortium.once()
    assert alpha(consortium, "store.db") == (0, 0)
    consortium.config_file.write_text(good)
    recount = ("ownership", "recount", "--since", "always")
    with consortium.daemon() as daemon:
        consortium.await_cycles()
        log = daemon.log()
        assert "node a1: nobody → alpha since" in log
        assert "accounts alpha, alpha-desk, alpha-lab: nobody → alpha since" in log
        assert alpha(consortium, "store.db") == (0, 0)
        assert "nothing is changed yet" in consortium.succeed(*recount)
        refused = consortium.run(*recount, "--yes")
        assert refused.returncode == 6
        assert "stop it first" in refused.stderr
        assert daemon.end() == 0
    moved = consortium.run("check").stdout
    assert "node a1: nobody → alpha since" in moved
    assert "recorded as correction 1" in consortium.succeed(*recount, "--yes")
    consortium.once()
    assert "correction 1, " in consortium.succeed("ownership")
    ledger, t = like_one_read_afresh(consortium)
    standings = ledger.standings(t, EVERYBODY)
    assert standings == standings_by_hand(consortium, t)
    assert min(standings["alpha"].contribution, standings["alpha"].utility) > 0


def alpha(consortium: Consortium, store: str) -> tuple[int, int]:
    """What alpha's nodes and its jobs are worth in a store."""
    ledger, _, t = stored_ledger(consortium, store)
    standing = ledger.standings(t, ["alpha"])["alpha"]
    return standing.contribution, standing.utility
