"""The daemon's side: what becomes of a replay, in real worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from shapleyprio.common import workers
from shapleyprio.daemon.drift.live import WORKER, LiveDrift
from shapleyprio.daemon.drift.messages import DriftAnswer, DriftResult
from shapleyprio.daemon.steering.metrics import Metrics
from tests.daemon.consortium import NAME, config
from tests.daemon.drift.conftest import END, FLOOD, remember
from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shapleyprio.config import Config
    from shapleyprio.store import Store

DRIFT = {"window": "300s"}
WORKER_WITH = (
    "import shapleyprio.daemon.drift.__main__ as worker, shapleyprio.daemon.drift.comparison as r\n"
)
SLEEPS = "import time; time.sleep(600)"


@dataclass
class Live:
    """A live drift with its worker, real or not."""

    store: Store
    url: str
    worker: Sequence[str] = WORKER
    config: Config = field(default_factory=lambda: config(drift=DRIFT))

    def __post_init__(self) -> None:
        self.metrics = Metrics(NAME)
        self.drift = LiveDrift(self.store.cluster(NAME), self.url, self.metrics, self.worker)

    def replay(self) -> list[Mapping[str, object]]:
        """Replays once; what was logged."""
        with capture_logs() as lines:
            self.drift.replay(self.config)
        return list(lines)

    def answer(self) -> dict[str, float]:
        """Metric, with the values of its labels but for the cluster -> its value."""
        text = generate_latest(self.metrics.registry).decode()
        return {
            " ".join(
                [
                    sample.name.removeprefix("shapleyprio_"),
                    *(value for name, value in sample.labels.items() if name != "cluster"),
                ]
            ): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.labels.get("cluster") == NAME
            and not sample.name.endswith("_created")
            and (sample.value or not sample.name.endswith("_total"))
        }


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def failure(store: Store, url: str, worker: str, **drift: str) -> tuple[object, str]:
    """Result and reason of a replay that comes to nothing; the page shows the reason, too."""
    live = Live(store, url, program(worker), config(drift={**DRIFT, **drift}))
    (line,) = live.replay()
    assert (line["event"], line["log_level"]) == ("drift not replayed", "warning")
    assert live.drift.trouble == line["why"]
    assert live.answer() == {f"drift_runs_total {line['result']}": 1}
    with store.cluster(NAME).reading() as view:
        assert view.history.drifts() == []
    return line["result"], str(line["why"])


def test_what_is_withdrawn_is_shown_no_more(store: Store, url: str) -> None:
    remember(store, *FLOOD)
    live = Live(store, url)
    live.replay()
    live.drift.withdraw(live.config)
    assert live.answer() == {"drift_runs_total ok": 1}


def test_a_replay_is_published_stored_and_logged(store: Store, url: str) -> None:
    remember(store, *FLOOD)
    live = Live(store, url)
    (line,) = live.replay()
    assert line["event"] == "drift"
    answer = live.answer()
    assert answer.pop("drift_duration_seconds") > 0
    assert answer.pop("organization_alone_gain_ratio biology") == pytest.approx(45_150 / 80_200 - 1)
    assert answer.pop("organization_alone_gain_ratio physics") == pytest.approx(24_050 / 5_050 - 1)
    assert answer == {
        "organization_drift_seconds biology recorded": 20,
        "organization_drift_seconds physics recorded": -20,
        **{
            f"organization_drift_seconds {name} {schedule}": 0
            for name in ("biology", "physics")
            for schedule in ("directcontr", "fairshare")
        },
        "unfairness_seconds recorded": 40,
        "unfairness_seconds directcontr": 0,
        "unfairness_seconds fairshare": 0,
        **{
            f"contested_moments {schedule}": 1
            for schedule in ("recorded", "directcontr", "fairshare")
        },
        "out_of_turn_moments recorded": 1,
        "out_of_turn_moments directcontr": 0,
        "out_of_turn_moments fairshare": 0,
        "drift_reference_info ref": 1,
        "drift_window_seconds": 300,
        "drift_timestamp_seconds": END,
        "drift_runs_total ok": 1,
    }
    with store.cluster(NAME).reading() as view:
        rows = view.history.drifts()
    assert len(rows) == 8
    assert {(row.begin, row.t) for row in rows} == {(BEGIN, END)}


def test_a_ledger_that_ends_during_its_replay_has_ended(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(store, url)

    def reload(*_: object) -> DriftAnswer:
        live.metrics.withdraw_others(())
        return DriftAnswer(result=DriftResult.NO_JOBS)

    monkeypatch.setattr(live.drift, "_ask", reload)
    live.replay()
    assert "shapleyprio_cycles_total{" not in generate_latest(live.metrics.registry).decode()


def test_what_an_empty_window_cannot_show_is_absent(store: Store, url: str) -> None:
    remember(store, *FLOOD)
    live = Live(store, url)
    live.replay()
    assert live.drift.trouble == ""
    remember(store, until=10_000)
    (line,) = live.replay()
    assert live.drift.trouble == line["why"]
    assert (line["result"], line["why"]) == ("no_jobs", "no job was executed in the window")
    assert live.answer() == {
        "drift_timestamp_seconds": END,
        "drift_runs_total ok": 1,
        "drift_runs_total no_jobs": 1,
    }


def test_what_nobody_foresaw_is_counted_and_logged_too(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(store, url)
    monkeypatch.setattr(live.drift, "_ask", lambda *_: 1 / 0)
    defect, line = live.replay()
    assert (defect["log_level"], defect["exc_info"]) == ("error", True)
    assert (line["result"], line["why"]) == ("failed", "ZeroDivisionError('division by zero')")
    assert live.answer() == {"drift_runs_total failed": 1}


def test_without_the_packages_there_is_no_replay(store: Store, url: str) -> None:
    worker = (
        "import sys; sys.modules['numpy'] = None\n"
        "from shapleyprio.daemon.drift.__main__ import main; main()"
    )
    result, why = failure(store, url, worker)
    assert result == "unavailable"
    assert "the Python package numpy is missing; install the package shapleyprio-replay, or" in why


def test_a_replay_that_takes_too_long_is_given_up(store: Store, url: str) -> None:
    result, why = failure(store, url, SLEEPS, time_limit="1s")
    assert result == "too_long"
    assert why.startswith("it took more than 1 s; raise drift.time_limit")


def test_a_replay_that_needs_too_much_memory_is_given_up(store: Store, url: str) -> None:
    worker = WORKER_WITH + "r.replay_window = lambda _: bytearray(3 * 2**30)\nworker.main()"
    result, why = failure(store, url, worker, memory_limit="2G")
    assert result == "too_large"
    assert why.startswith("2 GiB of memory were not enough; raise drift.memory_limit")


@pytest.mark.parametrize(
    ("counted", "result", "advice"),
    [(1, "too_large", "; raise drift.memory_limit, "), (0, "failed", "")],
)
def test_a_worker_that_the_kernel_kills_was_too_large_and_one_that_somebody_kills_was_not(
    store: Store,
    url: str,
    counted: int,
    result: str,
    advice: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter = tmp_path / "vmstat"
    counter.write_text("pgfault 7\noom_kill 0\n")
    monkeypatch.setattr(workers, "VMSTAT", counter)
    count = f"open({str(counter)!r}, 'w').write('pgfault 9\\noom_kill {counted}\\n')"
    found, why = failure(store, url, f"import os; {count}; os.kill(os.getpid(), 9)")
    assert found == result
    assert why.startswith(f"the worker ended with signal 9: no word{advice}")


@pytest.mark.parametrize(
    ("worker", "reason"),
    [
        ("raise SystemExit('it broke')", "the worker ended with exit code 1: it broke"),
        ("print('what?')", "the worker ended with exit code 0: no word"),
        (WORKER_WITH + "r.replay_window = lambda _: 1 / 0\nworker.main()", "ZeroDivisionError"),
    ],
)
def test_a_worker_that_breaks_is_a_failure(
    store: Store, url: str, worker: str, reason: str
) -> None:
    result, why = failure(store, url, worker)
    assert result == "failed"
    assert reason in why


def test_a_store_that_cannot_be_read_is_a_failure(store: Store, url: str, tmp_path: Path) -> None:
    live = Live(store, f"sqlite:///{tmp_path}/elsewhere.db")
    (line,) = live.replay()
    assert line["result"] == "failed"
    assert "there is no such file" in str(line["why"])


# -- the end of the daemon


def pid_in(file: Path) -> int:
    while not file.exists() or not file.read_text().endswith("\n"):
        time.sleep(0.05)
    return int(file.read_text())


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def replaying_for_ever(file: Path) -> str:
    """A worker that writes who it is and never comes to an end."""
    return (
        f"{WORKER_WITH}import os, time\n"
        "def replay_window(request):\n"
        f"    open({str(file)!r}, 'w').write(str(os.getpid()) + '\\n')\n"
        "    time.sleep(600)\n"
        "r.replay_window = replay_window\n"
        "worker.main()"
    )


def test_a_stopping_daemon_does_not_wait_for_a_replay(
    store: Store, url: str, tmp_path: Path
) -> None:
    live = Live(store, url, program(replaying_for_ever(tmp_path / "pid")))
    lines: list[Mapping[str, object]] = []
    thread = threading.Thread(target=lambda: lines.extend(live.replay()))
    thread.start()
    pid = pid_in(tmp_path / "pid")
    live.drift.stop()
    thread.join()
    assert gone(pid)
    assert live.replay() == lines == []
    assert live.answer() == {}


def test_a_worker_does_not_outlive_a_killed_daemon(url: str, store: Store, tmp_path: Path) -> None:
    daemon = (
        "from shapleyprio.daemon.drift.live import LiveDrift\n"
        "from shapleyprio.daemon.steering.metrics import Metrics\n"
        "from shapleyprio.store import Store\n"
        "from tests.daemon.consortium import config\n"
        f"worker = {program(replaying_for_ever(tmp_path / 'pid'))!r}\n"
        f"LiveDrift(Store.open({url!r}).cluster({NAME!r}), {url!r}, Metrics({NAME!r}), worker)"
        ".replay(config())"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(program(daemon), cwd=root) as process:
        pid = pid_in(tmp_path / "pid")
        os.kill(process.pid, signal.SIGKILL)
    while not gone(pid):
        time.sleep(0.05)
