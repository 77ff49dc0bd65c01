"""The daemon's side: cycles that rank by estimates of real workers, and what if these fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from structlog.testing import capture_logs

from shapleyprio.daemon.estimation import live
from shapleyprio.daemon.estimation.estimating import StoreEstimator
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.estimation.messages import EstimateRequest, WaitingJob
from shapleyprio.daemon.estimation.worker import WORKER, EstimationWorker
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.replay.workloads.choices import EXACT_ORGANIZATIONS
from shapleyprio.store import Store
from tests.daemon.consortium import FIRST, LAST, NAME, Cluster, config
from tests.daemon.drift.conftest import run
from tests.store.examples import BEGIN, watermark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shapleyprio.config import Config
    from shapleyprio.daemon.estimation.messages import EstimateAnswer
    from shapleyprio.daemon.steering.report import CycleReport
    from shapleyprio.store import EstimateRow
    from tests.store.servers import Databases

SHAPLEY = {"rule": "shapley"}
PATIENCE_SECONDS = 120.0
"""On a busy machine a worker takes long to start."""
WORKER_WITH = (
    "import os, sys, time\n"
    "import shapleyprio.daemon.estimation.__main__ as worker\n"
    "import shapleyprio.daemon.estimation.estimating as e\n"
)


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


@dataclass
class Daemon:
    """Cycles on a simulated cluster, with a worker beside, real or not."""

    store: Store
    url: str
    slurm: Cluster = field(default_factory=Cluster)
    program: Sequence[str] = WORKER
    patience: float = PATIENCE_SECONDS
    config: Config = field(default_factory=lambda: config(fairness=SHAPLEY))

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begins anew, with nothing in memory."""
        metrics = Metrics(NAME)
        self.registry = metrics.registry
        self.worker = EstimationWorker(self.url, NAME, self.program)
        self.estimates = LiveEstimates(
            self.store.cluster(NAME),
            self.worker,
            metrics,
            self.patience,
        )
        self.read(self.config)

    def read(self, config: Config) -> None:
        """Takes a configuration over."""
        self.cycle = Cycle(
            config,
            self.slurm,
            self.store.cluster(NAME),
            clock=lambda: self.slurm.now,
            estimates=self.estimates,
        )

    def run(self) -> tuple[CycleReport, list[Mapping[str, object]]]:
        """One cycle, and what was logged."""
        with capture_logs() as lines:
            report = self.cycle.run()
        return report, [
            line
            for line in lines
            if line["log_level"] != "debug" and not line["event"].startswith("waiting for")
        ]

    def count(self, result: str) -> float | None:
        """How many estimates came to that."""
        return self.registry.get_sample_value(
            "shapleyprio_estimates_total", {"cluster": NAME, "result": result}
        )


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    with databases.made("sqlite") as url:
        yield url


@pytest.fixture
def daemon(url: str) -> Iterator[Daemon]:
    with Store.open(url) as store:
        daemon = Daemon(store, url)
        daemon.cycle.run()
        yield daemon
        daemon.estimates.stop()


def contend(slurm: Cluster) -> dict[str, int]:
    """Lets physics and biology wait where DirectContr and the Shapley value do not agree.

    Guests had all nodes and left; biology's job ran on all of physics' nodes, alone on the
    cluster: physics helped with nodes that it needs itself at that very time.
    """
    slurm.submit("biology", processors=12, processing_time=1000)
    slurm.wait(100)
    jobs = {name: slurm.submit(name, processing_time=500) for name in ("physics", "biology")}
    slurm.wait(200)
    return jobs


@pytest.mark.parametrize(("named", "first"), [(True, "biology"), (False, "physics")])
def test_who_works_where_only_others_have_nodes_owes_it_to_them(
    daemon: Daemon, named: bool, first: str
) -> None:
    """In partition pb are nodes of biology alone; in a partition of all nodes it owed nothing."""
    slurm = daemon.slurm

    def submit(account: str, partition: str) -> int:
        where = partition if named else "all"
        return slurm.submit(account, partition=where, processors=4, processing_time=5000)

    for account, partition in (("physics", "pb"), ("guest", "pa")):
        submit(account, partition)
    slurm.wait(800)
    submit("biology", "pa")
    slurm.wait(100)
    waiting = {"physics": submit("physics", "all")}
    slurm.wait(100)
    waiting["biology"] = submit("biology", "all")
    slurm.wait(1)
    report, _ = daemon.run()
    assert report.ranked.rule == "shapley"
    for name, job in waiting.items():
        assert slurm.job(job).site_factor == (FIRST if name == first else LAST)


def test_cycles_rank_by_the_estimate_and_say_so(daemon: Daemon) -> None:
    jobs = contend(daemon.slurm)
    report, lines = daemon.run()
    assert lines == []
    assert (report.ranked.rule, report.ranked.estimated_at) == ("shapley", report.t)
    with daemon.store.cluster(NAME).reading() as view:
        rows = {row.organization: row for row in view.estimates.latest_estimate()}
        standings = {row.organization: row for row in view.history.latest_standings()}
        last = view.history.last_cycle()
    assert last is not None
    assert (last.rule, last.estimated_at) == ("shapley", report.t)
    for name, row in standings.items():
        assert row.contribution == rows[name].contribution.after(0)
        assert row.score == row.balance == row.contribution - row.utility
    # alone, biology has only its own processors for its job of 12
    assert rows["biology"].alone < rows["biology"].utility
    assert {name: daemon.slurm.job(job).site_factor for name, job in jobs.items()} == {
        "physics": FIRST,
        "biology": LAST,
    }
    assert daemon.count("ok") == 2
    sample = daemon.registry.get_sample_value
    labels = {"cluster": NAME, "organization": "physics"}
    assert sample("shapleyprio_estimate_error_part_seconds", labels) == 0
    assert sample("shapleyprio_estimate_timestamp_seconds", {"cluster": NAME}) == report.t
    assert sample("shapleyprio_estimate_coalitions", {"cluster": NAME}) == 4


def test_an_estimate_is_made_anew_when_it_is_due_and_followed_between(daemon: Daemon) -> None:
    contend(daemon.slurm)
    first, _ = daemon.run()
    daemon.slurm.wait(29)
    second, _ = daemon.run()
    assert (second.ranked.rule, second.ranked.estimated_at) == ("shapley", first.t)
    daemon.slurm.wait(1)
    third, _ = daemon.run()
    assert third.ranked.estimated_at == third.t


def test_while_nobody_competes_estimates_are_seldom_but_never_old(daemon: Daemon) -> None:
    estimated = set()
    for _ in range(30):
        daemon.slurm.wait(60)
        report, _ = daemon.run()
        assert report.ranked.rule == "shapley"
        estimated.add(report.ranked.estimated_at)
    assert len(estimated) == 1 + 30 * 60 // 300


def test_after_a_restart_the_same_is_known(daemon: Daemon) -> None:
    contend(daemon.slurm)
    before, _ = daemon.run()
    daemon.estimates.stop()
    daemon.program, daemon.patience = program("import time; time.sleep(600)"), 0.0
    daemon.start()
    after, _ = daemon.run()
    assert (after.ranked.rule, after.ranked.estimated_at) == ("shapley", before.ranked.estimated_at)
    scores, known = ([row.score for row in one.ranked.standings] for one in (after, before))
    assert scores == known


def test_a_cycle_does_not_wait_for_a_slow_worker(daemon: Daemon) -> None:
    daemon.estimates.stop()
    daemon.program, daemon.patience = program("import time; time.sleep(600)"), 0.2
    daemon.slurm.wait(3600)  # what was estimated is too old
    daemon.start()
    report, (line,) = daemon.run()
    assert (report.ranked.rule, report.ranked.estimated_at) == ("directcontr", None)
    assert (line["event"], line["log_level"]) == ("ranking without estimates", "warning")
    report, lines = daemon.run()
    assert (report.ranked.rule, lines) == ("directcontr", [])


class SlowWorker(EstimationWorker):
    """Estimates as they were made when they were asked for, and come when the test wants."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(daemon.url, NAME, WORKER)
        self._estimator = StoreEstimator(daemon.store.cluster(NAME))
        self.asked = threading.Event()
        self.allowed = threading.Semaphore(0)

    def ask(
        self, request: EstimateRequest, *, memory_limit: int, time_limit: float
    ) -> EstimateAnswer:
        answer = self._estimator.answer(request)
        self.asked.set()
        self.allowed.acquire()
        return answer


def test_estimates_that_come_late_do_not_make_the_rule_go_back_and_forth(daemon: Daemon) -> None:
    contend(daemon.slurm)
    daemon.estimates.stop()
    worker = SlowWorker(daemon)
    daemon.estimates = LiveEstimates(
        daemon.store.cluster(NAME),
        worker,
        Metrics(NAME),
        0.0,
    )
    daemon.read(daemon.config)

    def rules(minutes: int) -> list[str]:
        """The rule of each minute; an estimate takes ten of them."""
        found = []
        for minute in range(minutes):
            found.append(daemon.run()[0].ranked.rule)
            daemon.slurm.wait(60)
            if minute % 10 == 9:
                worker.asked.wait(PATIENCE_SECONDS)
                worker.asked.clear()
                running = daemon.estimates._running
                assert running is not None
                worker.allowed.release()
                running.result(PATIENCE_SECONDS)
        return found

    # the one before was made 300 s ago; each new one is ten minutes old when it comes
    assert rules(40) == ["shapley"] * 16 + ["directcontr"] * 24
    worker.allowed.release(99)
    daemon.estimates.stop()


def test_other_organizations_are_estimated_at_once(daemon: Daemon) -> None:
    daemon.run()
    third = {"name": "chemistry", "accounts": ["chemistry"]}
    names = [organization.model_dump() for organization in daemon.config.organizations]
    daemon.read(config(*names, third, fairness=SHAPLEY))
    report, _ = daemon.run()
    assert report.ranked.rule == "shapley"
    assert [row.organization for row in report.ranked.standings] == [
        "physics",
        "biology",
        "chemistry",
    ]


MANY = tuple(f"o{number:02}" for number in range(EXACT_ORGANIZATIONS + 3))
"""Too many organizations to value all of their coalitions."""
WAITING = WaitingJob(99, MANY[0], MANY[0], "ann", BEGIN + 100, 50, 1, 1, "all")


def estimate_of_many(url: str, drawn: int) -> list[EstimateRow]:
    """What a daemon that has just started estimates; `drawn` is the seed that it would draw."""
    chosen = config(
        *({"name": name, "accounts": [name]} for name in MANY),
        fairness=SHAPLEY,
        estimation={"coalitions": 100},
    )
    with Store.open(url, create=True) as store:
        with store.cluster(NAME).transaction() as rows:
            begun = {"opened": BEGIN, "pruned_until": BEGIN}
            rows.ledger.save_watermark(
                watermark(**begun, observed_until=BEGIN + 300, accounted_to=BEGIN + 300)
            )
            rows.runs.put(
                run(job, name, 20 * number, 20 * number + 30 + job % 7, submit=job % 11)
                for job, (number, name) in enumerate(product(range(12), MANY))
                if job % 3 or name < MANY[5]
            )
            rows.observed.observe_capacities({name: {("all",): 1} for name in MANY}, BEGIN)
        estimates = LiveEstimates(
            store.cluster(NAME),
            EstimationWorker(url, NAME, WORKER),
            Metrics(NAME),
            PATIENCE_SECONDS,
            draw_seed=lambda: drawn,
        )
        try:
            assert estimates.contributions(chosen, lambda: [WAITING], BEGIN + 300) is not None
        finally:
            estimates.stop()
        with store.cluster(NAME).reading() as view:
            return view.estimates.latest_estimate()


def test_a_restarted_daemon_draws_the_coalitions_that_the_first_one_drew(tmp_path: Path) -> None:
    stores = [f"sqlite:///{tmp_path / name}" for name in ("one.db", "two.db")]
    first = estimate_of_many(stores[0], drawn=1)
    assert all(row.error > 0 for row in first)
    assert estimate_of_many(stores[0], drawn=2) == first
    other = estimate_of_many(stores[1], drawn=2)
    assert [row.value for row in other] != [row.value for row in first]
    with Store.open(stores[0]) as store, store.cluster(NAME).reading() as view:
        again = StoreEstimator(store.cluster(NAME)).answer(
            EstimateRequest(
                organizations=MANY,
                waiting=(WAITING,),
                overlap=3600,
                coalitions=100,
                seed=view.estimates.sampling_seed() or 0,
            )
        )
    assert list(again.rows) == first


def test_another_rule_never_asks(url: str) -> None:
    with Store.open(url) as store:
        daemon = Daemon(store, url, program=("/nonexistent",), config=config())
        report, lines = daemon.run()
        daemon.estimates.stop()
    assert (report.ranked.rule, report.ranked.estimated_at, lines) == ("directcontr", None, [])


# -- what can go wrong


def failure(url: str, text: str, **estimation: str) -> tuple[str, str]:
    """Result and reason of an estimate that fails, after which DirectContr ranks."""
    with Store.open(url) as store:
        chosen = config(fairness=SHAPLEY, estimation=estimation)
        daemon = Daemon(store, url, program=program(text), config=chosen)
        report, lines = daemon.run()
        daemon.estimates.stop()
    failed, without = lines
    assert (failed["event"], failed["log_level"]) == ("contributions not estimated", "warning")
    assert without["event"] == "ranking without estimates"
    assert report.ranked.rule == "directcontr"
    assert daemon.count(str(failed["result"])) == 1
    return str(failed["result"]), str(failed["why"])


@pytest.mark.parametrize(
    ("text", "result", "why"),
    [
        ("raise SystemExit('it broke')", "failed", "the worker ended with exit code 1: it broke"),
        (
            "print('what?', flush=True); input()",
            "failed",
            "the worker printed no answer, but 'what?'",
        ),
        ("import os; os.kill(os.getpid(), 9)", "failed", "the worker ended with signal 9"),
        (
            WORKER_WITH + "e.StoreEstimator.answer = lambda *_: 1 / 0\nworker.main()",
            "failed",
            "ZeroDivisionError",
        ),
        (
            "import sys; sys.modules['numpy'] = None\n"
            "from shapleyprio.daemon.estimation.__main__ import main; main()",
            "unavailable",
            "the Python package numpy is missing; install the package shapleyprio-replay, or",
        ),
        (
            WORKER_WITH
            + "e.StoreEstimator.answer = lambda *_: bytearray(9 * 2**30)\nworker.main()",
            "too_large",
            "4 GiB of memory were not enough; raise estimation.memory_limit",
        ),
    ],
    ids=["ends", "babbles", "is killed", "has a defect", "lacks packages", "is too large"],
)
def test_a_worker_that_fails_is_counted_and_logged(
    url: str, text: str, result: str, why: str
) -> None:
    found, reason = failure(url, text)
    assert found == result
    assert why in reason


def test_who_waits_for_long_says_what_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PATIENCE_SECONDS", 0.1)
    waiting = {"event": "waiting for an estimate of contributions", "log_level": "info"}
    for patience, said in ((PATIENCE_SECONDS, True), (0.1, False)):
        with Store.open(url) as store, capture_logs() as lines:
            daemon = Daemon(store, url, patience=patience)
            daemon.cycle.run()
            daemon.estimates.stop()
        assert ({**waiting, "at_most_seconds": patience} in lines) == said


def test_an_estimate_that_takes_too_long_is_given_up(url: str) -> None:
    result, why = failure(url, "import time; time.sleep(600)", time_limit="1s")
    assert result == "too_long"
    assert why.startswith("it took more than 1 s; raise estimation.time_limit")


def test_a_program_that_is_not_there_is_a_failure(url: str, tmp_path: Path) -> None:
    with Store.open(url) as store:
        daemon = Daemon(store, url, program=(str(tmp_path / "nothing"),))
        report, lines = daemon.run()
        daemon.estimates.stop()
    assert report.ranked.rule == "directcontr"
    assert "No such file" in str(lines[0]["why"])


def test_what_goes_on_failing_is_logged_once(url: str) -> None:
    with Store.open(url) as store:
        daemon = Daemon(store, url, program=program("raise SystemExit('it broke')"))
        said = []
        for _ in range(3):
            _, lines = daemon.run()
            said += [line["event"] for line in lines]
            daemon.slurm.wait(600)
        daemon.estimates.stop()
    assert said == ["contributions not estimated", "ranking without estimates"]
    assert daemon.count("failed") == 3


def test_a_killed_worker_is_replaced(daemon: Daemon) -> None:
    contend(daemon.slurm)
    daemon.run()
    process = daemon.worker._worker._process
    assert process is not None
    process.kill()
    process.wait()
    daemon.slurm.wait(30)
    report, (line,) = daemon.run()
    assert line["event"] == "contributions not estimated"
    assert report.ranked.rule == "shapley"  # the estimate before is still young
    daemon.slurm.wait(30)
    report, lines = daemon.run()
    assert (report.ranked.estimated_at, lines) == (report.t, [])


def test_a_stopping_daemon_does_not_wait_for_an_estimate(url: str) -> None:
    with Store.open(url) as store:
        daemon = Daemon(store, url, program=program("import time; time.sleep(600)"), patience=0)
        daemon.run()
        process = daemon.worker._worker._process
        while process is None:
            time.sleep(0.01)
            process = daemon.worker._worker._process
        daemon.estimates.stop()
        assert process.poll() is not None
        assert not [t for t in threading.enumerate() if t.name.startswith("estimation")]


def test_a_worker_does_not_outlive_a_killed_daemon(url: str) -> None:
    children = (
        "from shapleyprio.daemon.estimation.worker import WORKER, EstimationWorker\n"
        f"worker = EstimationWorker({url!r}, {NAME!r}, WORKER)\n"
        f"process = worker._worker._running([*WORKER, {url!r}, {NAME!r}, str(2**32)])\n"
        "print(process.pid, flush=True)\n"
        "input()"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        program(children), cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert psutil.pid_exists(pid)
        os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)
