"""Whatever is killed or asked to stop, nothing is lost and the next cycle goes on."""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.store import PushState, Store
from tests.end_to_end.consortium import ALL_CPUS, GUESTS, MEMBERS, Consortium, RunningDaemon
from tests.leases import is_locked
from tests.processes import has_ended
from tests.store.servers import held_by_another

pytestmark = pytest.mark.real_slurm

SPEED = 1
JOBS_EACH = 100
ROUNDS = 4
MISSED_SECONDS = 20.0
"""A push that has not been seen by then was over too soon to be seen."""


@pytest.fixture(scope="module", autouse=True)
def queue(cluster: PrivateSlurm) -> dict[int, str]:
    """Three hundred pending jobs with nice of their users' own, and what none of us may touch.

    A guest's job runs on all nodes, which earns nobody anything, so that the organization listed
    first leads: listing them anew turns the whole order around. Returns job -> account.
    """
    guests = cluster.submit(GUESTS, 36_000, processors=ALL_CPUS)
    cluster.wait_until(
        lambda: cluster.run("squeue", "-h", "-j", str(guests), "-o", "%T").strip() == "RUNNING",
        real_seconds=120,
        what="the guest's job to start, so that all others wait",
    )
    return {
        cluster.submit(name, 60, processors=ALL_CPUS, nice=number): name
        for number in range(1, JOBS_EACH + 1)
        for name in MEMBERS
    }


@pytest.fixture(autouse=True)
def _as_submitted(cluster: PrivateSlurm, queue: dict[int, str]) -> None:
    """Takes back what another store's daemon has set: to a new one, somebody has set it by hand."""
    cluster.run("scontrol", "update", f"JobId={','.join(map(str, queue))}", "SiteFactor=0")


@pytest.fixture(scope="module")
def guests_job(cluster: PrivateSlurm, queue: dict[int, str]) -> int:
    return cluster.submit(GUESTS, 60, processors=ALL_CPUS, nice=77)


def turned(times: int) -> Sequence[str]:
    """The organizations, listed from another one on."""
    start = times % len(MEMBERS)
    return MEMBERS[start:] + MEMBERS[:start]


def test_a_daemon_killed_in_the_middle_of_pushes_loses_nothing(
    consortium: Consortium, queue: dict[int, str], guests_job: int
) -> None:
    chance = random.Random(7)
    asked = {job: waiting.nice for job, waiting in consortium.waiting().items()}
    cut_short = 0
    for number in range(ROUNDS):
        consortium.configure(channel="nice", organizations=turned(number))
        with consortium.daemon() as daemon:
            consortium.await_push()
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


def test_a_daemon_with_a_journal_goes_on_without_its_store_and_can_be_killed_then(
    consortium: Consortium, cluster: PrivateSlurm, queue: dict[int, str], tmp_path: Path
) -> None:
    def nice_of(job: int) -> int | None:
        found = consortium.waiting().get(job)
        return None if found is None else found.nice

    asked = {job: waiting.nice for job, waiting in consortium.waiting().items()}
    consortium.configure(channel="nice", journal=tmp_path / "journal")
    with consortium.daemon() as daemon, Store.open(consortium.url()) as store:
        consortium.until(lambda: consortium.good_cycles() > 1, what="the first cycles")
        points = consortium.points()
        with held_by_another(store):
            job = cluster.submit(MEMBERS[0], 60, processors=ALL_CPUS, nice=5)
            new = 5 - points[MEMBERS[0]]
            consortium.until(lambda: nice_of(job) == new, what="the new job's points")
            name = cluster.spec.name
            counted = f'shapleyprio_pushes_total{{cluster="{name}",state="without_store"}} 1.0'
            consortium.until(
                lambda: counted in consortium.metrics().splitlines(), what="the metric"
            )
            daemon.kill()
    assert all(push.key != str(job) for push in consortium.pushes())
    assert consortium.once() == 0
    (push,) = [push for push in consortium.pushes() if push.key == str(job)]
    assert (push.state, push.original, push.new) == (PushState.APPLIED, 5, new)

    consortium.succeed("rollback")
    found = {number: waiting.nice for number, waiting in consortium.waiting().items()}
    assert found == {**asked, job: 5}
    consortium.cancel(job)


WRITTEN = re.compile(r"Factor to ([0-9]+) for JobId=")
"""What slurmctld's log says of each site factor that is written, from the smallest one on."""


class Heads:
    """Two head nodes, whose daemons give other points each time, so that Slurm's log names them.

    Args:
        consortium: with the store of both.
    """

    def __init__(self, consortium: Consortium) -> None:
        self.consortium = consortium
        self._log = consortium.cluster.directory / "log" / "slurmctld.log"
        self._begin = 0
        self._primes = iter((11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71))
        self._token_of: dict[int, int] = {}

    def are_logged(self, job: int) -> bool:
        """Writes a site factor, and returns whether slurmctld's log says so."""
        scontrol = ("scontrol", "update", f"JobId={job}")
        self.consortium.cluster.run(*scontrol, "SiteFactor=7")
        found = WRITTEN.findall(self._log.read_text())
        self.consortium.cluster.run(*scontrol, "SiteFactor=0")
        self._begin = len(self._log.read_text())
        return found[-1:] == [str(2**31 + 7)]

    def configure(self, head: int, token: int) -> None:
        """Gives a daemon points that nobody had, for when it steers by that token."""
        part = 1000 * next(self._primes)
        self.consortium.configure(influence=2 * part, file=self._file(head))
        self._token_of |= dict.fromkeys((3 * part, 2 * part, part), token)

    def start(self, head: int) -> RunningDaemon:
        return self.consortium.start_daemon("--standby", "--config", str(self._file(head)))

    def tokens(self) -> list[int]:
        """By which token each site factor was written, in the order of slurmctld's log."""
        log = self._log.read_text()[self._begin :]
        return [self._token_of[int(value) - 2**31] for value in WRITTEN.findall(log)]

    def await_steered(self, token: int) -> None:
        """Waits until the daemon of that token has given its points to all jobs."""
        points = {value for value, of in self._token_of.items() if of == token}

        def are_given() -> bool:
            factors = {job.site_factor for job in self.consortium.waiting().values()}
            return factors - {0, None} <= points and self.consortium.open_pushes() == 0

        self.consortium.until(lambda: token in self.tokens(), what=f"a write by token {token}")
        self.consortium.until(are_given, what=f"the points of token {token} at all jobs")

    def freeze(self, head: int, daemon: RunningDaemon, token: int) -> list[psutil.Process]:
        """Freezes a daemon amid its writes, with its scontrols, as the kernel freezes a unit.

        Returns:
            the scontrols, which have orders left to do.
        """
        cluster = self.consortium.cluster
        ours = psutil.Process(daemon.process.pid)
        while True:
            self.configure(head, token)
            daemon.signal(signal.SIGHUP)
            end = time.monotonic() + MISSED_SECONDS
            while not fed(ours) and time.monotonic() < end:
                time.sleep(0.005)
            cluster.freeze("slurmctld")  # or they would be done with them before long
            daemon.signal(signal.SIGSTOP)
            scontrols = [scontrol for scontrol in fed(ours) if is_suspended(scontrol)]
            cluster.thaw("slurmctld")
            if scontrols and not is_locked(self.consortium.url()):
                return scontrols
            for process in (ours, *scontrols):
                process.resume()

    def _file(self, head: int) -> Path:
        return self.consortium.directory / f"head{head}.toml"


def is_suspended(process: psutil.Process) -> bool:
    """Suspends a process that has not ended yet; returns whether there was one."""
    try:
        process.suspend()
    except psutil.Error:
        return False
    return True


def fed(daemon: psutil.Process) -> list[psutil.Process]:
    """The scontrols that take orders from the daemon."""
    found = []
    for child in daemon.children():
        with suppress(psutil.Error):
            words = child.cmdline()
            if len(words) == 1 and words[0].endswith("scontrol"):
                found.append(child)
    return found


def test_no_write_of_who_steered_before_comes_after_the_first_of_who_steers_now(
    consortium: Consortium, cluster: PrivateSlurm, queue: dict[int, str]
) -> None:
    heads = Heads(consortium)
    if not heads.are_logged(next(iter(queue))):
        pytest.skip("slurmctld of this release does not log what is written")
    heads.configure(1, token=1)
    heads.configure(2, token=2)
    first = heads.start(1)
    heads.await_steered(1)
    second = heads.start(2)
    consortium.until(lambda: "standing by" in second.log(), what="the standby")

    scontrols = heads.freeze(1, first, token=1)
    heads.await_steered(2)
    heads.configure(1, token=3)
    for scontrol in scontrols:
        scontrol.resume()
    consortium.until(lambda: all(map(has_ended, scontrols)), what="the end of the scontrols")
    first.signal(signal.SIGCONT)
    consortium.until(lambda: "standing by" in first.log(), what="the one that was frozen")
    first.signal(signal.SIGHUP)

    heads.configure(2, token=2)
    second.signal(signal.SIGHUP)
    consortium.await_push()
    second.kill()
    heads.await_steered(3)
    consortium.await_cycles()
    assert consortium.order() == list(MEMBERS)
    points, waiting = consortium.points(), consortium.waiting()
    assert all(waiting[job].site_factor == points[name] for job, name in queue.items())
    leads = f'shapleyprio_leader{{cluster="{cluster.spec.name}"}} 1.0'
    assert leads in consortium.metrics().splitlines()

    heads.configure(2, token=4)
    second = heads.start(2)
    consortium.until(lambda: "standing by" in second.log(), what="the standby")
    heads.configure(1, token=3)
    first.signal(signal.SIGHUP)
    consortium.await_push()
    assert first.end() == 0
    heads.await_steered(4)
    assert second.end() == 0
    tokens = heads.tokens()
    assert set(tokens) == {1, 2, 3, 4}
    assert tokens == sorted(tokens)


def test_sigterm_finishes_the_cycle_and_stops(
    consortium: Consortium, queue: dict[int, str]
) -> None:
    consortium.configure()
    with consortium.daemon() as daemon:
        consortium.await_push()
        assert daemon.end() == 0
    (cycle,) = consortium.cycles()
    assert (cycle.outcome, cycle.written) == ("ok", len(queue))
    assert {push.state for push in consortium.pushes()} == {PushState.APPLIED}
    points = consortium.points()
    waiting = consortium.waiting()
    assert all(waiting[job].site_factor == points[name] for job, name in queue.items())
    with consortium.reading() as view:
        lease = view.lease.read()
    assert lease is not None
    assert not lease.is_held


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

    gauges = "shapleyprio_organization_balance"
    cluster.restart("slurmctld")  # saves what the fixture has undone, or the kill would revive it
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
