"""Exceptions: one a job at a time, on record for as long as history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.store.examples import BEGIN, exception

if TYPE_CHECKING:
    from shapleyprio.store import Store

FIRST = exception(7, until=BEGIN + 1000)
SECOND = replace(FIRST, job_id=6, since=BEGIN + 10, label="5_1", before_all=True, until=None)
OVER = replace(FIRST, ended=BEGIN + 50, ended_by="the job started")


def test_a_job_has_one_exception_at_a_time(store: Store) -> None:
    store.cluster("c").transact(lambda rows: rows.orders.begin_exception(SECOND))
    store.cluster("c").transact(lambda rows: rows.orders.begin_exception(FIRST))
    again = replace(FIRST, since=BEGIN + 20)
    assert store.cluster("c").transact(lambda rows: rows.orders.begin_exception(again)) == FIRST
    for name, found in (("c", [FIRST, SECOND]), ("c/gpu", [])):
        with store.cluster(name).reading() as view:
            assert view.orders.exceptions() == found
    with store.cluster("c").transaction() as rows:
        assert rows.orders.end_exception(7, BEGIN + 50, "the job started") == FIRST
        assert rows.orders.end_exception(7, BEGIN + 60, "bob") is None
        assert rows.orders.exceptions() == [SECOND]
        assert rows.orders.exceptions(since=BEGIN + 49) == [OVER, SECOND]
        assert rows.orders.exceptions(since=BEGIN + 50) == [SECOND]
        assert rows.orders.begin_exception(replace(FIRST, since=BEGIN + 70)) is None


def test_it_is_kept_which_jobs_were_passed(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.orders.begin_exception(FIRST)
        rows.orders.begin_exception(SECOND)
        rows.orders.note_passed(FIRST, {"biology": 3, "": 1})
        assert rows.orders.exceptions() == [replace(FIRST, passed={"biology": 3, "": 1}), SECOND]


def test_an_exception_that_lasts_is_never_forgotten(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.orders.begin_exception(FIRST)
        rows.orders.begin_exception(SECOND)
        rows.orders.end_exception(7, BEGIN + 50, "the job started")
        assert rows.prune_history(BEGIN + 50, pushes_before=0) == 0
        assert rows.prune_history(BEGIN + 10_000, pushes_before=0) == 1
        assert rows.orders.exceptions(since=0) == [SECOND]
