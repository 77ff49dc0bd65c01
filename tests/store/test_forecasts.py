"""Forecasts come back as they were, and are judged by the starts of their jobs."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from shapleyprio.store import LATER, ToldForecast
from tests.daemon.forecasting.examples import forecast
from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from shapleyprio.store import Store


def test_the_newest_forecasts_replace_those_before(store: Store) -> None:
    far = replace(forecast(2, BEGIN), median=LATER, late=LATER, drawn_late=LATER)
    with store.cluster("c").transaction() as rows:
        rows.forecasts.save([forecast(1, BEGIN), far], [])
        rows.forecasts.save([far, forecast(3, BEGIN)], [])
        assert sorted(row.job_id for row in rows.forecasts.latest()) == [2, 3]
        assert rows.forecasts.of_job(2) == far
        assert rows.forecasts.of_job(1) is None
    with store.cluster("another").reading() as view:
        assert view.forecasts.latest() == []
        assert view.forecasts.of_job(2) is None


def test_what_was_told_is_judged_by_the_start(store: Store) -> None:
    early, later = forecast(1, BEGIN), forecast(1, BEGIN + 100, 3000)
    others = [replace(forecast(n, BEGIN), organization="biology") for n in (2, 3)]
    with store.cluster("c").transaction() as rows:
        rows.forecasts.save([], [early, *others])
        rows.forecasts.save([], [early, later])  # found again by a daemon that was killed meanwhile
        assert sorted(rows.forecasts.unjudged()) == [(1, 600), (1, 3000), (2, 600), (3, 600)]
        rows.forecasts.note_starts({})
        rows.forecasts.note_starts({1: BEGIN + 50, 2: BEGIN + 70, 99: BEGIN})
        # the later one of the first job was made when it ran already
        first = ToldForecast(**asdict(early), start=BEGIN + 50)
        second = ToldForecast(**asdict(others[0]), start=BEGIN + 70)
        assert rows.forecasts.judged(0, 10) == [second, first]
        assert rows.forecasts.judged(0, 1) == [second]
        assert rows.forecasts.judged(BEGIN + 51, 10) == [second]
        assert rows.forecasts.judged(0, 10, "physics") == [first]
        assert rows.forecasts.unjudged() == [(3, 600)]
        rows.forecasts.note_starts({1: BEGIN + 500, 3: BEGIN + 400})  # a requeued job starts again
        assert [row.start for row in rows.forecasts.judged(0, 10)] == [
            BEGIN + 400,
            BEGIN + 70,
            BEGIN + 50,
        ]
    with store.cluster("another").reading() as view:
        assert view.forecasts.judged(0, 10) == []


def test_what_was_told_goes_with_the_history(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.forecasts.save([], [forecast(1, BEGIN), forecast(2, BEGIN + 1)])
        rows.forecasts.note_starts({1: BEGIN + 10})
        rows.prune_history(BEGIN + 1, pushes_before=0)
        assert rows.forecasts.judged(0, 10) == []
        assert rows.forecasts.unjudged() == [(2, 600)]
