"""What a long time limit costs is said where it is certain, of futures that differ in it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from shapleyprio.cli.answers import explained
from shapleyprio.cli.shown.explanations import sentences_on_start
from shapleyprio.daemon.answering.explain_facts import Prospect
from shapleyprio.daemon.answering.inquiries import Inquiry
from shapleyprio.daemon.estimation.messages import WorkResult
from shapleyprio.daemon.forecasting import live
from shapleyprio.daemon.forecasting.forecasting import cost_of_limit
from shapleyprio.daemon.forecasting.messages import (
    Closing,
    ForecastAnswer,
    ForecastRequest,
    LimitCost,
)
from shapleyprio.lab.experiment.observing import present_of
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.engine.state import NEVER
from tests.daemon.consortium import NAME
from tests.daemon.drift.conftest import run
from tests.daemon.forecasting.examples import forecast
from tests.daemon.forecasting.test_forecasting import asked, job, remember
from tests.replay.forecasts.examples import rigid
from tests.replay.forecasts.test_futures import scheduled
from tests.replay.strategies import Job
from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.daemon.forecasting.conftest import Foreseeing

LONG, SHORT = 5000, 100
PAST = [
    *(run(n, "physics", 0, SHORT, limit=10_000) for n in range(12)),
    *(run(n, "biology", -9000, LONG - 9000, limit=6000) for n in range(20, 32)),
]
BUSY = run(99, "biology", 250, None, limit=6000)
"""On one of two processors, until 5250 probably; Slurm goes by 6250."""


def question(limit: int | None = 10_000, *, ahead: bool = True) -> ForecastRequest:
    """Biology's job goes first and wants all: physics' may start before it if it ends in time."""
    first = replace(job(1, "biology"), limit=6000)
    physics = replace(job(2, "physics", processors=1), limit=limit)
    waiting = (first, physics) if ahead else (physics,)
    request = asked(*waiting, scores=(10**6, 0), busy=(1, 0))
    return replace(request, with_limit=2)


def cost(daemon: Foreseeing, request: ForecastRequest) -> LimitCost | None:
    answer = daemon.answer(request)
    assert (answer.result, answer.rows) == (WorkResult.OK, ())
    assert ForecastAnswer.from_json(answer.as_json()) == answer
    assert ForecastRequest.from_json(request.as_json()) == request
    return answer.cost


def test_a_limit_that_jobs_like_it_need_lets_it_start_before_the_first(daemon: Foreseeing) -> None:
    remember(daemon, *PAST, BUSY)
    begin = 250 + LONG + LONG  # behind the job that goes first
    assert cost(daemon, question()) == LimitCost(jobs=12, limit=120, sooner=begin - 300)


def test_a_limit_that_a_maintenance_makes_wait_costs_all_of_that(daemon: Foreseeing) -> None:
    remember(daemon, *PAST)
    for ahead in (300, 3600):
        begin = BEGIN + 300 + ahead
        closings = {"all": (Closing(begin, begin + 100_000),)}
        found = cost(daemon, replace(question(ahead=False), closings=closings))
        assert found == LimitCost(jobs=12, limit=120, sooner=ahead + 100_000)


def test_nothing_is_said_of_a_limit_that_suits_or_costs_nothing(daemon: Foreseeing) -> None:
    remember(daemon, *PAST, BUSY)
    assert cost(daemon, question(239)) is None
    assert cost(daemon, question(None)) is None
    assert cost(daemon, question(ahead=False)) is None
    assert cost(daemon, replace(question(), with_limit=3)) is None


def test_nothing_is_said_where_few_jobs_are_known(daemon: Foreseeing) -> None:
    remember(daemon, *PAST[3:], BUSY)
    assert cost(daemon, question()) is None


@pytest.mark.parametrize(
    ("gains", "told"),
    [
        ([600, 600, 600, 600], 600),
        ([599, 600, 600, 600], None),
        ([0, 0, 0, 40_000], None),  # once is chance
        ([1000, 1100, 1200, 1300], 1150),
        ([-1000, -1000, -1000, -1000], None),
        ([1000, 1000, 1000, NEVER - 10_000], None),
    ],
)
def test_what_may_be_chance_is_not_said(gains: Sequence[int], told: int | None) -> None:
    workload = rigid([1], [Job(0, 0, 60), Job(0, 0, 60, limit=7200)])
    schedule, _ = scheduled(workload, "fairshare")
    present = present_of(workload, schedule, 1)
    present = replace(present, user=np.zeros(2, dtype=np.int64))
    lengths = Survivors()
    for seconds in range(1, 11):
        lengths.learn(0, 7200, 1, 60 * seconds)
    found = cost_of_limit(
        present,
        1,
        lengths,
        lambda now: 10_000 + (np.array(gains) if now is present else np.zeros(4, dtype=np.int64)),
    )
    assert found == (None if told is None else LimitCost(jobs=10, limit=540, sooner=told))


def test_explain_says_it_where_a_daemon_knows_it(
    daemon: Foreseeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.slurm.fill("biology")
    waiting = daemon.slurm.submit("physics", processing_time=10, limit=7200)
    daemon.slurm.wait(1)
    daemon.run()
    told = LimitCost(jobs=20, limit=5400, sooner=7200)
    questions: list[int | None] = []

    def ask(request: ForecastRequest, **_limits: object) -> ForecastAnswer:
        questions.append(request.with_limit)
        return ForecastAnswer(result=WorkResult.OK, cost=told)

    def said(*forecasts: live.LiveForecasts) -> tuple[str, ...]:
        store = daemon.store.cluster(NAME)
        inquiry = Inquiry("explain", "job", str(waiting))
        known = next(iter(forecasts), None)
        answer = explained(
            daemon.config, [store], daemon.slurm, inquiry, forecasting=lambda _: known
        )
        cost = answer.value["start"]["shorter_limit"]
        assert cost in (None, {"jobs": 20, "limit": 5400, "sooner": 7200})
        assert (cost is None) == (not any("sooner" in line for line in answer.lines))
        return answer.lines

    sentence = (
        "Nine in ten of its user's last 20 similar jobs ran for at most 1.5 h: with that time "
        "limit it would start about 2 h sooner."
    )
    assert sentence not in said(daemon.forecasts)
    daemon.forecasts._costs.clear()
    monkeypatch.setattr(daemon.forecasts._worker, "ask", ask)
    assert sentence not in said()
    for _ in range(2):
        assert sentence in said(daemon.forecasts)
    assert questions == [waiting]  # once for a queue
    daemon.forecasts._costs.clear()
    daemon.forecasts._seconds = live.QUICK_SECONDS + 1
    assert sentence not in said(daemon.forecasts)
    assert questions == [waiting]


def test_it_is_the_last_sentence_on_the_start() -> None:
    found = Prospect(
        forecast=forecast(1, 1_800_000_000),
        waits_for="turn",
        cost=LimitCost(jobs=12, limit=120, sooner=9950),
    )
    assert sentences_on_start(found)[-1] == (
        "Nine in ten of its user's last 12 similar jobs ran for at most 2 min: with that time "
        "limit it would start about 2.8 h sooner."
    )
