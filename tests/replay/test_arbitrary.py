"""Ref for any utility decides as Fig. 1 and Definition 3.1 of SPAA 2013 say."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.common.errors import Remedy
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import UtilityError
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies.arbitrary import ref_for
from shapleyprio.replay.policies.utilities import (
    UTILITIES,
    JobTimes,
    Utility,
    flow_time,
    strategy_proof,
    turnaround,
    utility_named,
)
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay import literal
from tests.replay.literal import Coalition, CoalitionSchedule
from tests.replay.strategies import Job, workload_of_jobs, workloads

SMALL = workloads(organizations=st.integers(1, 3), jobs=10)

NINE_JOBS = [(0, 3), (0, 4), (0, 3), (3, 6), (3, 3), (4, 6), (6, 3), (9, 3), (10, 4)]
"""Start and processing time of O(1)'s jobs in the example of the SPAA paper, all released at 0."""


def placed(jobs: Sequence[tuple[int, int]]) -> list[JobTimes]:
    return [JobTimes(0, start, processing_time) for start, processing_time in jobs]


def started(schedule: Schedule) -> list[tuple[int, int]]:
    return sorted(zip(schedule.job.tolist(), schedule.start.tolist(), strict=True))


def promised(jobs: Sequence[JobTimes], t: int) -> Fraction:
    """Counts a job as soon as it starts, so that starts change values: Distance decides."""
    worth = [Fraction(job.processing_time, 1 + t - job.release) for job in jobs if job.start == t]
    return strategy_proof(jobs, t) + sum(worth, Fraction(0))


# Fig. 1, word for word


def fig_1(workload: Workload, utility: Utility) -> literal.Outcome:
    grand = frozenset(range(len(workload.organizations)))
    schedules = {c: CoalitionSchedule(workload, c) for c in literal.subsets(grand)}
    tasks = literal.tasks_of(workload)
    v: dict[Coalition, int] = {}

    def jobs_in(coalition: Coalition, u: int, t: int) -> list[JobTimes]:
        """Also of a coalition that has no processors for them."""
        starts = [one.start for one in schedules[coalition].starts if one.task.organization == u]
        released = [task for task in tasks if task.organization == u and task.release <= t]
        return [
            JobTimes(task.release, start, task.processing_time)
            for task, start in zip_longest(released, starts)
        ]

    def psi(coalition: Coalition, u: int, t: int) -> int:
        return utility(jobs_in(coalition, u, t), t)  # type: ignore[return-value]

    def select_and_schedule(coalition: Coalition, t: int, waiting: Sequence[int]) -> int:
        v[coalition] = sum(psi(coalition, u, t) for u in coalition)
        balance = {u: literal.eq_1(u, coalition, v) - psi(coalition, u, t) for u in coalition}
        best = []
        for u in waiting:
            jobs = jobs_in(coalition, u, t)
            first = next(place for place, job in enumerate(jobs) if job.start is None)
            jobs[first] = jobs[first]._replace(start=t)
            gain = utility(jobs, t) - psi(coalition, u, t)
            distance = literal.distance(u, balance, gain)  # type: ignore[arg-type]
            best.append((distance, -balance[u], u))
        return min(best)[-1]

    for t in literal.moments(workload, schedules.values()):
        for coalition, schedule in schedules.items():
            schedule.decide(t, partial(select_and_schedule, coalition, t))
            v[coalition] = sum(psi(coalition, u, t) for u in coalition)
    t = workload.window.length
    v = {c: sum(psi(c, u, t) for u in c) for c in schedules}
    members = sorted(grand)
    return literal.Outcome(
        schedules[grand].starts, [], [literal.eq_1(u, grand, v) for u in members]
    )


@settings(max_examples=examples(40))
@given(workload=SMALL, utility=st.sampled_from([*UTILITIES.values(), promised]))
def test_it_decides_as_fig_1_written_out_decides(workload: Workload, utility: Utility) -> None:
    schedule = ref_for(workload, utility, name="any")
    expected = fig_1(workload, utility)
    starts = sorted((start.task.job, start.start) for start in expected.starts)
    assert started(schedule) == starts
    assert schedule.contribution == tuple(expected.contribution)


@given(workload=workloads())
def test_for_the_strategy_proof_utility_it_is_ref(workload: Workload) -> None:
    schedule = ref_for(workload, strategy_proof, name="strategy-proof")
    expected = literal.ref(workload)
    assert started(schedule) == sorted((one.task.job, one.start) for one in expected.starts)
    assert schedule.contribution == tuple(expected.contribution)
    assert list(measure(workload, schedule).utilities) == expected.utility


def test_the_nearest_to_the_ideal_division_is_started_first() -> None:
    """A start that is worth much at once goes to who has contributed all."""
    jobs = [Job(0, 0, 5), Job(1, 0, 5)]
    for owner in (0, 1):
        workload = workload_of_jobs([int(u == owner) for u in (0, 1)], jobs, 20)
        schedule = ref_for(workload, promised, name="promised")
        assert workload.organization[schedule.job].tolist() == [owner, 1 - owner]


def test_utilities_can_disagree_about_what_is_fair() -> None:
    """Flow time holds against O(0) how many jobs of it wait, ψsp does not."""
    workload = workload_of_jobs(
        [1, 1], [*[Job(0, 0, 4)] * 3, Job(1, 0, 4), *[Job(1, 2, 4)] * 4], 20
    )
    starts = {name: started(ref_for(workload, u, name=name)) for name, u in UTILITIES.items()}
    assert starts["flow-time"] != starts["strategy-proof"]


# processors


@given(workload=workloads(), seed=st.integers(0, 2**64))
def test_every_copy_gets_a_processor_of_an_owner_who_has_one_free(
    workload: Workload, seed: int
) -> None:
    schedule = ref_for(workload, strategy_proof, name="strategy-proof", seed=seed)
    end = schedule.start + workload.processing_time[schedule.job]
    for start in schedule.start:
        running = (schedule.start <= start) & (start < end)
        used = np.bincount(schedule.owner[running], minlength=len(workload.owned))
        assert (used <= workload.owned).all()


def test_owners_are_drawn_by_how_many_processors_they_have_free() -> None:
    workload = workload_of_jobs([1, 3], [Job(0, t, 1) for t in range(4000)], 4000)
    schedule = ref_for(workload, strategy_proof, name="strategy-proof")
    assert 2850 < int((schedule.owner == 1).sum()) < 3150  # 3000 ± 5 standard deviations


def test_the_same_seed_draws_the_same_and_another_one_something_else() -> None:
    workload = workload_of_jobs([1, 1], [Job(0, t, 1) for t in range(100)], 100)
    owners = [
        ref_for(workload, strategy_proof, name="strategy-proof", seed=seed).owner.tolist()
        for seed in (1, 1, 2)
    ]
    assert owners[0] == owners[1] != owners[2]


# the utilities that ship


def test_the_papers_example() -> None:
    assert strategy_proof(placed(NINE_JOBS), 13) == 262
    assert strategy_proof(placed(NINE_JOBS), 14) == 297
    assert flow_time(placed(NINE_JOBS), 14) == -70
    without_the_other = [*NINE_JOBS[:-1], (9, 4)]
    assert strategy_proof(placed(without_the_other), 14) == 297 + 4
    assert flow_time(placed(without_the_other), 14) == -70 + 1


@pytest.mark.parametrize("utility", UTILITIES.values())
def test_nothing_that_happens_later_counts(utility: Utility) -> None:
    waits, runs, long = JobTimes(0, None, 9), JobTimes(0, 4, 9), JobTimes(0, 4, 99)
    assert utility([waits], 4) == utility([runs], 4)
    assert utility([runs], 13) == utility([long], 13)


def test_turnaround_is_flow_time_for_each_job() -> None:
    assert turnaround(placed(NINE_JOBS), 14) == Fraction(-70, 9)
    assert turnaround([], 14) == 0


# users' own


def test_a_utility_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_jobs.py").write_text("def on_time(jobs, t):\n    return len(jobs)\n")
    monkeypatch.chdir(tmp_path)
    utility = utility_named("late_jobs:on_time")
    assert utility([JobTimes(0, None, 1)], 1) == 1
    with pytest.raises(UtilityError, match=r"late_jobs\.py has no function 'tardy'"):
        utility_named("late_jobs:tardy")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("flowtime", "did you mean 'flow-time'"),
        ("x", "there are flow-time, turnaround"),
        ("no_such_module:f", "no module 'no_such_module' here"),
        ("mine.py:f:g", "not module:function; for utility.py write"),
    ],
)
def test_an_unknown_utility_names_what_there_is(name: str, message: str) -> None:
    with pytest.raises(UtilityError, match=message):
        utility_named(name)


def test_a_float_decides_nothing() -> None:
    workload = workload_of_jobs([1, 0], [Job(0, 0, 2), Job(1, 0, 2)], 9)
    with pytest.raises(UtilityError, match=r"'half' returned 0\.5; it must return an int or"):
        ref_for(workload, lambda jobs, t: 0.5, name="half")  # type: ignore[arg-type, return-value]


# what it refuses


def test_rigid_jobs_are_refused() -> None:
    workload = workload_of_jobs([2], [Job(0, 0, 2, 2)], 9, wide="rigid")
    with pytest.raises(UtilityError, match="needs sequential jobs") as caught:
        ref_for(workload, flow_time, name="flow-time")
    assert caught.value.remedy is Remedy.SEQUENTIAL_JOBS


@pytest.mark.parametrize("owned", [[1] * 40, [1] * 4])
def test_what_would_never_end_is_refused(owned: list[int]) -> None:
    workload = workload_of_jobs(owned, [Job(0, 0, 2, 10**9)], 9)
    with pytest.raises(UtilityError, match="they ask for") as caught:
        ref_for(workload, flow_time, name="flow-time")
    assert caught.value.remedy is Remedy.SHORTER_WINDOW
