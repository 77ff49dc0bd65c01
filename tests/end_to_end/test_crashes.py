"""Whatever is killed or asked to stop, nothing is lost and the next cycle goes on."""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Sequence

import pytest

from shapleyprio.store import PushState
from shapleyprio.testbed.cluster import PrivateSlurm
from tests.end_to_end.consortium import ALL_CPUS, GUESTS, MEMBERS, Consortium

pytestmark = pytest.mark.real_slurm

SPEED = 1
JOBS_EACH = 100
ROUNDS = 4


@pytest.fixture(scope="module", autouse=True)
def queue(cluster: PrivateSlurm) -> dict[int, str]:
    """Three hundred waiting jobs with nice of their users' own, and what none of us may touch.

    A guest's job runs on all nodes, which earns nobody anything, so that the organization listed
    first leads: listing them anew turns the whole order around. Returns job -> account.
    """
    cluster.submit(GUESTS, 36_000, processors=ALL_CPUS)
    return {
        cluster.submit(name, 60, processors=ALL_CPUS, nice=number): name
        for number in range(1, JOBS_EACH + 1)
        for name in MEMBERS
    }


@pytest.fixture(scope="module")
def guests_job(cluster: PrivateSlurm, queue: dict[int, str]) -> int:
    return cluster.submit(GUESTS, 60, processors=ALL_CPUS, nice=77)


def turned(times: int) -> Sequence[str]:
    """The organizations, listed from another one on."""
    start = times % len(MEMBERS)
    return MEMBERS[start:] + MEMBERS[:start]


def await_push(consortium: Consortium) -> None:
    consortium.until(lambda: consortium.open_pushes() > 0, what="a push to begin")


def test_a_daemon_killed_in_the_middle_of_pushes_loses_nothing(
    consortium: Consortium, queue: dict[int, str], guests_job: int
) -> None:
    chance = random.Random(7)
    asked = {job: waiting.nice for job, waiting in consortium.waiting().items()}
    cut_short = 0
    for number in range(ROUNDS):
        consortium.configure(channel="nice", organizations=turned(number))
        with consortium.daemon() as daemon:
            await_push(consortium)
            time.sleep(chance.uniform(0, 0.05))  # the push takes some tenths of a second
            daemon.kill()
        cut_short += consortium.open_pushes() > 0
        changed_by_user = chance.choice(list(queue))
        asked[changed_by_user] = 1000 + number
        consortium.set_nice(changed_by_user, 1000 + number)
    assert cut_short >= ROUNDS // 2

    consortium.once()
    assert consortium.once() == 0
    assert consortium.open_pushes() == 0
    points = consortium.points(consortium.from_scratch())
    assert consortium.points() == points
    assert consortium.order() == list(turned(ROUNDS - 1))
    now = {job: waiting.nice for job, waiting in consortium.waiting().items()}
    assert now == {job: nice - points.get(queue.get(job, ""), 0) for job, nice in asked.items()}
    assert now[guests_job] == 77

    consortium.succeed("rollback")
    assert {job: waiting.nice for job, waiting in consortium.waiting().items()} == asked


def test_a_standby_goes_on_where_a_killed_daemon_left_off(
    consortium: Consortium, queue: dict[int, str]
) -> None:
    consortium.configure(organizations=turned(0))
    with consortium.daemon() as first, consortium.daemon("--standby") as second:
        consortium.until(lambda: "standing by" in second.log(), what="the standby")
        consortium.await_cycles()
        consortium.configure(organizations=turned(1))
        for daemon in (first, second):
            daemon.signal(signal.SIGHUP)
        await_push(consortium)
        first.kill()
        consortium.until(lambda: "steering" in second.log(), what="the standby to take over")
        consortium.await_cycles()
        assert consortium.open_pushes() == 0
        assert consortium.order() == list(turned(1))
        points, waiting = consortium.points(), consortium.waiting()
        assert all(waiting[job].site_factor == points[name] for job, name in queue.items())
        leads = f'shapleyprio_leader{{cluster="{consortium.cluster.spec.name}"}} 1.0'
        assert leads in consortium.metrics().splitlines()
        assert second.end() == 0


def test_sigterm_finishes_the_cycle_and_stops(
    consortium: Consortium, queue: dict[int, str]
) -> None:
    consortium.configure()
    with consortium.daemon() as daemon:
        await_push(consortium)
        assert daemon.end() == 0
    (cycle,) = consortium.cycles()
    assert (cycle.outcome, cycle.written) == ("ok", len(queue))
    assert {push.state for push in consortium.pushes()} == {PushState.APPLIED}
    points = consortium.points()
    waiting = consortium.waiting()
    assert all(waiting[job].site_factor == points[name] for job, name in queue.items())
    with consortium.reading() as view:
        lease = view.lease()
    assert lease is not None
    assert not lease.is_held


def test_sighup_takes_a_good_configuration_over_and_keeps_the_old_one_instead_of_a_bad_one(
    consortium: Consortium, queue: dict[int, str]
) -> None:
    consortium.configure(influence=20_000, poll_seconds=3600)
    with consortium.daemon() as daemon:
        consortium.until(lambda: consortium.good_cycles() == 1, what="the only cycle this hour")
        assert consortium.points() == {"alpha": 30_000, "beta": 20_000, "gamma": 10_000}

        consortium.configure(influence=40_000, poll_seconds=1)
        daemon.signal(signal.SIGHUP)
        consortium.until(lambda: consortium.good_cycles() == 2, what="the new interval")
        new = {"alpha": 60_000, "beta": 40_000, "gamma": 20_000}
        assert consortium.points() == new

        good = consortium.config_file.read_text()
        consortium.config_file.write_text(good.replace("influence = 40000", "influense = 10"))
        daemon.signal(signal.SIGHUP)
        consortium.until(lambda: "is refused" in daemon.log(), what="the refusal")
        assert "did you mean 'influence'?" in daemon.log()
        consortium.await_cycles()
        assert consortium.points() == new
        assert daemon.end() == 0


def test_one_process_at_a_time_steers_a_cluster(consortium: Consortium) -> None:
    consortium.configure()
    with consortium.daemon() as daemon:
        consortium.until(lambda: consortium.good_cycles() > 0, what="the first cycle")
        refused = consortium.run("daemon")
        assert refused.returncode == 6
        (line,) = refused.stderr.splitlines()
        assert f"process {daemon.process.pid} on" in line
        daemon.kill()  # and leaves its lease behind
    consortium.succeed("daemon", "--once")


def test_a_controller_killed_right_after_a_push_gets_the_priorities_again(
    consortium: Consortium, cluster: PrivateSlurm, queue: dict[int, str]
) -> None:
    def steered() -> bool:
        points, waiting = consortium.points(), consortium.waiting()
        return all(waiting[job].site_factor == points[name] for job, name in queue.items())

    def failures() -> int:
        found = re.search(
            r'^shapleyprio_cycles_total\{.*outcome="slurm_unavailable"\} ([0-9.]+)$',
            consortium.metrics(),
            re.MULTILINE,
        )
        return int(float(found[1])) if found else 0

    gauges = "shapleyprio_organization_"
    consortium.configure(organizations=turned(1))
    with consortium.daemon() as daemon:
        consortium.until(lambda: any(p.new for p in consortium.pushes()), what="the push to begin")
        consortium.until(lambda: consortium.open_pushes() == 0, what="the push to end")
        cluster.kill("slurmctld")
        try:
            consortium.until(lambda: failures() >= 1, what="a cycle to fail")
            assert gauges not in consortium.metrics()
            once = consortium.run("daemon", "--once")
            assert once.returncode == 3
            (line,) = once.stderr.splitlines()
            assert line.startswith("shapleyprio: slurmctld does not answer")
            before = failures()
            consortium.until(lambda: failures() > before, what="the daemon to try again")
            assert gauges not in consortium.metrics()
        finally:
            cluster.restart("slurmctld")
        consortium.await_cycles()
        assert steered()
        assert gauges in consortium.metrics()
        assert daemon.end() == 0
    outcomes = [cycle.outcome for cycle in consortium.cycles()]
    assert outcomes[0] == outcomes[-1] == "ok"
    assert "slurm_unavailable" in outcomes
