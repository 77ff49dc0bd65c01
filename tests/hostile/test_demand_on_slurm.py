"""Attacks on estimates: work that waits, and could not start even if it were its turn.

Each is tried on one real Slurm by alpha, which has had all processors just before. Beside its gain
stands the one that it would have had if a job counted since its submission unless it is held,
dependent or not yet due, which is what squeue's plain list says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from shapleyprio.config import load_config
from shapleyprio.daemon.estimation.estimating import StoreEstimator
from shapleyprio.daemon.estimation.messages import EstimateRequest, WaitingJob
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.testbed.machine import TestbedError
from shapleyprio.slurm.port import PendingJob
from shapleyprio.store import EstimateRow, Store
from tests.daemon.estimation.listening import Listening
from tests.end_to_end.consortium import CLUSTER, SETTINGS, Consortium, clear

pytestmark = pytest.mark.real_slurm

SPEED = 100
ORGANIZATIONS = ("alpha", "beta")
NODES = {"alpha": ("a1",), "beta": ("b1",), "spare": ("s1",)}
HOGGED_SECONDS = 600
IDLE_SECONDS = 960
WORK = "--wrap=exec sleep 36000"
PHANTOM = ("--partition=alpha", "--ntasks=3", "--time=10-0")
"""Wider than its partition, and as wide as what is idle: nobody could run more at once."""

IN_TIME = frozenset({"BeginTime", "Dependency", "DependencyNeverSatisfied", "JobArrayTaskLimit"})
NOTHING_MINUTES = 0.1
MUCH_MINUTES = 0.5


@dataclass
class Gains:
    """By how many minutes later an attack lets alpha have been served than without it.

    Attributes:
        now: what it brings.
        honest: what it may bring, for what could have started, and since then.
        by_submission: what it brought if jobs counted since their submission.
        reason: Slurm's, at the end of the time for which it waited.
    """

    now: float
    honest: float
    by_submission: float
    reason: str


@dataclass
class Attack:
    """A job of alpha's.

    Attributes:
        job_id: Slurm's own number.
        could_start: second since which nothing but its turn is missing; None if more is.
        tasks: how many of them could run at the same time.
        reason: as Slurm says.
    """

    job_id: int
    could_start: int | None = None
    tasks: int = 1
    reason: str = ""


class Attackers:
    """Alpha's users and the daemon, on a real Slurm."""

    def __init__(self, consortium: Consortium) -> None:
        self.consortium = consortium
        self.cluster = consortium.cluster
        consortium.configure(organizations=ORGANIZATIONS, rule="shapley")
        self._store = Store.open(consortium.url(), create=True)
        self._listening = Listening()
        self._cycle = Cycle(
            load_config(consortium.config_file),
            consortium.slurm,
            self._store.cluster(CLUSTER),
            clock=self.cluster.now,
            estimates=self._listening,
        )
        self.attacks: dict[str, Attack] = {}

    def submit(self, name: str, *options: str, processors: int = 2, account: str = "alpha") -> int:
        """What a user without rights does."""
        elsewhere = any("--partition" in one for one in options)
        words = [] if elsewhere else ["--partition=alpha"]
        self.attacks[name] = Attack(self._sbatch(account, processors, *words, *options))
        return self.attacks[name].job_id

    def try_to_submit(self, name: str, *options: str) -> None:
        """The same, where some releases of Slurm refuse the job at once."""
        try:
            self.submit(name, *options)
        except TestbedError as refusal:
            if "Requested node configuration is not available" not in str(refusal):
                raise

    def take(self, account: str, processors: int, *options: str) -> int:
        """A job that starts at once."""
        job = self._sbatch(account, processors, *options)
        self.consortium.await_start(job)
        return job

    def cycle(self) -> None:
        self._cycle.run()

    def note_reasons(self) -> None:
        waiting = self.consortium.waiting()
        for attack in self.attacks.values():
            attack.reason = waiting[attack.job_id].reason

    def let_start(self, *names: str) -> None:
        """From now on nothing but their turn is missing."""
        now = self.cluster.now()
        for name in names:
            self.attacks[name].could_start = now

    def gains(self) -> dict[str, Gains]:
        """What each attack that waits brings, after one more cycle."""
        self.cycle()
        waiting = self.consortium.waiting()
        counting = {job.job_id: job for job in self._listening.waiting}
        without = self._late([])
        found = {}
        for name, attack in self.attacks.items():
            job = waiting[attack.job_id]
            since = attack.could_start
            honest = [] if since is None else [_counted(job, since, attack.tasks)]
            now = [counting[job.job_id]] if job.job_id in counting else []
            found[name] = Gains(
                now=self._late(now) - without,
                honest=self._late(honest) - without,
                by_submission=self._late(_by_submission(job)) - without,
                reason=attack.reason,
            )
        return found

    def close(self) -> None:
        self._store.close()

    def _late(self, waiting: Sequence[WaitingJob]) -> float:
        """By how many minutes alpha was served later than it earned."""
        answer = StoreEstimator(self._store.cluster(CLUSTER)).answer(
            EstimateRequest(
                organizations=ORGANIZATIONS,
                waiting=tuple(waiting),
                overlap=3600,
                coalitions=100,
                seed=0,
            )
        )
        rows: Mapping[str, EstimateRow] = {row.organization: row for row in answer.rows}
        parts = sum(row.parts for row in rows.values())
        return (rows["alpha"].contribution.after(0) - rows["alpha"].utility) / parts / 60

    def _sbatch(self, account: str, processors: int, *options: str) -> int:
        words = ("sbatch", "--parsable", f"--account={account}", "--output=/dev/null")
        count = [] if any("--ntasks" in one for one in options) else [f"--ntasks={processors}"]
        limit = [] if any("--time" in one for one in options) else ["--time=120"]
        return int(self.cluster.run(*words, *count, *limit, *options, WORK))


def _counted(job: PendingJob, since: int, tasks: int) -> WaitingJob:
    return WaitingJob(
        job_id=job.job_id,
        organization="alpha",
        account=job.account,
        user=job.user,
        release=since,
        limit=job.limit,
        tasks=tasks,
        processors=tasks * job.processors,
        partition=job.partition,
    )


def _by_submission(job: PendingJob) -> list[WaitingJob]:
    """The job as an estimate took it in that knew no more than squeue's plain list."""
    is_due = job.priority > 0 and job.reason not in IN_TIME
    return [_counted(job, job.submit, job.tasks)] if is_due else []


@pytest.fixture(scope="module")
def cluster(prepared_database: Path) -> Iterator[PrivateSlurm]:
    spec = ClusterSpec(
        name=CLUSTER,
        partitions=NODES,
        cpus_per_node=2,
        speed=SPEED,
        extra={
            **SETTINGS,
            "AccountingStorageEnforce": "associations,limits,qos",
            "Licenses": "seats:2",
        },
    )
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder, "c"), spec, prepared=prepared_database) as slurm,
    ):
        slurm.add_accounts({"alpha": None, "beta": None, "capped": "alpha"})
        sacctmgr = ("sacctmgr", "-i")
        slurm.run(*sacctmgr, "add", "qos", "narrow", "set", "MaxTRESPerUser=cpu=1")
        for account in ("alpha", "capped"):
            where = ("where", f"name={account}", "set", "qos+=narrow")
            slurm.run(*sacctmgr, "modify", "account", *where)
        slurm.run(*sacctmgr, "modify", "account", "where", "name=capped", "set", "GrpTRES=cpu=1")
        yield slurm


@pytest.fixture(scope="module")
def attackers(
    cluster: PrivateSlurm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Attackers]:
    """Alpha has had all processors."""
    consortium = Consortium(cluster, tmp_path_factory.mktemp("consortium"))
    attackers = Attackers(consortium)
    try:
        hog = attackers.take("alpha", 4, "--partition=all", "--nodelist=a1,b1")
        consortium.wait(HOGGED_SECONDS)
        consortium.cancel(hog)
        yield attackers
    finally:
        attackers.close()
        consortium.close()
        clear(cluster)


@pytest.fixture(scope="module")
def while_idle(attackers: Attackers) -> dict[str, Gains]:
    """Attacks by jobs that cannot start on idle processors, at the end of 16 minutes.

    All are tried at once, and each is weighed as if it were the only one.
    """
    cluster, consortium = attackers.cluster, attackers.consortium
    cluster.run("scontrol", "update", "NodeName=s1", "State=DRAIN", "Reason=test")
    cluster.run("scontrol", "update", "PartitionName=spare", "MaxTime=10")
    reservation = ("StartTime=now+2days", "Duration=600", "Nodes=a1", "Accounts=alpha")
    cluster.run("scontrol", "create", "reservation", "ReservationName=later", *reservation)
    seats = attackers.take("beta", 1, "--partition=beta", "--licenses=seats:2")
    first = attackers.submit("first", "--hold")
    attackers.submit("held", "--hold")
    attackers.try_to_submit("phantom", "--hold", *PHANTOM)
    attackers.try_to_submit("phantom that is not held", *PHANTOM)
    attackers.submit("dependent", f"--dependency=afterany:{first}")
    not_yet_due = attackers.submit("not yet due", "--begin=now+1days")
    attackers.submit("beyond the limit of its account", account="capped")
    attackers.submit("beyond the limit of its QOS", "--qos=narrow")
    attackers.submit("without a license", "--licenses=seats:2")
    attackers.submit("in a reservation", "--reservation=later")
    attackers.try_to_submit("on more nodes than there are", "--nodes=2")
    attackers.submit("on a node that is drained", "--partition=spare", "--time=5")
    attackers.submit("longer than its partition lets", "--partition=spare")
    attackers.cycle()
    consortium.wait(IDLE_SECONDS / 2)
    attackers.cycle()
    attackers.note_reasons()
    consortium.wait(IDLE_SECONDS / 2)
    attackers.cycle()
    blocks = attackers.take("beta", 1, "--partition=alpha")
    attackers.let_start("held", "dependent", "beyond the limit of its account")
    begin = cluster.now() + 200
    cluster.run("scontrol", "update", f"JobId={not_yet_due}", f"StartTime=uts{begin}")
    attackers.attacks["not yet due"].could_start = begin
    del attackers.attacks["first"]
    for name in {"held", "phantom"} & attackers.attacks.keys():
        # it complains of the phantom, and releases it
        release = ("scontrol", "release", str(attackers.attacks[name].job_id))
        cluster.run(*release, check=False)
    consortium.cancel(first)
    where = ("account", "where", "name=capped", "set", "GrpTRES=cpu=-1")
    cluster.run("sacctmgr", "-i", "modify", *where)

    def eligible() -> bool:
        waiting = consortium.waiting()
        released = ("held", "dependent", "not yet due")
        jobs = [waiting[attackers.attacks[name].job_id] for name in released]
        return all(job.eligible and job.waits_for_its_turn for job in jobs)

    consortium.until(eligible, what="the releases to be known")
    found = attackers.gains()
    consortium.cancel(*(attack.job_id for attack in attackers.attacks.values()), blocks, seats)
    attackers.attacks.clear()
    return found


@pytest.fixture(scope="module")
def while_busy(
    attackers: Attackers,
    while_idle: dict[str, Gains],  # it comes first
) -> dict[str, Gains]:
    """Attacks by jobs that wait behind others of beta, at the end of 16 minutes."""
    consortium = attackers.consortium
    blocks = attackers.take("beta", 1, "--partition=alpha")
    attackers.take("beta", 1, "--partition=alpha")
    attackers.take("beta", 2, "--partition=beta")
    attackers.submit("throttled", "--array=1-100%1", processors=1)
    attackers.submit("put off", "--nice=1000")
    attackers.cycle()
    throttled = attackers.attacks["throttled"]
    throttled.could_start = consortium.waiting()[throttled.job_id].submit
    consortium.wait(IDLE_SECONDS)
    attackers.note_reasons()
    by_array = attackers.gains()["throttled"]
    consortium.cancel(attackers.attacks.pop("throttled").job_id)
    later = attackers.submit("later", processors=1)
    consortium.until(
        lambda: consortium.waiting()[later].site_factor == 0, what="the later job to be seen"
    )
    attackers.cycle()  # it has its points from now on, as all of alpha's jobs
    attackers.let_start("put off")
    consortium.cancel(blocks)
    consortium.await_start(later)
    consortium.await_accounted(later)
    del attackers.attacks["later"]
    attackers.note_reasons()
    return {"throttled": by_array, **attackers.gains()}


def _assert_nothing_gained(found: Gains) -> None:
    print(
        f"{found.by_submission:.2f} -> {found.now:.3f} min (honest {found.honest:.3f}),"
        f" {found.reason}"
    )
    assert found.now <= found.honest + NOTHING_MINUTES, found
    assert found.by_submission >= MUCH_MINUTES, found


ROOMLESS = (
    *("phantom", "phantom that is not held"),
    *("on a node that is drained", "longer than its partition lets"),
)
"""What no coalition could ever run in its partition is worth nothing, even if it counts."""


@pytest.mark.parametrize(
    "attack",
    [
        *("held", "dependent", "not yet due"),
        *("beyond the limit of its account", "beyond the limit of its QOS"),
        *("without a license", "in a reservation", "on more nodes than there are"),
        *ROOMLESS,
    ],
)
def test_be_owed_for_work_that_could_not_start(while_idle: dict[str, Gains], attack: str) -> None:
    if attack not in while_idle:
        pytest.skip("this release of Slurm refuses the job")
    if attack in ROOMLESS:
        found = while_idle[attack]
        assert max(found.now, found.by_submission) <= found.honest + NOTHING_MINUTES, found
    else:
        _assert_nothing_gained(while_idle[attack])


def test_be_owed_for_more_tasks_than_may_run_at_once(while_busy: dict[str, Gains]) -> None:
    _assert_nothing_gained(while_busy["throttled"])


def test_be_owed_for_work_that_one_s_own_organization_puts_off(
    while_busy: dict[str, Gains],
) -> None:
    _assert_nothing_gained(while_busy["put off"])
