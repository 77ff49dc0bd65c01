from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.runs import JobRecord, run_of
from shapleyprio.lab.simulated import DEFAULT_SETTINGS, SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.port import (
    Malformed,
    PendingJob,
    PendingQueue,
    Slurm,
    SlurmRefusedError,
    SlurmUnavailableError,
)

NODES = {"a1": 4, "a2": 4, "b1": 2}
PARTITIONS = {"pa": ["a1", "a2"], "pb": ["b1"], "all": ["a1", "a2", "b1"]}


def cluster(
    nodes: Mapping[str, int] = NODES,
    partitions: Mapping[str, Sequence[str]] = PARTITIONS,
    accounting_delay: int = 0,
    **more: Any,
) -> SimulatedSlurm:
    return SimulatedSlurm(
        SimulatedSpec(
            cluster="c",
            nodes=nodes,
            partitions=partitions,
            accounts={"a": None, "b": None},
            **more,
        ),
        now=0,
        accounting_delay=accounting_delay,
    )


def one_processor(**more: Any) -> SimulatedSlurm:
    return cluster({"n": 1}, {"all": ["n"]}, **more)


def shown(slurm: SimulatedSlurm) -> dict[int, PendingJob]:
    return {job.job_id: job for job in slurm.pending().jobs}


def all_records(slurm: SimulatedSlurm, last_id: int = 200) -> list[JobRecord]:
    return [r for r in slurm.records_of(range(last_id)) if isinstance(r, JobRecord)]


def record(slurm: SimulatedSlurm, job_id: int) -> JobRecord:
    return [r for r in slurm.records_of([job_id]) if isinstance(r, JobRecord)][-1]


def starts(slurm: SimulatedSlurm, *job_ids: int) -> list[int | None]:
    return [record(slurm, job_id).start for job_id in job_ids]


def test_it_is_a_slurm() -> None:
    slurm: Slurm = cluster()
    assert slurm.layout().cluster == "c"


# -- time


def test_a_start_waits_until_its_second_is_over() -> None:
    slurm = one_processor()
    first = slurm.submit("a", processing_time=10)
    second = slurm.submit("a", processing_time=10)
    slurm.write("site_factor", {str(second): 1})
    slurm.advance(0)
    assert starts(slurm, first, second) == [None, 0]
    slurm.advance(10)
    assert set(shown(slurm)) == {first}
    slurm.advance(11)
    assert starts(slurm, first) == [10]


def test_ends_come_before_arrivals_and_arrivals_before_starts() -> None:
    slurm = one_processor()
    slurm.submit("a", processing_time=10)
    waits = slurm.submit("a", processing_time=10)
    arrives = slurm.submit("a", processing_time=10, nice=-5, at=10)
    slurm.advance(40)
    assert starts(slurm, arrives, waits) == [10, 20]


def test_a_job_to_come_is_unknown_until_then() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=10, at=5)
    assert slurm.next_event() == 5
    slurm.advance(4)
    assert (slurm.pending(), all_records(slurm)) == (PendingQueue([], []), [])
    slurm.advance(5)
    assert shown(slurm)[job].submit == 5


def test_the_next_event_forgets_ends_that_will_not_be() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=10)
    slurm.advance(3)
    assert slurm.next_event() == 10
    slurm.cancel(job)
    assert slurm.next_event() is None


def test_jobs_that_take_no_time_make_room_in_the_second_they_start() -> None:
    slurm = one_processor()
    jobs = [slurm.submit("a", processing_time=0) for _ in range(3)]
    slurm.advance(0)
    assert starts(slurm, *jobs) == [0, 0, 0]
    assert slurm.free == {"n": 1}


def test_time_does_not_go_back() -> None:
    slurm = one_processor()
    slurm.advance(5)
    with pytest.raises(ValueError, match="back from 5 to 4"):
        slurm.advance(4)
    with pytest.raises(ValueError, match="second 3 is over"):
        slurm.submit("a", processing_time=1, at=3)


# -- order and place


def test_equal_priorities_start_in_the_order_of_submission_and_id() -> None:
    slurm = one_processor()
    late = slurm.submit("a", processing_time=10, at=1)
    first = slurm.submit("a", processing_time=10)
    second = slurm.submit("b", processing_time=10)
    slurm.advance(50)
    assert starts(slurm, first, second, late) == [0, 10, 20]


def test_jobs_are_packed_onto_the_nodes_in_their_order() -> None:
    slurm = cluster()
    jobs = [slurm.submit("a", processors=3, processing_time=10) for _ in range(3)]
    slurm.advance(1)
    runs = [run for job in jobs if (run := run_of(record(slurm, job), {})) is not None]
    assert [run.processors.keys() for run in runs] == [{"a1"}, {"a1", "a2"}, {"a2", "b1"}]
    assert list(slurm.processors_of(runs).values()) == [
        {"a1": 3},
        {"a1": 1, "a2": 2},
        {"a2": 2, "b1": 1},
    ]


def test_a_wide_job_keeps_its_partition_for_itself_and_no_other() -> None:
    slurm = cluster()
    slurm.submit("a", processors=2, processing_time=10, partition="pa")
    wide = slurm.submit("a", processors=8, processing_time=10, partition="pa")
    behind = slurm.submit("a", processing_time=10, partition="pa")
    elsewhere = slurm.submit("a", processing_time=10, partition="pb")
    anywhere = slurm.submit("a", processing_time=10, partition="all")
    slurm.advance(30)
    assert starts(slurm, wide, behind, elsewhere, anywhere) == [10, 20, 0, 0]
    assert record(slurm, anywhere).nodes == ("b1",)


@pytest.mark.parametrize(
    "wrong",
    [{"account": "x"}, {"partition": "x"}, {"qos": "x"}, {"processors": 11}, {"processors": 0}],
)
def test_a_job_that_can_never_run_is_refused(wrong: dict[str, Any]) -> None:
    job: dict[str, Any] = {"account": "a", "processing_time": 1}
    with pytest.raises(SlurmRefusedError):
        cluster().submit(**job | wrong)


# -- priorities


def test_age_counts_at_every_recalculation_until_it_is_full() -> None:
    settings = replace(
        DEFAULT_SETTINGS, weights={"Age": 1000}, calc_period_seconds=60, max_age_seconds=600
    )
    slurm = one_processor(settings=settings)
    slurm.submit("a", processing_time=10_000)
    job = slurm.submit("a", processing_time=10)
    slurm.advance(0)
    slurm.write("site_factor", {str(job): 5})
    priorities = []
    for second in (59, 60, 119, 300, 6000):
        slurm.advance(second)
        priorities.append(shown(slurm)[job].priority)
    assert priorities == [5, 105, 105, 505, 1005]


def test_an_older_job_wins_by_its_age() -> None:
    settings = replace(DEFAULT_SETTINGS, weights={"Age": 1000}, max_age_seconds=1000)
    slurm = one_processor(settings=settings)
    slurm.submit("a", processing_time=1000)
    old = slurm.submit("a", processing_time=10, nice=100)
    new = slurm.submit("b", processing_time=10, at=600)
    slurm.advance(2000)
    assert starts(slurm, old, new) == [1000, 1010]


def test_a_qos_reaches_waiting_jobs_at_the_next_recalculation_and_updated_ones_at_once() -> None:
    slurm = one_processor(qos={"normal": 0, "top": 100})
    slurm.submit("a", processing_time=1000)
    jobs = [slurm.submit("a", processing_time=1000) for _ in range(2)]
    slurm.advance(10)
    assert slurm.write("qos", {"normal": 50}) == {}
    slurm.write("site_factor", {str(jobs[0]): 0})
    assert [shown(slurm)[job].priority for job in jobs] == [1_050_000, 1_000_000]
    new = slurm.submit("a", processing_time=10)
    assert shown(slurm)[new].priority == 1_050_000
    slurm.advance(60)
    assert shown(slurm)[jobs[1]].priority == 1_050_000


def test_a_qos_counts_as_it_is_if_slurm_does_not_normalize_it() -> None:
    settings = replace(DEFAULT_SETTINGS, weights={"QOS": 1}, flags=frozenset({"NO_NORMAL_QOS"}))
    slurm = one_processor(settings=settings, qos={"normal": 70, "top": 100})
    job = slurm.submit("a", processing_time=10)
    assert shown(slurm)[job].priority == 70


def test_a_qos_refuses_what_is_no_priority() -> None:
    assert set(cluster().write("qos", {"normal": -5, "other": 5})) == {"normal", "other"}


def test_users_may_not_go_below_zero_and_may_undo_what_we_wrote() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=10)
    slurm.write("nice", {str(job): -100})
    with pytest.raises(SlurmRefusedError):
        slurm.set_nice(job, -1)
    slurm.set_nice(job, 3)
    assert (shown(slurm)[job].nice, shown(slurm)[job].priority) == (3, 999_997)


def test_without_the_privilege_a_write_is_refused() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=10)
    slurm.missing_privileges["nice"] = "be an Operator"
    assert slurm.privilege("nice") == "be an Operator"
    assert slurm.privilege("site_factor") is None
    with pytest.raises(SlurmRefusedError, match="be an Operator"):
        slurm.write("nice", {str(job): -1})


# -- jobs


def test_an_array_gives_its_own_id_to_its_last_task() -> None:
    slurm = one_processor()
    array = slurm.submit("a", processing_time=10, array=3)
    slurm.advance(1)
    assert shown(slurm)[array].target == f"{array}_[1-2]"
    slurm.advance(11)
    assert shown(slurm)[array].target == f"{array}_[2]"
    slurm.advance(50)
    assert {r.label: r.job_id for r in all_records(slurm)} == {
        f"{array}_0": array + 1,
        f"{array}_1": array + 2,
        f"{array}_2": array,
    }


def test_a_requeued_task_waits_under_its_own_name() -> None:
    slurm = one_processor()
    array = slurm.submit("a", processing_time=10, array=2)
    slurm.advance(5)
    slurm.requeue(array + 1)
    assert shown(slurm)[array + 1].target == f"{array}_0"
    slurm.advance(100)
    assert [r.state for r in all_records(slurm) if r.job_id == array + 1] == [
        "REQUEUED",
        "COMPLETED",
    ]


def test_a_requeued_job_does_not_start_in_the_same_second() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=10)
    slurm.advance(0)
    slurm.requeue(job)
    slurm.hold(job)
    slurm.release(job)
    assert shown(slurm)[job].reason == "BeginTime"
    slurm.advance(5)
    assert [r.start for r in all_records(slurm)] == [0, 1]


def test_a_job_that_exceeds_its_limit_is_stopped() -> None:
    slurm = one_processor()
    stopped = slurm.submit("a", processing_time=100, limit=60)
    done = slurm.submit("a", processing_time=100, limit=100)
    slurm.advance(500)
    assert [record(slurm, job).state for job in (stopped, done)] == ["TIMEOUT", "COMPLETED"]
    assert [record(slurm, job).elapsed for job in (stopped, done)] == [60, 100]
    assert [record(slurm, job).limit for job in (stopped, done)] == [60, 100]


def test_a_requeued_job_is_eligible_a_second_later() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=100)
    slurm.advance(10)
    slurm.requeue(job)
    assert shown(slurm)[job].reason == "BeginTime"
    assert [found.eligible for found in all_records(slurm)] == [0, 11]
    slurm.advance(11)
    assert shown(slurm)[job].eligible == 11
    assert shown(slurm)[job].waits_for_its_turn


def test_a_held_job_does_not_start_and_no_window_shows_it() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=10)
    slurm.hold(job)
    slurm.advance(20)
    assert starts(slurm, job) == [None]
    assert list(slurm.records(0, 20)) == []
    slurm.release(job)
    slurm.advance(40)
    assert starts(slurm, job) == [20]


def test_a_suspended_job_keeps_its_processors_and_ends_later() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=10)
    waits = slurm.submit("a", processing_time=10)
    slurm.advance(4)
    slurm.suspend(job)
    slurm.advance(11)
    suspended = record(slurm, job)
    assert (suspended.state, suspended.elapsed, suspended.suspended) == ("SUSPENDED", 4, 7)
    slurm.resume(job)
    slurm.advance(30)
    ended = record(slurm, job)
    assert (ended.end, ended.elapsed, ended.suspended) == (17, 10, 7)
    assert starts(slurm, waits) == [17]


def test_what_does_not_fit_a_jobs_state_is_refused() -> None:
    slurm = one_processor()
    running = slurm.submit("a", processing_time=10)
    waits = slurm.submit("a", processing_time=10)
    slurm.advance(1)
    for verb, job in (
        (slurm.hold, running),
        (slurm.requeue, waits),
        (slurm.suspend, waits),
        (slurm.resume, running),
        (slurm.cancel, 99),
    ):
        with pytest.raises(SlurmRefusedError):
            verb(job)


def test_cancelling_an_array_cancels_all_its_tasks() -> None:
    slurm = one_processor()
    array = slurm.submit("a", processing_time=10, array=3)
    slurm.advance(4)
    slurm.cancel(array)
    assert slurm.pending().jobs == []
    assert slurm.free == {"n": 1}
    assert {r.state for r in all_records(slurm)} == {"CANCELLED"}


# -- accounting


def test_records_come_late() -> None:
    slurm = one_processor(accounting_delay=5)
    job = slurm.submit("a", processing_time=10)
    assert slurm.controller().accounting_backlog == 1
    slurm.advance(4)
    assert all_records(slurm) == []
    slurm.advance(14)
    assert record(slurm, job).state == "RUNNING"
    slurm.advance(15)
    assert record(slurm, job).end == 10
    assert slurm.controller().accounting_backlog == 0


def test_a_window_has_both_its_ends() -> None:
    slurm = cluster()
    for second in range(0, 100, 10):
        slurm.submit("a", processing_time=5, at=second)
    slurm.advance(200)
    found = [r.submit for r in slurm.records(25, 40) if isinstance(r, JobRecord)]
    assert found == [20, 30, 40]


def test_accounting_forgets_what_ended_before() -> None:
    slurm = cluster()
    for second in (0, 10, 20):
        slurm.submit("a", processing_time=5, at=second)
    slurm.submit("a", processing_time=1000)
    slurm.advance(200)
    slurm.purge(15)
    assert sorted(r.job_id for r in all_records(slurm)) == [2, 3, 4]
    assert list(slurm.records_of([1])) == []


def test_malformed_lines_are_reported_where_they_were_printed() -> None:
    slurm = cluster()
    bad = Malformed("sacct", "x", "broken"), Malformed("squeue", "y", "broken")
    slurm.malformed.extend(bad)
    assert list(slurm.records(0, 1)) == [bad[0]]
    assert slurm.pending() == PendingQueue([], [bad[1]])


# -- outages


def test_while_the_controller_is_away_jobs_end_and_nothing_starts() -> None:
    slurm = one_processor()
    job = slurm.submit("a", processing_time=10)
    waits = slurm.submit("a", processing_time=10)
    comes = slurm.submit("a", processing_time=10, at=20)
    slurm.advance(5)
    slurm.take_down("slurmctld")
    slurm.advance(50)
    for verb in (slurm.controller, slurm.pending, slurm.layout, lambda: slurm.cancel(job)):
        with pytest.raises(SlurmUnavailableError):
            verb()
    with pytest.raises(SlurmUnavailableError):
        slurm.submit("a", processing_time=10)
    assert record(slurm, job).state == "RUNNING"
    slurm.bring_up("slurmctld")
    slurm.advance(100)
    assert [record(slurm, j).submit for j in (job, waits, comes)] == [0, 0, 50]
    assert [record(slurm, j).end for j in (job, waits, comes)] == [10, 60, 70]


def test_while_accounting_is_away_changes_pile_up() -> None:
    slurm = one_processor(accounting_delay=3)
    job = slurm.submit("a", processing_time=10)
    slurm.advance(5)
    slurm.take_down("slurmdbd")
    slurm.advance(50)
    for verb in (lambda: slurm.records(0, 9), lambda: slurm.records_of([job]), slurm.layout):
        with pytest.raises(SlurmUnavailableError):
            verb()
    assert slurm.controller().accounting_backlog == 1
    slurm.bring_up("slurmdbd")
    assert record(slurm, job).state == "RUNNING"
    slurm.advance(53)
    assert record(slurm, job).end == 10
    assert slurm.controller().accounting_backlog == 0


def test_a_write_can_be_cut_off_once() -> None:
    slurm = one_processor()
    jobs = [slurm.submit("a", processing_time=10) for _ in range(3)]
    values = {str(job): 7 for job in jobs}
    slurm.stop_write_after(2)
    with pytest.raises(SlurmUnavailableError):
        slurm.write("site_factor", values)
    assert [shown(slurm)[job].site_factor for job in jobs] == [7, 7, 0]
    assert slurm.write("site_factor", values) == {}
    assert shown(slurm)[jobs[2]].site_factor == 7


# -- what always holds

ACTIONS = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, 30)),
    st.tuples(
        st.just("submit"),
        st.fixed_dictionaries(
            {
                "processors": st.integers(1, 2),
                "processing_time": st.integers(0, 20),
                "partition": st.sampled_from(sorted(PARTITIONS)),
                "nice": st.integers(0, 3),
                "array": st.integers(0, 3),
            }
        ),
    ),
    st.tuples(
        st.sampled_from(
            ["hold", "release", "requeue", "suspend", "resume", "cancel", "write", "write task"]
        ),
        st.integers(1, 12),
    ),
    st.tuples(st.sampled_from(["down", "up"]), st.sampled_from(["slurmctld", "slurmdbd"])),
)


def act(slurm: SimulatedSlurm, verb: str, argument: Any) -> None:
    if verb == "wait":
        slurm.advance(slurm.now + argument)
    elif verb == "submit":
        slurm.submit("a", **argument)
    elif verb == "write":
        slurm.write("site_factor", {str(argument): argument})
    elif verb == "write task":
        slurm.write("nice", {f"{argument}_[1-2]": -argument})
    elif verb in {"down", "up"}:
        (slurm.take_down if verb == "down" else slurm.bring_up)(argument)
    else:
        getattr(slurm, verb)(argument)


def play(actions: Sequence[tuple[str, Any]]) -> SimulatedSlurm:
    slurm = cluster(accounting_delay=2)
    for verb, argument in actions:
        with suppress(SlurmRefusedError, SlurmUnavailableError):
            act(slurm, verb, argument)
        assert all(0 <= free <= NODES[node] for node, free in slurm.free.items())
    slurm.bring_up("slurmctld")
    slurm.bring_up("slurmdbd")
    slurm.advance(slurm.now)
    return slurm


@given(st.lists(ACTIONS, max_size=40))
def test_the_first_waiting_job_of_a_partition_never_fits(actions: list[tuple[str, Any]]) -> None:
    slurm = play(actions)
    waits = [job for job in shown(slurm).values() if job.reason == "Priority"]
    for partition, nodes in PARTITIONS.items():
        mine = [job for job in waits if job.partition == partition]
        if mine:
            first = min(mine, key=lambda job: (-job.priority, job.submit, job.job_id))
            kept = {
                node
                for job in waits
                if (-job.priority, job.submit, job.job_id)
                < (-first.priority, first.submit, first.job_id)
                for node in PARTITIONS[job.partition]
            }
            free = sum(slurm.free[node] for node in nodes if node not in kept)
            assert free < first.processors


@given(st.lists(ACTIONS, max_size=40))
def test_records_agree_with_each_other_and_with_the_processors(
    actions: list[tuple[str, Any]],
) -> None:
    slurm = play(actions)
    slurm.advance(slurm.now + 2)  # the delay of the accounting
    found = all_records(slurm)
    keys = [(r.job_id, r.submit, r.start) for r in found]
    assert len(set(keys)) == len(keys)
    for r in found:
        if r.start is None:
            assert (r.elapsed, r.suspended, r.nodes, r.processors) == (0, 0, (), 0)
        else:
            assert r.submit <= r.start <= (slurm.now if r.end is None else r.end)
            until = slurm.now if r.end is None else r.end
            assert r.elapsed >= 0
            assert r.elapsed + r.suspended == until - r.start
            assert r.processors in {1, 2}
    assert_never_overbooked(found, slurm.now)
    window = list(slurm.records(0, slurm.now))
    visible = [r for r in found if r.state != "PENDING"]
    assert sorted(window, key=repr) == sorted(visible, key=repr)


def assert_never_overbooked(found: list[JobRecord], now: int) -> None:
    for second in {r.start for r in found if r.start is not None}:
        running = [
            r
            for r in found
            if r.start is not None and r.start <= second < (now + 1 if r.end is None else r.end)
        ]
        assert sum(r.processors for r in running) <= sum(NODES.values())
        for node, size in NODES.items():
            assert sum(r.processors for r in running if r.nodes == (node,)) <= size


@given(st.lists(ACTIONS, max_size=40))
def test_playing_twice_gives_the_same(actions: list[tuple[str, Any]]) -> None:
    one, two = play(actions), play(actions)
    assert all_records(one) == all_records(two)
    assert one.pending() == two.pending()


@given(st.lists(ACTIONS, max_size=30), st.integers(0, 60), st.integers(0, 60))
def test_a_window_is_what_existed_in_it(
    actions: list[tuple[str, Any]], since: int, until: int
) -> None:
    slurm = play(actions)
    everything = list(slurm.records(0, slurm.now))
    wanted = [
        r
        for r in everything
        if isinstance(r, JobRecord) and r.submit <= until and (r.end is None or r.end >= since)
    ]
    assert sorted(slurm.records(since, until), key=repr) == sorted(wanted, key=repr)
