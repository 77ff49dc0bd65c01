"""Forecasts are renewed when something has happened, judged, and never in a cycle's way."""

from __future__ import annotations

import sys
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.daemon.forecasting import live
from shapleyprio.daemon.forecasting.live import LONGEST_SECONDS, REST, NoForecastsError
from shapleyprio.daemon.forecasting.scores import ForecastScore, scores_of, to_judge
from shapleyprio.store import LATER, PauseRow, Store, StoreError
from tests.daemon.consortium import NAME, config
from tests.daemon.forecasting.conftest import learn
from tests.daemon.forecasting.examples import forecast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shapleyprio.daemon.forecasting.messages import ForecastAnswer
    from shapleyprio.store import ForecastRow, ToldForecast
    from tests.daemon.forecasting.conftest import Foreseeing

T = 1_000_000


def row(job_id: int = 1, ahead: int = 100) -> ForecastRow:
    return forecast(job_id, T, ahead)


def judged(daemon: Foreseeing) -> list[ToldForecast]:
    with daemon.store.cluster(NAME).reading() as view:
        return view.forecasts.judged(0, 100)


def test_forecasts_are_made_anew_when_something_has_happened(daemon: Foreseeing) -> None:
    slurm = daemon.slurm
    slurm.fill("physics")
    slurm.submit("physics", processing_time=10)
    slurm.wait(1)
    daemon.run()
    assert daemon.count("ok") == 1
    slurm.wait(60)
    daemon.run()
    assert daemon.count("ok") == 1
    other = slurm.submit("biology", processing_time=10)
    slurm.wait(60)
    daemon.run()
    assert daemon.count("ok") == 2
    assert other in daemon.known()
    slurm.wait(LONGEST_SECONDS)
    daemon.run()
    assert daemon.count("ok") == 3


def test_the_worker_rests_most_of_the_time(
    daemon: Foreseeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = daemon.forecasts._worker.ask

    def slow(*arguments: object, **named: object) -> ForecastAnswer:
        daemon.now += 100  # on a busy machine
        return replace(asked(*arguments, **named), cpu_seconds=5)  # type: ignore[arg-type]

    monkeypatch.setattr(daemon.forecasts._worker, "ask", slow)
    daemon.slurm.fill("physics")
    for made, pause in ((1, 0), (1, 5 * REST - 1), (2, 1)):
        daemon.slurm.submit("physics", processing_time=10)
        daemon.slurm.wait(30)
        daemon.run(pause)
        assert daemon.count("ok") == made


def test_forecasts_go_when_nothing_waits(daemon: Foreseeing) -> None:
    daemon.slurm.fill("physics", 100)
    daemon.slurm.submit("physics", processing_time=10)
    daemon.slurm.wait(1)
    daemon.run()
    assert len(daemon.known()) == 1
    daemon.slurm.wait(100)
    daemon.run()
    assert daemon.known() == {}


def test_what_was_told_is_judged_when_the_job_starts(daemon: Foreseeing) -> None:
    daemon.slurm.fill("physics", 100)
    job = daemon.slurm.submit("physics", processing_time=1000)
    array = daemon.slurm.submit("physics", processors=2, processing_time=1000, array=3)
    daemon.slurm.wait(1)
    first = daemon.run()
    told = daemon.known()
    assert judged(daemon) == []
    daemon.slurm.wait(200)
    daemon.run()
    found = {item.job_id: item for item in judged(daemon)}
    assert set(found) == {job, array}
    assert {item.start for item in found.values()} == {first.t - 1 + 100}
    for number, item in found.items():
        assert (item.t, item.median) == (first.t, told[number].median)
    sample = daemon.registry.get_sample_value
    (score,) = scores(daemon, daemon.slurm.now)
    labels = {"cluster": NAME, "lead": score.lead}
    assert score.count == 2
    assert sample("shapleyprio_forecast_coverage_ratio", labels) == score.coverage
    assert sample("shapleyprio_forecast_error_seconds", labels) == score.error
    daemon.stop()
    assert sample("shapleyprio_forecast_coverage_ratio", labels) is None


def scores(daemon: Foreseeing, t: int) -> Sequence[ForecastScore]:
    with daemon.store.cluster(NAME).reading() as view:
        return scores_of(view, t)


def test_of_each_lead_the_first_forecast_is_judged() -> None:
    rows = [row(1, 100), row(2, 100), row(3, 4000), row(4, LATER - T)]
    assert to_judge(rows, []) == rows
    assert to_judge(rows, [(1, 600), (2, 601), (3, 300)]) == rows[1:]
    assert to_judge(rows, [(4, LATER - T - 9)]) == rows[:3]


def test_scores_say_how_many_intervals_held_and_how_far_medians_were_off(store: Store) -> None:
    with store.cluster(NAME).transaction() as rows:
        told = [row(1), row(2), row(3), row(4, 50_000), row(5), row(6)]
        rows.forecasts.save([], told)
        rows.forecasts.note_starts({1: T + 100, 2: T + 201, 3: T + 49, 4: T + 50_000, 6: T - 1})
        short, long = scores_of(rows, T + 60_000)
        # the sixth ran already when it was told; of the fifth nobody knows yet
        assert short == ForecastScore(lead="up to 10 min", count=3, coverage=1 / 3, error=51)
        assert long == ForecastScore(lead="up to 1 d", count=1, coverage=1, error=0)
        assert short.as_json() == {
            "lead": "up to 10 min",
            "forecasts": 3,
            "coverage": 1 / 3,
            "error_seconds": 51,
        }
        assert [one.lead for one in scores_of(rows, T + 30 * 86_400 + 300)] == ["up to 1 d"]
        assert scores_of(rows, T + 31 * 86_400) == []
        rows.prune_history(T + 1, pushes_before=0)
        assert rows.forecasts.judged(0, 10) == []
        assert rows.forecasts.unjudged() == []


@pytest.fixture
def store(url: str) -> Store:
    return Store.open(url, create=True)


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


WORKER_WITH = (
    "import time\n"
    "import shapleyprio.daemon.forecasting.__main__ as worker\n"
    "import shapleyprio.daemon.forecasting.forecasting as f\n"
)


@pytest.mark.parametrize(
    ("text", "result", "why"),
    [
        ("print('nonsense', flush=True); import time; time.sleep(600)", "failed", "nonsense"),
        ("raise SystemExit(3)", "failed", "exit code 3"),
        (
            WORKER_WITH + "f.play = lambda *_, **__: 1 / 0\nworker.main()",
            "failed",
            "division by zero",
        ),
        (
            WORKER_WITH + "f.play = lambda *_, **__: bytearray(9 * 2**40)\nworker.main()",
            "too_large",
            "raise estimation.memory_limit",
        ),
        (
            WORKER_WITH + "import builtins\n"
            "real = __import__\n"
            "def without(name, *rest):\n"
            "    if name.startswith('shapleyprio.daemon.forecasting.forecasting'):\n"
            "        raise ModuleNotFoundError(name='numpy')\n"
            "    return real(name, *rest)\n"
            "builtins.__import__ = without\n"
            "worker.main()",
            "unavailable",
            "install the package shapleyprio-replay",
        ),
    ],
)
def test_a_worker_that_fails_fails_no_cycle(
    daemon: Foreseeing, text: str, result: str, why: str
) -> None:
    daemon.stop()
    daemon.program = program(text)
    daemon.start()
    daemon.slurm.fill("physics")
    logged: list[Mapping[str, object]] = []
    for _ in range(2):
        daemon.slurm.submit("physics", processing_time=10)
        daemon.slurm.wait(1)
        with capture_logs() as lines:
            assert daemon.run(LONGEST_SECONDS).ranked.standings
        logged += [line for line in lines if line["log_level"] != "debug"]
    assert daemon.count(result) == 2
    (line,) = logged
    assert (line["event"], line["result"]) == ("starts not forecast", result)
    assert why in str(line["why"])
    assert daemon.known() == {}


def test_a_cycle_does_not_wait_and_a_stop_ends_the_worker(daemon: Foreseeing) -> None:
    daemon.stop()
    daemon.program = program("import time; time.sleep(600)")
    daemon.start()
    daemon.slurm.fill("physics")
    daemon.slurm.submit("physics", processing_time=10)
    daemon.slurm.wait(1)
    assert daemon.cycle.run().ranked.standings
    running = daemon.forecasts._running
    assert running is not None
    assert not running.done()
    assert daemon.cycle.run().ranked.standings
    assert daemon.forecasts._running is running
    daemon.stop()
    assert running.done()


def test_a_pause_and_a_dry_run_foresee_nothing(daemon: Foreseeing) -> None:
    daemon.slurm.fill("physics")
    daemon.slurm.submit("physics", processing_time=10)
    daemon.slurm.wait(1)
    daemon.cycle.run(dry_run=True)
    with daemon.store.cluster(NAME).transaction() as rows:
        rows.orders.begin_pause(
            PauseRow(since=daemon.slurm.now, user="root", reason="update", keep=False)
        )
    daemon.run()
    assert daemon.known() == {}


def test_starts_that_cannot_be_stored_now_are_judged_later(
    daemon: Foreseeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.slurm.fill("physics", 100)
    daemon.slurm.submit("physics", processing_time=1000)
    daemon.slurm.wait(1)
    daemon.run()
    store = daemon.forecasts._store

    class Away:
        def transact(self, change: object) -> None:
            raise StoreError("the store is away")

    monkeypatch.setattr(daemon.forecasts, "_store", Away())
    daemon.slurm.wait(200)
    with capture_logs() as lines:
        daemon.run()
    assert [line["why"] for line in lines if line["event"] == "no forecasts of starts"] == [
        "the store is away"
    ]
    monkeypatch.setattr(daemon.forecasts, "_store", store)
    daemon.slurm.wait(30)
    daemon.run()
    assert len(judged(daemon)) == 1


# one more job


def one_more(limit: int = 60, *, processors: int = 1) -> WaitingJob:
    return WaitingJob(0, "physics", "physics", "ann", 0, limit, 1, processors, "all")


def test_one_more_job_is_foreseen_from_the_last_queue(daemon: Foreseeing) -> None:
    learn(daemon, 100)
    begin = daemon.slurm.now
    for _ in range(3):
        daemon.slurm.submit("physics", processors=12, processing_time=100, limit=1000)
    daemon.slurm.wait(40)
    t = daemon.run().t
    daemon.now += 30
    found, age = daemon.forecasts.of_one_more(one_more(processors=12))
    assert (found.median - begin, found.t, age) == (300, t, 30)
    assert set(daemon.known()) == {job.job_id for job in daemon.slurm.pending().jobs}
    assert daemon.forecasts.sizes() == {"all": 12, "pa": 8, "pb": 4}


def test_no_time_of_an_answer_is_before_now(daemon: Foreseeing) -> None:
    daemon.slurm.wait(1)
    t = daemon.run().t  # nothing waits, so that nothing was forecast
    daemon.now += 500
    found, age = daemon.forecasts.of_one_more(one_more())
    assert (found.early, found.median, found.late, age) == (t + 500, t + 500, t + 500, 500)
    assert (found.t, found.within_hour) == (t, 100)


def test_without_a_queue_of_the_last_hour_nothing_is_said(daemon: Foreseeing) -> None:
    for old in (False, True):
        with pytest.raises(NoForecastsError, match="no cycle has read the queue"):
            daemon.forecasts.sizes()
        with pytest.raises(NoForecastsError, match="no cycle has read the queue"):
            daemon.forecasts.of_one_more(one_more())
        if not old:
            daemon.slurm.wait(1)
            daemon.run()
            assert daemon.forecasts.sizes()
            daemon.now += 3601


def test_processors_that_are_no_cpus_are_not_foreseen(daemon: Foreseeing) -> None:
    daemon.stop()
    daemon.config = config(fairness={"weight": "gres/gpu"})
    daemon.start()
    daemon.run()
    with pytest.raises(NoForecastsError, match="are not CPUs"):
        daemon.forecasts.sizes()


def test_of_many_who_ask_at_once_two_are_heard(
    daemon: Foreseeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.slurm.wait(1)
    daemon.run()
    monkeypatch.setattr(live, "PATIENCE_SECONDS", 0.5)
    said: list[str] = []

    def ask() -> None:
        with pytest.raises(NoForecastsError) as caught:
            daemon.forecasts.of_one_more(one_more())
        said.append(str(caught.value))

    with daemon.forecasts._asking:  # as while all jobs' starts are forecast
        askers = [Thread(target=ask) for _ in range(5)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
    assert len([line for line in said if line.startswith("others ask")]) == 3
    assert len([line for line in said if line.startswith("forecasts are being made")]) == 2
    assert daemon.forecasts.of_one_more(one_more())[1] == 0


def test_a_worker_that_fails_says_why(daemon: Foreseeing) -> None:
    daemon.stop()
    daemon.program = program("raise SystemExit(3)")
    daemon.start()
    daemon.run()
    with pytest.raises(NoForecastsError, match=r"the forecast failed: .*exit code 3"):
        daemon.forecasts.of_one_more(one_more())
    daemon.stop()
    with pytest.raises(NoForecastsError, match="the daemon is stopping"):
        daemon.forecasts.of_one_more(one_more())
