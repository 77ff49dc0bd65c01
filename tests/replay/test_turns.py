"""Decisions judged one by one, against the literal rule asked at each start of a schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures import turns as measure_of_turns
from shapleyprio.replay.measures.turns import Turns, turns_of
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay import literal
from tests.replay.literal import Coalition, CoalitionSchedule, Pick, Start
from tests.replay.literal_bays import ConfinedSchedule
from tests.replay.strategies import HORIZONS, Job, workload_of_jobs, workloads
from tests.replay.test_bays import CONFINED
from tests.replay.test_policies import BACKFILLS

HORIZON = st.none() | HORIZONS
CUT = workloads(horizons=HORIZON)
WHOLE = workloads(
    widths=st.integers(1, 5),
    owned=st.integers(1, 3),
    wide="rigid",
    backfills=BACKFILLS,
    horizons=HORIZON,
)
POLICIES = st.sampled_from(["rand", "directcontr", "fairshare", "roundrobin", "fcfs"])


def turns(workload: Workload, schedule: Schedule) -> Turns:
    found = turns_of(workload, [schedule])
    assert found is not None
    return found[0]


def scheduled(starts: Sequence[Start]) -> Schedule:
    """A schedule of tasks, those of one job that start together in one entry."""
    entries = [
        (job, second, sum(start.task.processors for start in together))
        for (job, second), together in groupby(
            starts, key=lambda start: (start.task.job, start.start)
        )
    ]
    job, start, copies = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    return Schedule(
        policy="literal",
        seed=0,
        job=job,
        start=start,
        owner=np.zeros(len(job), dtype=np.int32),
        copies=copies,
        contribution=None,
        seconds=0.0,
    )


def grand(workload: Workload) -> Coalition:
    return frozenset(range(len(workload.organizations)))


def value_at(schedule: CoalitionSchedule, t: int) -> int:
    """v(C) at t; the schedules of coalitions go on to the window's end."""
    begun = [start for start in schedule.starts if start.start < t]
    return sum(literal.worth(start, t, schedule.horizon) for start in begun)


def fair_pick(
    schedules: dict[Coalition, CoalitionSchedule], own: CoalitionSchedule, t: int, *, reverse: bool
) -> Pick:
    """Serves the largest φ − ψ, the one listed first of equal ones; or just the other way round."""
    v = {coalition: value_at(schedule, t) for coalition, schedule in schedules.items()}
    v[own.members] = own.value(t)

    @cache
    def balance(u: int) -> object:
        return literal.eq_1(u, own.members, v) - own.utility(u, t)

    def pick(waiting: Sequence[int]) -> int:
        order = sorted(waiting, key=lambda u: (-balance(u), u))  # type: ignore[operator]
        return order[-1 if reverse else 0]

    return pick


def literal_turns(workload: Workload, starts: Sequence[Start]) -> Turns:
    """Asks the rule at every second at which something starts, in the schedule up to then."""
    schedules = literal.ref_schedules(workload)
    found = Turns(0, 0)
    for t in sorted({start.start for start in starts}):

        def decided(*, reverse: bool, t: int = t) -> Counter[int]:
            own = CoalitionSchedule(workload, grand(workload))
            own.starts = [start for start in starts if start.start < t]
            for start in own.starts:
                own.queue[start.task.organization].remove(start.task)
            own.decide(t, fair_pick(schedules, own, t, reverse=reverse))
            return jobs_at(own.starts, t)

        now, fair = jobs_at(starts, t), decided(reverse=False)
        unfair = bool(now - fair)
        contested = unfair or bool(decided(reverse=True) - fair)
        found += Turns(int(contested), int(unfair))
    return found


def jobs_at(starts: Sequence[Start], t: int) -> Counter[int]:
    jobs: Counter[int] = Counter()
    for start in starts:
        if start.start == t:
            jobs[start.task.job] += start.task.processors
    return jobs


def followed(workload: Workload, *, reverse: bool) -> Sequence[Start]:
    """The consortium's schedule by the rule of ref, or by that rule turned upside down."""
    make = CoalitionSchedule if workload.bays is None else ConfinedSchedule
    schedules = literal.ref_schedules(workload, range(workload.window.length), make=make)
    own = make(workload, grand(workload))
    for t in range(workload.window.length):
        own.decide(t, fair_pick(schedules, own, t, reverse=reverse))
    return own.starts


@settings(deadline=None)
@given(CUT | WHOLE | CONFINED)
def test_ref_is_never_out_of_turn(workload: Workload) -> None:
    assert turns(workload, run_policy(workload, "ref")).out_of_turn == 0


@settings(deadline=None, max_examples=examples(60))
@given(CUT | WHOLE | CONFINED)
def test_the_rule_upside_down_is_out_of_turn_at_each_contested_moment(workload: Workload) -> None:
    found = turns(workload, scheduled(followed(workload, reverse=True)))
    assert found.out_of_turn == found.contested


@settings(deadline=None, max_examples=examples(60))
@given(CUT | WHOLE, POLICIES)
def test_moments_are_those_of_the_literal_rule(workload: Workload, policy: str) -> None:
    schedule = run_policy(workload, policy)
    tasks = {task.job: task for task in literal.tasks_of(workload)}
    starts = [
        Start(tasks[job], start)
        for job, start, copies in zip(
            schedule.job.tolist(), schedule.start.tolist(), schedule.copies.tolist(), strict=True
        )
        for _ in range(1 if workload.wide == "rigid" else copies)
    ]
    if workload.wide == "rigid":  # a job has an entry for each owner of its processors
        starts = list(dict.fromkeys(starts))
    assert turns(workload, schedule) == literal_turns(workload, starts)


@settings(deadline=None)
@given(CUT | WHOLE, st.data())
def test_whose_processors_copies_get_does_not_matter(
    workload: Workload, data: st.DataObject
) -> None:
    schedule = run_policy(workload, "directcontr")
    owners = data.draw(st.permutations(schedule.owner.tolist()))
    moved = replace(schedule, owner=np.array(owners, dtype=np.int32))
    assert turns(workload, moved) == turns(workload, schedule)


@settings(deadline=None)
@given(CUT | WHOLE)
def test_schedules_are_judged_together_as_each_by_itself(workload: Workload) -> None:
    schedules = [run_policy(workload, policy) for policy in ("ref", "fcfs", "fairshare")]
    together = turns_of(workload, schedules)
    assert together == tuple(turns(workload, schedule) for schedule in schedules)
    assert all(0 <= found.out_of_turn <= found.contested for found in together)


FLOOD = [Job(0, 0, 100) for _ in range(4)]


def by_hand(starts: Sequence[tuple[int, int]], workload: Workload) -> Schedule:
    """A schedule of (job, second), one processor each."""
    tasks = {task.job: task for task in literal.tasks_of(workload)}
    return scheduled([Start(tasks[job], second) for job, second in starts])


def test_who_lent_a_processor_gets_the_next_one() -> None:
    workload = workload_of_jobs([1, 1], [*FLOOD, Job(1, 10, 100)], 300)
    fair = by_hand([(0, 0), (1, 0), (4, 100), (2, 100), (3, 200)], workload)
    unfair = by_hand([(0, 0), (1, 0), (2, 100), (3, 100), (4, 200)], workload)
    assert turns(workload, fair) == Turns(1, 0)
    assert turns(workload, unfair) == Turns(1, 1)


def test_a_start_that_is_late_is_not_out_of_turn() -> None:
    """A real scheduler looks at its queue every now and then."""
    workload = workload_of_jobs([1, 1], [*FLOOD, Job(1, 10, 100)], 300)
    late = by_hand([(0, 5), (1, 5), (4, 130), (2, 140), (3, 250)], workload)
    assert turns(workload, late) == Turns(1, 0)


def test_what_a_schedule_leaves_undone_is_not_out_of_turn() -> None:
    """At 100 the rule would start a job of both; here one waits, and a processor is idle."""
    workload = workload_of_jobs([1, 1], [*FLOOD, Job(1, 10, 100)], 300)
    half = by_hand([(0, 0), (1, 0), (2, 100), (4, 150), (3, 201)], workload)
    assert turns(workload, half).out_of_turn == 0
    assert turns(workload, half).contested > 0


def test_moments_are_counted_and_not_jobs_so_spreading_starts_makes_the_share_smaller() -> None:
    jobs = [Job(0, 0, 100) for _ in range(8)] + [Job(1, 10, 100) for _ in range(4)]
    workload = workload_of_jobs([2, 2], jobs, 300)
    before = [(job, 0) for job in range(4)]
    together = by_hand([*before, (8, 100), (9, 100), (10, 100), (4, 100)], workload)
    spread = by_hand([*before, (8, 100), (9, 101), (10, 102), (4, 103)], workload)
    assert turns(workload, together) == Turns(1, 1)
    assert turns(workload, spread) == Turns(4, 1)


def test_the_order_of_an_organizations_own_jobs_is_its_own_affair() -> None:
    workload = workload_of_jobs([1, 1], [*FLOOD, Job(1, 10, 100), Job(1, 20, 100)], 300)
    swapped = by_hand([(0, 0), (1, 0), (5, 100), (4, 100), (2, 200)], workload)
    last_first = by_hand([(0, 0), (1, 0), (5, 100), (3, 100), (4, 200)], workload)
    assert turns(workload, swapped) == Turns(1, 0)
    assert (
        turns(workload, last_first).out_of_turn
        == turns(
            workload, by_hand([(0, 0), (1, 0), (4, 100), (2, 100), (5, 200)], workload)
        ).out_of_turn
    )


def test_processors_that_are_not_there_are_nobodys_turn() -> None:
    """A recorded schedule may have had more than its organizations bring."""
    workload = workload_of_jobs([1, 1], [*FLOOD, Job(1, 10, 100)], 300)
    crowded = by_hand([(0, 0), (1, 0), (2, 0), (3, 0), (4, 10)], workload)
    assert turns(workload, crowded) == Turns(0, 0)


def test_counts_of_windows_are_pooled() -> None:
    pooled = sum([Turns(5, 5), Turns(95, 0)], Turns(0, 0))
    assert pooled.share == pytest.approx(0.05)
    assert Turns(0, 0).share is None


def test_too_many_jobs_times_coalitions_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = workload_of_jobs([1, 1], FLOOD, 300)
    schedule = run_policy(workload, "fcfs")
    assert turns_of(workload, [schedule]) is not None
    monkeypatch.setattr(measure_of_turns, "MOST_STARTS", 4 * 4 - 1)
    assert turns_of(workload, [schedule]) is None
