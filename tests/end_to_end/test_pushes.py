"""What is written into Slurm, and how it is put back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.command_line.orders import TOO_SLOW
from shapleyprio.slurm.port import Connection
from shapleyprio.slurm.releases import Release
from tests.end_to_end.consortium import ALL_CPUS, GUESTS, MEMBERS, QOS, Consortium, clear

pytestmark = pytest.mark.real_slurm

SPEED = 1


@pytest.fixture(autouse=True)
def busy(consortium: Consortium) -> Iterator[int]:
    """A guest's job on the whole cluster: nobody earns by it, so the first listed leads.

    Afterwards the cluster is empty again.
    """
    yield consortium.occupy()
    consortium.close()
    clear(consortium.cluster)


def test_users_order_their_jobs_by_nice_and_every_write_is_kept_with_its_reason(
    consortium: Consortium,
) -> None:
    asked = {
        consortium.cluster.submit("beta", 60, processors=ALL_CPUS, nice=nice or None): nice
        for nice in (100, 50, 0)
    }
    third, second, first = asked
    consortium.configure(channel="nice")
    assert consortium.once() == 3
    points = consortium.points()["beta"]
    for job, waiting in consortium.waiting().items():
        assert waiting.nice == asked[job] - points
    by_priority = sorted(consortium.waiting().values(), key=lambda job: -job.priority)
    assert [job.job_id for job in by_priority] == [first, second, third]

    consortium.set_nice(second, 200)
    assert consortium.once() == 1
    assert consortium.waiting()[second].nice == 200 - points
    assert consortium.once() == 0

    history = json.loads(consortium.succeed("history", "--job", str(second), "--json"))
    assert [(push["cycle"], push["old"], push["new"]) for push in history] == [
        (2, 200, 200 - points),
        (1, 50, 50 - points),
    ]
    for push in history:
        assert re.match("rank 2 of 3, balance [+−0]", push["reason"])
        assert push["state"] == "applied"

    consortium.succeed("rollback")
    nice = {job: waiting.nice for job, waiting in consortium.waiting().items()}
    assert nice == {**asked, second: 200}


def test_the_site_factor_takes_over_from_nice_and_leaves_users_nice_alone(
    consortium: Consortium,
) -> None:
    low, high = (
        consortium.cluster.submit("beta", 60, processors=ALL_CPUS, nice=nice) for nice in (100, 50)
    )
    consortium.configure(channel="nice")
    assert consortium.once() == 2
    consortium.configure(channel="site_factor")
    assert consortium.once() == 4  # what was added to the nice is subtracted
    consortium.set_nice(high, 70)
    assert consortium.once() == 0
    points = consortium.points()["beta"]
    waiting = consortium.waiting()
    assert {job.site_factor for job in waiting.values()} == {points}
    assert (waiting[low].nice, waiting[high].nice) == (100, 70)
    assert waiting[high].priority - waiting[low].priority == 30


def test_a_job_that_its_partition_keeps_from_being_changed_is_reported_and_others_are_written(
    consortium: Consortium,
) -> None:
    stuck = consortium.cluster.submit("alpha", 60, partition="alpha")
    others = {consortium.cluster.submit(name, 60, processors=ALL_CPUS): name for name in MEMBERS}
    consortium.until(
        lambda: all(job.site_factor is not None for job in consortium.waiting().values()),
        what="Slurm's scheduler to look at the jobs",
    )
    partition = ("scontrol", "update", "PartitionName=alpha")
    consortium.cluster.run(*partition, "State=INACTIVE")
    try:
        consortium.configure()
        assert consortium.once() == len(others)
        points, waiting = consortium.points(), consortium.waiting()
        assert {job: waiting[job].site_factor for job in others} == {
            job: points[name] for job, name in others.items()
        }
        assert not waiting[stuck].site_factor
        assert consortium.cycles()[-1].refused == 1
        (push,) = json.loads(consortium.succeed("history", "--job", str(stuck), "--json"))
        assert (push["state"], push["new"]) == ("refused", points["alpha"])
        assert "partition" in push["note"].lower()
    finally:
        consortium.cluster.run(*partition, "State=UP")
    assert consortium.once() == 1
    assert consortium.waiting()[stuck].site_factor == points["alpha"]


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
def test_an_array_gets_one_write_and_stays_in_one_piece(
    consortium: Consortium, busy: int, channel: str
) -> None:
    def pieces() -> list[str]:
        answer = consortium.cluster.run("scontrol", "show", "job", "-o")
        waiting = [line for line in answer.splitlines() if " JobState=PENDING " in line]
        found = re.findall(r" ArrayJobId=(\d+) ArrayTaskId=(\S+)", "\n".join(waiting))
        return [f"{number}_[{tasks}]" for number, tasks in found]

    array = consortium.cluster.submit("beta", 600, array="0-29", nice=20)
    consortium.until(
        lambda: consortium.waiting()[array].site_factor is not None,
        what="Slurm's scheduler to look at the array",
    )
    consortium.configure(channel=channel)
    assert consortium.once() == 1
    assert pieces() == [f"{array}_[0-29]"]

    consortium.cancel(busy)
    rest = f"{array}_[{ALL_CPUS}-29]"
    consortium.until(lambda: pieces() == [rest], what="the first tasks to start")
    consortium.configure(channel=channel, organizations=MEMBERS[::-1], influence=9000)
    assert consortium.once() == 1
    assert pieces() == [rest]
    assert [push.label for push in consortium.pushes()] == [f"{array}_[0-29]", rest]
    assert {push.original for push in consortium.pushes()} == {20 if channel == "nice" else 0}


def test_a_dry_run_prints_its_plan_and_changes_nothing(consortium: Consortium) -> None:
    jobs = [consortium.cluster.submit(name, 60, processors=ALL_CPUS) for name in MEMBERS]
    before = consortium.found(), consortium.slurm.qos_priorities()
    for channel in ("nice", "qos"):
        consortium.configure(channel=channel)
        dry = ("daemon", "--once", "--dry-run", "--verbose")
        answer = json.loads(consortium.succeed(*dry, "--json"))
        points = {one["organization"]: one["priority"] for one in answer["organizations"]}
        words = [row.replace("│", " ").split() for row in consortium.succeed(*dry).splitlines()]
        assert [row[0] for row in words[3:6]] == list(MEMBERS)
        for name, job in zip(MEMBERS, jobs, strict=True):
            new = points[name] * (-1 if channel == "nice" else 1)
            target = name if channel == "qos" else str(job)
            row = next(row for row in words if row[:3] == [channel, target, name])
            assert str(new) in row
    assert (consortium.found(), consortium.slurm.qos_priorities()) == before
    assert not consortium.has_store()


def test_a_mistake_in_a_first_dry_run_is_forgotten_when_it_is_corrected(
    consortium: Consortium, busy: int
) -> None:
    waiting = consortium.cluster.submit("alpha", 60, processors=ALL_CPUS)
    consortium.configure()
    good = consortium.config_file.read_text()
    mistaken = good.replace('accounts = ["alpha"]', "accounts = []").replace(
        'partitions = ["alpha"]', "partitions = []"
    )
    consortium.config_file.write_text(mistaken)
    dry = ("daemon", "--once", "--dry-run", "--json")
    (alpha,) = (
        one
        for one in json.loads(consortium.succeed(*dry))["organizations"]
        if one["organization"] == "alpha"
    )
    assert (alpha["contribution"], alpha["share"]) == (0, 0)
    assert not consortium.has_store()

    consortium.config_file.write_text(good)
    began = consortium.cluster.now()
    consortium.until(lambda: consortium.cluster.now() > began + 1, what="work to count")
    assert consortium.starts([busy]) == [busy]  # accounting learns of a start some seconds later
    consortium.cancel(busy, waiting)  # lest it starts between the two that read
    consortium.await_settled()
    consortium.once()
    afresh = consortium.from_scratch()
    with consortium.reading() as view, consortium.reading(afresh) as other:
        assert list(view.runs.all_runs()) == list(other.runs.all_runs())
        assert set(view.ledger.tenures()) == set(other.ledger.tenures())
        assert view.ledger.entries() == other.ledger.entries()
        assert view.ledger.entries()["", "alpha"].total.first != 0


def test_a_dry_run_of_another_configuration_does_not_disturb_the_daemon(
    consortium: Consortium,
) -> None:
    jobs = [consortium.cluster.submit(name, 60, processors=ALL_CPUS) for name in MEMBERS]
    consortium.configure()
    new = consortium.directory / "new.toml"
    consortium.configure(organizations=MEMBERS[::-1], file=new)
    with consortium.daemon() as daemon:
        consortium.until(lambda: len(consortium.pushes()) == len(jobs), what="the first writes")
        consortium.await_cycles(1)  # pushes are stored before the standings that they stand for
        for _ in range(3):
            done = consortium.run("daemon", "--once", "--dry-run", "--json", config=new)
            assert done.returncode == 0, done.stderr
            answer = json.loads(done.stdout)
            ranks = {one["organization"]: one["rank"] for one in answer["organizations"]}
            assert ranks == {"gamma": 1, "beta": 2, "alpha": 3}
            before = {one["organization"]: one["before"] for one in answer["organizations"]}
            assert before["alpha"]["rank"] == 1
            assert answer["writes"] == 2  # beta keeps its points
        consortium.await_cycles()
        assert daemon.end() == 0
        assert "failed" not in daemon.log()
    assert {row.outcome for row in consortium.cycles()} == {"ok"}
    assert len(consortium.pushes()) == len(jobs)


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
def test_rollback_leaves_everything_as_it_was_found(
    consortium: Consortium, busy: int, channel: str
) -> None:
    cluster = consortium.cluster
    consortium.cancel(busy)
    consortium.occupy(ALL_CPUS - 1)
    runs = cluster.submit("alpha", 600, nice=3)
    consortium.await_start(runs)
    starts = cluster.submit("gamma", 600, nice=9)  # as soon as the other one is requeued
    held = cluster.submit("beta", 600, nice=30)
    for nice, name in enumerate((*MEMBERS, GUESTS)):
        cluster.submit(name, 600, processors=ALL_CPUS, nice=10 * nice)
    array = cluster.submit("beta", 600, processors=ALL_CPUS, array="0-9", nice=40)
    favored = cluster.submit("alpha", 600, processors=ALL_CPUS)
    cluster.run("scontrol", "update", f"JobId={favored}", "SiteFactor=777")
    found = consortium.found()
    assert found[str(favored)].site_factor == 777

    consortium.configure(channel=channel, organizations=MEMBERS[::-1])
    with consortium.daemon() as daemon:
        consortium.until(lambda: bool(consortium.pushes()), what="the first writes")
        consortium.await_cycles()
        cluster.run("scontrol", "hold", str(held))
        consortium.requeue(runs)
        consortium.await_start(starts)
        consortium.let_start(runs)
        consortium.await_cycles()
        changed = {label for label, now in consortium.found().items() if now != found[label]}
        expected = {str(runs), str(starts), f"{array}_[0-9]"}
        assert expected <= changed
        # a site factor that an operator has set is left alone by the channel that writes it
        assert (str(favored) in changed) == (channel == "nice")
        refused = consortium.run("rollback")
        assert refused.returncode == 6
        assert "steers" in refused.stderr
        assert daemon.end() == 0

    consortium.succeed("rollback")
    cluster.run("scontrol", "release", str(held))
    now = consortium.found()
    for label, before in found.items():
        assert (now[label].nice, now[label].priority) == (before.nice, before.priority), label
        if None not in (now[label].site_factor, before.site_factor):
            assert now[label].site_factor == before.site_factor, label
    assert consortium.slurm.qos_priorities() == {**QOS, "normal": 0}


def test_a_job_that_an_admin_puts_first_starts_first_with_priorities_of_associations_too(
    consortium: Consortium, busy: int
) -> None:
    jobs = {
        name: [consortium.cluster.submit(name, 60, processors=ALL_CPUS) for _ in range(2)]
        for name in MEMBERS
    }
    before_all, own = jobs["gamma"][1], jobs["beta"][1]
    consortium.configure(channel="association")
    consortium.once()
    consortium.succeed("first", str(before_all), "--before-all", "--reason", "a deadline")
    consortium.succeed("first", str(own), "--reason", "an exam")
    consortium.once()

    def order() -> list[int]:
        waiting = consortium.waiting()
        return sorted(waiting, key=lambda job: (-waiting[job].priority, job))

    due = [before_all, *jobs["alpha"], own, jobs["beta"][0], jobs["gamma"][0]]
    consortium.until(lambda: order() == due, what="priorities that are computed")
    assert consortium.once() == 0
    explained = consortium.succeed("explain", str(before_all))
    assert re.search("It goes before all others since .* ordered by .*: a deadline.", explained)
    assert "2 jobs go first by exceptions" in consortium.succeed("explain", str(jobs["beta"][0]))
    consortium.cluster.run("scancel", str(busy))
    consortium.until(lambda: before_all not in consortium.waiting(), what="the start")
    assert all(job in consortium.waiting() for name in ("alpha", "beta") for job in jobs[name])
    consortium.once()
    with consortium.reading() as view:
        (found,) = view.orders.exceptions()
        ended = [row for row in view.orders.exceptions(since=0) if row.ended is not None]
    assert found.job_id == own
    (row,) = ended
    assert (row.job_id, row.ended_by) == (before_all, "the job started")
    assert row.passed == {"alpha": 2, "beta": 2, "gamma": 1}
    consortium.succeed("first", str(own), "--undo")
    consortium.once()
    waiting = consortium.waiting()
    assert len({waiting[job].site_factor for job in jobs["beta"]}) == 1
    consortium.succeed("rollback")
    assert set(consortium.slurm.users_priorities_in_force(MEMBERS).values()) == {0}


def test_a_job_that_slurmctld_keeps_waiting_for_accounting_keeps_no_other_job_waiting(
    consortium: Consortium,
) -> None:
    """Before 24.11 slurmctld waits 5 s for the number that slurmdbd is to give a job."""
    cluster = consortium.cluster
    first, last = (cluster.submit("beta", 60, processors=ALL_CPUS) for _ in range(2))
    consortium.await_accounted(first, last)
    slurm = connect(Connection(environment=cluster.environment))
    release = Release.parse(slurm.layout().version)
    assert release is not None
    waits = release.series < "24.11"  # later ones give the number themselves
    cluster.freeze("slurmdbd")
    try:
        new = cluster.submit("beta", 60, processors=ALL_CPUS)
        values = {str(job): nice for nice, job in enumerate((first, new, last), start=1)}
        left = {str(new): TOO_SLOW} if waits else {}
        consortium.until(
            lambda: slurm.write("nice", values, check=lambda: 2.0) == left,
            what="slurmctld to ask slurmdbd",
        )
        assert {job: consortium.waiting()[job].nice for job in (first, last)} == {first: 1, last: 3}
    finally:
        cluster.thaw("slurmdbd")
    consortium.until(lambda: slurm.write("nice", values) == {}, what="the new job's nice")
    assert consortium.waiting()[new].nice == 2
