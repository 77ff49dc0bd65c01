"""Whose free processors a job gets when the least loaded are taken."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.schedule import Schedule
from shapleyprio.replay.workload import Workload
from tests.replay.certificate import certify
from tests.replay.strategies import Job, workload_of_jobs, workloads

BUSY = workloads(
    organizations=st.integers(2, 4),
    owned=st.integers(0, 4),
    lengths=st.integers(20, 60),
    widths=st.integers(1, 6),
    jobs=20,
)
RIGID = workloads(
    organizations=st.integers(2, 4),
    owned=st.integers(0, 4),
    lengths=st.integers(20, 60),
    widths=st.integers(1, 6),
    jobs=20,
    wide="rigid",
)


def owners_taken_one_by_one(workload: Workload, schedule: Schedule) -> list[Counter[int]]:
    """For each start of a job whose processors it must have got, given all starts before it."""
    columns = (schedule.job, schedule.start, schedule.owner, schedule.copies)
    entries = list(zip(*(column.tolist() for column in columns), strict=True))
    taken = []
    running: list[tuple[int, int, int]] = []
    for (job, start), group in groupby(entries, key=lambda entry: entry[:2]):
        free = Counter(dict(enumerate(workload.owned.tolist())))
        for end, owner, copies in running:
            free[owner] -= copies if end > start else 0
        got: Counter[int] = Counter()
        parts = list(group)
        for _ in range(sum(copies for *_, copies in parts)):
            owner = max(free, key=lambda u: (free[u], -u))
            got[owner] += 1
            free[owner] -= 1
        taken.append(got)
        end = start + int(workload.processing_time[job])
        running += [(end, owner, copies) for *_, owner, copies in parts]
    return taken


@pytest.mark.parametrize("policy", ["ref", "directcontr", "rand", "fairshare"])
@settings(max_examples=30)
@given(workload=BUSY | RIGID)
def test_every_processor_is_one_of_whoever_has_the_most_free(
    policy: str, workload: Workload
) -> None:
    workload = replace(workload, placement="least-loaded")
    schedule = run_policy(workload, policy)
    columns = (schedule.job, schedule.start, schedule.owner, schedule.copies)
    entries = zip(*(column.tolist() for column in columns), strict=True)
    given_to = [
        Counter({owner: copies for *_, owner, copies in group})
        for _, group in groupby(entries, key=lambda entry: entry[:2])
    ]
    assert given_to == owners_taken_one_by_one(workload, schedule)


@settings(max_examples=50)
@given(workload=BUSY | RIGID)
def test_directcontr_decides_by_what_was_really_executed_for_others(workload: Workload) -> None:
    workload = replace(workload, placement="least-loaded")
    certify(workload, run_policy(workload, "directcontr"))


@settings(max_examples=30)
@given(workload=BUSY, seeds=st.tuples(st.integers(0, 99), st.integers(0, 99)))
def test_nothing_is_left_to_chance(workload: Workload, seeds: tuple[int, int]) -> None:
    workload = replace(workload, placement="least-loaded")
    first, second = (run_policy(workload, "directcontr", seed=seed) for seed in seeds)
    assert first.start.tolist() == second.start.tolist()
    assert first.owner.tolist() == second.owner.tolist()


def test_below_full_load_everybody_contributes_alike() -> None:
    jobs = [Job(0, second, 4) for second in range(0, 40, 2)]
    workload = replace(workload_of_jobs([2, 2], jobs, length=40), placement="least-loaded")
    schedule = run_policy(workload, "directcontr")
    assert schedule.owner.tolist() == [0, 1] * 10
