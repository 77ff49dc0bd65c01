"""Runs and allocations come back as they went in, and the right ones are found."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.fairness.tenure import Allocation
from shapleyprio.store import AllocatedRun, Store
from shapleyprio.store.schema import metadata
from tests.examples import examples
from tests.store.examples import BEGIN, cycle, placed_run

if TYPE_CHECKING:
    from typing import Any

SECOND = st.integers(0, 2**40)
WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
PROCESSORS = st.integers(0, 2**40)
PLACED_RUN = st.tuples(
    st.builds(
        Run,
        key=st.builds(RunKey, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)),
        label=WORD,
        account=WORD,
        user=WORD,
        partition=WORD,
        state=WORD,
        release=SECOND,
        limit=st.none() | SECOND,
        begin=SECOND,
        end=st.none() | SECOND,
        processors=st.dictionaries(WORD, PROCESSORS, max_size=3),
    ),
    st.lists(
        st.builds(Allocation, WORD, WORD, PROCESSORS, SECOND, st.none() | SECOND), max_size=3
    ).map(tuple),
)


def by_key(runs: list[AllocatedRun]) -> dict[RunKey, AllocatedRun]:
    return {item[0].key: item for item in runs}


def keys(runs: list[AllocatedRun]) -> list[RunKey]:
    return [run.key for run, _ in runs]


def test_the_runs_of_an_array_are_those_of_its_tasks(store: Store) -> None:
    labels = {33: "33", 34: "33_1", 40: "33_2", 41: "133_1", 42: "3301", 43: "33x1"}
    put = [
        (replace(placed_run(number, BEGIN, None)[0], label=label), ())
        for number, label in labels.items()
    ]
    later = replace(put[0][0], key=RunKey(33, BEGIN, BEGIN + 50))
    with store.cluster("c").transaction() as rows:
        rows.runs.put([*put, (later, ())])
        found = {run.key.job_id for run, _ in rows.runs.runs_of(33, 0)}
        assert found == {33, 34, 40}
        assert [run.key for run, _ in rows.runs.runs_of(33, BEGIN + 50)] == [later.key]


@settings(max_examples=examples(35))  # on each kind of database
@given(first=st.lists(PLACED_RUN), second=st.lists(PLACED_RUN))
def test_runs_come_back_as_they_were_put_last(
    shared: Store, first: list[AllocatedRun], second: list[AllocatedRun]
) -> None:
    expected = {**by_key(first), **by_key(second)}
    with shared.cluster("c").transaction() as rows:
        rows.runs.put(first)
        rows.runs.put(second)
        assert rows.runs.known(list(expected)) == expected
        assert by_key(list(rows.runs.all_runs())) == expected
        rows.runs.remove(keys(list(rows.runs.all_runs())))
        assert list(rows.runs.all_runs()) == []
        assert list(rows.runs.allocations_with_event_between(-1, 2**41)) == []


@settings(max_examples=examples(35))
@given(runs=st.lists(PLACED_RUN), low=SECOND, high=SECOND)
def test_every_view_agrees_with_its_definition(
    shared: Store, runs: list[AllocatedRun], low: int, high: int
) -> None:
    stored = by_key(runs)
    allocations = [placement for _, places in stored.values() for placement in places]
    with shared.cluster("c").transaction() as rows:
        rows.runs.put(runs)
        assert sorted(run.key for run in rows.runs.unfinished()) == sorted(
            key for key, (run, _) in stored.items() if run.end is None
        )
        alive = {
            key: item for key, item in stored.items() if item[0].end is None or item[0].end > low
        }
        assert by_key(list(rows.runs.runs_alive_after(low))) == alive
        crossing = [
            item
            for item in allocations
            if low < item.begin <= high or (item.end is not None and low < item.end <= high)
        ]
        assert sorted(map(str, rows.runs.allocations_with_event_between(low, high))) == sorted(
            map(str, crossing)
        )
        ended = [key for key, (run, _) in stored.items() if run.end is not None and run.end <= low]
        assert rows.runs.prune(low) == len(ended)
        assert by_key(list(rows.runs.all_runs())) == alive
        rows.runs.remove(list(alive))


def test_a_requeued_job_is_several_runs(store: Store) -> None:
    requeued = [placed_run(1, BEGIN, BEGIN + 5), placed_run(1, BEGIN + 9)]
    with store.cluster("c").transaction() as rows:
        rows.runs.put(requeued)
        assert rows.runs.known(keys(requeued)) == by_key(requeued)
        assert rows.runs.known([requeued[1][0].key]) == by_key(requeued[1:])


def test_unknown_keys_are_not_found(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.runs.put([placed_run(1)])
        assert rows.runs.known([RunKey(1, 0, 0), RunKey(2, BEGIN - 60, BEGIN)]) == {}
        assert rows.runs.known([]) == {}


def test_many_runs_are_read_page_after_page_while_they_are_changed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.repositories.runs.ROWS_AT_ONCE", 7)
    runs = [placed_run(n % 20, BEGIN + n, BEGIN + n + (n % 5)) for n in range(60)]
    runs += [placed_run(n, BEGIN + n) for n in range(100, 120)]
    random.Random(0).shuffle(runs)
    with store.cluster("c").transaction() as rows:
        rows.runs.put(runs)
        seen: list[AllocatedRun] = []
        for run, places in rows.runs.runs_alive_after(0):
            seen.append((run, places))
            rows.runs.put([(run, (replace(places[0], organization="chemistry"),))])
        assert len(seen) == len(runs)
        assert by_key(seen) == by_key(runs)
        ends = [run.end for run, _ in seen if run.end is not None]
        assert ends == sorted(ends)
        stored = list(rows.runs.all_runs())
        assert keys(stored) == sorted(keys(runs))
        assert {places[0].organization for _, places in stored} == {"chemistry"}


def test_allocations_are_read_page_after_page_each_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a whole, a server's statement would last as long as whoever reads takes for the rows."""
    monkeypatch.setattr("shapleyprio.store.repositories.runs.ROWS_AT_ONCE", 7)
    low, high = BEGIN, BEGIN + 1000
    times = [
        (low - 5, low + 5),
        (low + 5, high + 5),
        *[(low + n // 9, low + 500 + n // 4) for n in range(1, 60)],
        (low, None),
        (high, None),
        (low, high + 1),
        (low - 9, low),
    ]
    owners = ("biology", "physics")
    with store.cluster("c").transaction() as rows:
        for number, (begin, end) in enumerate(times):
            rows.runs.put([placed_run(number + 1, begin, end, owners=owners)])
        seen = []
        for allocation in rows.runs.allocations_with_event_between(low, high):
            seen.append((allocation.begin, allocation.end, allocation.owner))
            assert rows.runs.has_runs_of(1)  # a statement between two pages is in nobody's way
    expected = [
        (begin, end, owner)
        for begin, end in times
        for owner in owners
        if low < begin <= high or (end is not None and low < end <= high)
    ]
    assert sorted(seen, key=str) == sorted(expected, key=str)


def test_of_many_runs_those_that_ended_first_are_pruned_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.scope.PRUNED_AT_ONCE", 5)
    runs = [placed_run(n, BEGIN, BEGIN + n // 2) for n in range(1, 14)] + [placed_run(99)]
    with store.cluster("c").transaction() as rows:
        rows.runs.put(runs)
        untils: list[int] = []
        pruned: list[int] = []
        while not pruned or pruned[-1]:
            untils.append(rows.runs.prunable_until(BEGIN + 5))
            pruned.append(rows.runs.prune(untils[-1]))
        # 1 ended at BEGIN, and two each second from then on
        assert untils == [BEGIN + 2, BEGIN + 5, BEGIN + 5]
        assert pruned == [5, 6, 0]
        assert [run.key.job_id for run, _ in rows.runs.all_runs()] == [12, 13, 99]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_frequent_queries_use_an_index_on_sqlite(store: Store) -> None:
    statements: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        statements.append((statement, values))

    with store.cluster("c").transaction() as rows:
        event.listen(store._engine, "before_cursor_execute", note)
        rows.runs.known([RunKey(1, 1, 1)])
        rows.runs.put([placed_run(1)])
        rows.runs.unfinished()
        list(rows.runs.runs_alive_after(BEGIN))
        list(rows.runs.allocations_with_event_between(BEGIN, BEGIN + 60))
        rows.runs.prune(BEGIN)
        rows.history.next_cycle()
        rows.history.latest_standings()
        rows.history.standings(BEGIN)
        rows.pushes.open_pushes()
        rows.pushes.managed_values("nice")
        rows.pushes.latest(key="1")
        rows.prune_history(BEGIN, pushes_before=BEGIN)
        event.remove(store._engine, "before_cursor_execute", note)
        for statement, values in statements:
            if statement.startswith("INSERT") or "max(" in statement:  # the last in the index
                continue
            plan = rows.runs._connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            for *_, step in plan:
                whole_table = any(step.startswith(f"SCAN {name}") for name in metadata.tables)
                assert not whole_table, (statement, step)
                assert not step.endswith("(cluster=?)"), (statement, step)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_the_newest_cycles_are_read_from_the_end_and_not_sorted(store: Store) -> None:
    plans: list[str] = []

    def explain(connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            cursor = connection.connection.cursor()
            plans.extend(
                row[-1] for row in cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values)
            )

    with store.cluster("c").transaction() as rows:
        rows.history.save_cycle(cycle(1))
        event.listen(store._engine, "before_cursor_execute", explain)
        assert rows.history.cycles(limit=5) == [cycle(1)]
        event.remove(store._engine, "before_cursor_execute", explain)
    assert plans == ["SEARCH cycle USING INDEX sqlite_autoindex_cycle_1 (cluster=?)"]
