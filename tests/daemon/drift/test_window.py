"""The window: what was executed in it, no more, and worth what it is worth in the ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.config import Organization
from shapleyprio.fairness.tenure import NOBODY, Tenure
from shapleyprio.replay import Workload, consortium_of, measure, run_policy, workload_of
from shapleyprio.replay.logs.stored import executed_between, log_of_runs
from shapleyprio.replay.logs.window import read_past
from shapleyprio.replay.workloads.workload import Window
from shapleyprio.store import NodeRow
from tests.daemon.consortium import NAME
from tests.daemon.drift.conftest import PROCESSORS, remember, run
from tests.store.examples import BEGIN, standing

if TYPE_CHECKING:
    from shapleyprio.store import AllocatedRun, Store

LENGTH = 100


def cut(placed: AllocatedRun, begin: int = 0, end: int = LENGTH) -> list[tuple[int, int, int]]:
    """Release, begin and end of what is left, counted from BEGIN."""
    return [
        (left.release - BEGIN, left.begin - BEGIN, (left.end or 0) - BEGIN)
        for left, _ in executed_between(placed, BEGIN + begin, BEGIN + end)
    ]


def test_what_was_executed_within_the_window_counts_as_it_was() -> None:
    assert cut(run(1, "physics", 30, 60, submit=20)) == [(20, 30, 60)]


def test_what_ran_when_the_window_began_goes_on_with_the_rest() -> None:
    assert cut(run(1, "physics", -50, 60, submit=-70)) == [(0, 0, 60)]
    assert cut(run(1, "physics", 0, 60, submit=-70)) == [(0, 0, 60)]


def test_what_waited_when_the_window_began_comes_behind_what_ran() -> None:
    assert cut(run(1, "physics", 30, 60, submit=-70)) == [(1, 30, 60)]
    assert cut(run(1, "physics", 1, 60, submit=0)) == [(1, 1, 60)]


def test_what_was_held_is_released_when_it_could_start() -> None:
    assert cut(run(1, "physics", 30, 60, submit=-70, release=25)) == [(25, 30, 60)]
    assert cut(run(1, "physics", 30, 60, submit=10, release=25)) == [(25, 30, 60)]


def test_what_ran_when_the_window_began_has_the_rest_of_its_limit() -> None:
    def left(start: int, limit: int | None) -> int | None:
        ((rest, _),) = executed_between(
            run(1, "physics", start, 60, limit=limit), BEGIN, BEGIN + LENGTH
        )
        return rest.limit

    assert [left(-50, 110), left(-50, 40), left(-50, None), left(20, 40)] == [60, 1, None, 40]


def test_what_still_runs_is_cut_at_the_end() -> None:
    assert cut(run(1, "physics", 30, None, submit=20)) == [(20, 30, LENGTH)]
    assert cut(run(1, "physics", 30, 500, submit=20)) == [(20, 30, LENGTH)]


def test_what_is_suspended_counts_as_far_as_it_was_executed() -> None:
    assert cut(run(1, "physics", 30, None, submit=20, paused_at=45)) == [(20, 30, 45)]


@pytest.mark.parametrize(("start", "end"), [(-50, -1), (-50, 0), (100, 130), (70, 70)])
def test_what_was_executed_before_or_after_does_not_count(start: int, end: int) -> None:
    assert cut(run(1, "physics", start, end, submit=-60)) == []


def test_a_run_across_a_change_of_hands_counts_as_the_window_found_it() -> None:
    item, (place,) = run(1, "physics", -50, 60)
    before = type(place)("physics", "biology", 1, place.begin, BEGIN - 10)
    after = type(place)("physics", "physics", 1, BEGIN - 10, place.end)
    ((_, places),) = executed_between((item, (before, after)), BEGIN, BEGIN + LENGTH)
    assert [(one.owner, one.begin - BEGIN) for one in places] == [("physics", 0)]


# -- against the ledger


RUNS = st.lists(
    st.tuples(
        st.sampled_from(list(PROCESSORS)),
        st.integers(-150, 150),  # start
        st.integers(1, 150) | st.none(),  # processing time
        st.integers(0, 100),  # wait
        st.integers(1, 3),  # processors
    ),
    min_size=1,
    max_size=8,
)


def workload(runs: list[AllocatedRun], owned: int) -> Workload | None:
    begin, end = BEGIN, BEGIN + LENGTH
    log = log_of_runs("-", (one for placed in runs for one in executed_between(placed, begin, end)))
    if not len(log.job):
        return None
    organizations = [Organization(name=name, processors=owned) for name in PROCESSORS]
    return workload_of(
        log, consortium_of(log, organizations), window=Window(start=begin, length=LENGTH)
    )


def drawn(values: list[tuple[str, int, int | None, int, int]]) -> list[AllocatedRun]:
    return [
        run(
            number,
            organization,
            start,
            None if time is None else start + time,
            submit=start - wait,
            processors=processors,
        )
        for number, (organization, start, time, wait, processors) in enumerate(values, start=1)
    ]


@given(RUNS)
def test_the_recorded_utility_is_the_worth_of_the_parts_executed_in_the_window(
    values: list[tuple[str, int, int | None, int, int]],
) -> None:
    jobs = workload(drawn(values), owned=3)
    if jobs is None:
        return
    measures = measure(jobs, run_policy(jobs, "recorded"))
    executed = {
        name: [
            second
            for organization, start, time, _, processors in values
            if organization == name
            for second in range(LENGTH)
            if start <= second and (time is None or second < start + time)
            for _ in range(processors)
        ]
        for name in jobs.organizations
    }
    assert dict(zip(jobs.organizations, measures.parts, strict=True)) == {
        name: len(seconds) for name, seconds in executed.items()
    }
    assert dict(zip(jobs.organizations, measures.utilities, strict=True)) == {
        name: sum(LENGTH - second for second in seconds) for name, seconds in executed.items()
    }


@given(RUNS)
def test_no_job_starts_before_it_is_released(
    values: list[tuple[str, int, int | None, int, int]],
) -> None:
    jobs = workload(drawn(values), owned=3)
    if jobs is not None:
        assert (jobs.start >= jobs.release).all()
        assert (jobs.release >= 0).all()


def test_in_the_fair_schedule_what_ran_at_the_begin_goes_on() -> None:
    waiting = [run(number, "biology", 90, 95, submit=-9) for number in range(1, 9)]
    running = [run(number, "physics", -10, 80, submit=-20) for number in (20, 21)]
    jobs = workload([*waiting, *running], owned=1)
    assert jobs is not None
    fair = run_policy(jobs, "ref")
    started_at_once = jobs.job[fair.job[fair.start == 0]]
    assert sorted(started_at_once.tolist()) == [20, 21]


# -- in the store


def test_only_the_window_is_read(url: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [run(job, "physics", job, job + 1) for job in range(500)]
    remember(store, *old, run(900, "biology", 990, None), run(901, "physics", 950, 970), until=1000)
    seen: list[AllocatedRun] = []

    def spy(placed: AllocatedRun, begin: int, end: int) -> list[AllocatedRun]:
        seen.append(placed)
        return list(executed_between(placed, begin, end))

    monkeypatch.setattr("shapleyprio.replay.logs.stored.executed_between", spy)
    past = read_past(url, NAME, LENGTH)
    assert [item.key.job_id for item, _ in seen] == [900, 901]
    assert past.window == Window(start=BEGIN + 900, length=LENGTH)
    assert past.log.job.tolist() == [901, 900]
    assert past.log.processing_time.tolist() == [20, 10]
    assert past.log.owned == PROCESSORS


def test_who_left_in_the_window_brings_the_nodes_that_it_left_to_nobody(
    url: str, store: Store
) -> None:
    remember(store, *(run(job, "biology", 10 * job, 300, owner="biology") for job in (1, 2)))
    nodes = {"kept": 4, "given": 8, "gone": 16, "later": 32, "before": 64}
    after = {"kept": NOBODY, "before": NOBODY, "given": "physics", "later": "physics"}
    moved = {"before": BEGIN, "kept": BEGIN + 100, "given": BEGIN + 100, "later": BEGIN + 300}
    with store.cluster(NAME).transaction() as rows:
        rows.history.save_standings([replace(standing(2, t=BEGIN + 200), processors=8)])
        rows.observed.put_layout(
            [
                *(
                    NodeRow(name=name, since=0, processors=n, partitions=())
                    for name, n in nodes.items()
                ),
                NodeRow(name="gone", since=BEGIN + 100, processors=0, partitions=()),
            ],
            (),
        )
        rows.ledger.save_tenures(
            {
                ("node", name): [
                    Tenure("node", name, "biology", None, moved.get(name)),
                    *(
                        [Tenure("node", name, after[name], moved[name], None)]
                        if name in after
                        else []
                    ),
                ]
                for name in nodes
            }
        )
    past = read_past(url, NAME, 300)
    assert past.log.owned == {"physics": 8, "biology": 4 + 16 + 32}
    consortium = past.consortium(["physics"], {})
    assert consortium.organizations == ("physics", "biology")
    assert consortium.owned.tolist() == [8, 52]


@pytest.mark.parametrize(("opened", "pruned"), [(950, 0), (0, 950)])
def test_the_window_is_no_longer_than_the_store_remembers(
    url: str, store: Store, opened: int, pruned: int
) -> None:
    remember(store, until=1000, opened=opened, pruned=pruned)
    assert read_past(url, NAME, LENGTH).window == Window(start=BEGIN + 950, length=50)


def test_a_store_that_no_daemon_has_filled_has_no_past(url: str, store: Store) -> None:
    assert store.clusters() == []
    past = read_past(url, NAME, LENGTH)
    assert past.window.length == 0
    assert len(past.log.job) == 0
