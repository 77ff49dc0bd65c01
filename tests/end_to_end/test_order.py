"""Who starts next: hours of a consortium's life on an accelerated clock."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.slurm.channels import CHANNELS
from tests.end_to_end.consortium import ALL_CPUS, QOS, Consortium

pytestmark = pytest.mark.real_slurm

SPEED = 60
BORROWED_SECONDS = 120
JOB_SECONDS = 60


@pytest.fixture(scope="module")
def since(cluster: PrivateSlurm, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Makes a history in which alpha works on gamma's node and gamma asks nothing; its begin."""
    consortium = Consortium(cluster, tmp_path_factory.mktemp("history"))
    borrow(consortium)
    return consortium.since


def borrow(consortium: Consortium) -> None:
    """Lets alpha work on its own node and gamma's, and beta on its own."""
    cluster = consortium.cluster
    work = [
        cluster.submit(account, BORROWED_SECONDS, processors=2, partition=partition)
        for account, partition in (("alpha", "alpha"), ("alpha", "gamma"), ("beta", "beta"))
    ]
    await_end(consortium, work)


def await_end(consortium: Consortium, jobs: Sequence[int]) -> None:
    consortium.until(lambda: not any(consortium.state(job) for job in jobs), what="the jobs to end")


@pytest.mark.parametrize("channel", CHANNELS)
def test_who_lends_much_and_asks_little_starts_next_though_submitted_last(
    consortium: Consortium, since: int, channel: str
) -> None:
    cluster = consortium.cluster
    consortium.since = since
    consortium.configure(channel=channel, poll_seconds=30)
    guest = consortium.occupy()
    users_nice = (("alpha", 0), ("alpha", 0), ("beta", 500), ("beta", 0), ("gamma", 0))
    alpha1, alpha2, beta1, beta2, gamma = jobs = [
        cluster.submit(
            account,
            JOB_SECONDS,
            processors=ALL_CPUS,
            nice=nice or None,
            extra=(f"--qos={account}",),
        )
        for account, nice in users_nice
    ]
    expected = [gamma, beta2, beta1, alpha1, alpha2]

    with consortium.daemon() as daemon:

        def ranked() -> bool:
            waiting = consortium.waiting()
            step = [waiting[job].priority for job in (gamma, beta2, beta1, alpha1)]
            return step == sorted(set(step), reverse=True)

        consortium.until(ranked, what="priorities in the order of the balances")
        consortium.until(lambda: bool(consortium.points()), what="the cycle to be recorded")
        assert consortium.order() == ["gamma", "beta", "alpha"]  # what runs later may turn it
        consortium.cancel(guest)
        assert consortium.starts(jobs) == expected
        assert daemon.end() == 0

    consortium.succeed("rollback")
    assert consortium.slurm.qos_priorities() == {**QOS, "normal": 0}
    stored = consortium.slurm.account_priorities().values()
    assert {priority.own for priority in stored} == {None}
    await_end(consortium, jobs)  # the last one would still run when the next test's ledger begins


def test_a_department_is_served_with_the_faculty_that_lent_to_it(consortium: Consortium) -> None:
    """What alpha owes gamma stays within their union, which is listed before beta."""
    cluster = consortium.cluster
    borrow(consortium)
    consortium.configure(poll_seconds=30, parents={"alpha": "gamma"})
    guest = consortium.occupy()
    beta, alpha = jobs = [
        cluster.submit(account, JOB_SECONDS, processors=ALL_CPUS) for account in ("beta", "alpha")
    ]
    with consortium.daemon() as daemon:
        consortium.until(lambda: bool(consortium.points()), what="a cycle to be recorded")
        assert consortium.order() == ["gamma", "alpha", "beta"]
        explained = consortium.succeed("explain", str(alpha))
        assert "First, all of gamma ranks as one, and is even: 1 of 2." in " ".join(
            explained.split()
        )
        consortium.cancel(guest)
        assert consortium.starts(jobs) == [alpha, beta]
        assert daemon.end() == 0
    consortium.succeed("rollback")
