"""Whose free processors a job gets if that is not left to chance."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay.certificate import certify
from tests.replay.strategies import Job, placed, workload_of_jobs, workloads

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
    really_got = parts_by_job(workload)
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
        wanted = really_got.get(job, []).copy()
        for _ in range(sum(copies for *_, copies in parts)):
            while wanted and not free[wanted[0]]:
                wanted.pop(0)
            owner = wanted.pop(0) if wanted else max(free, key=lambda u: (free[u], -u))
            got[owner] += 1
            free[owner] -= 1
        taken.append(got)
        end = start + int(workload.processing_time[job])
        running += [(end, owner, copies) for *_, owner, copies in parts]
    return taken


def given_to(schedule: Schedule) -> list[Counter[int]]:
    """For each start of a job whose processors it got."""
    columns = (schedule.job, schedule.start, schedule.owner, schedule.copies)
    entries = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Counter({owner: copies for *_, owner, copies in group})
        for _, group in groupby(entries, key=lambda entry: entry[:2])
    ]


def parts_by_job(workload: Workload) -> dict[int, list[int]]:
    """Job -> the owners of the processors that it really got, one for each of them."""
    got = workload.placed
    if got is None or workload.placement != "recorded":
        return {}
    return {
        job: [
            owner
            for part in range(got.first[job], got.first[job + 1])
            for owner in [int(got.owners.codes[part])] * int(got.processors[part])
            if owner != UNKNOWN
        ]
        for job in range(len(workload.job))
    }


@pytest.mark.parametrize("policy", ["ref", "directcontr", "rand", "fairshare", "fcfs"])
@settings(max_examples=examples(30))
@given(workload=placed(BUSY | RIGID))
def test_a_job_gets_what_it_really_got_as_far_as_that_is_free(
    policy: str, workload: Workload
) -> None:
    schedule = run_policy(workload, policy)
    assert given_to(schedule) == owners_taken_one_by_one(workload, schedule)


@settings(max_examples=examples(50))
@given(workload=placed(BUSY | RIGID))
def test_directcontr_counts_the_owners_that_were_chosen(workload: Workload) -> None:
    certify(workload, run_policy(workload, "directcontr"))


@pytest.mark.parametrize("policy", ["ref", "directcontr", "rand", "fairshare", "fcfs"])
@settings(max_examples=examples(30))
@given(workload=BUSY | RIGID)
def test_every_processor_is_one_of_whoever_has_the_most_free(
    policy: str, workload: Workload
) -> None:
    workload = replace(workload, placement="least-loaded")
    schedule = run_policy(workload, policy)
    assert given_to(schedule) == owners_taken_one_by_one(workload, schedule)


@settings(max_examples=examples(50))
@given(workload=BUSY | RIGID)
def test_directcontr_decides_by_what_was_really_executed_for_others(workload: Workload) -> None:
    workload = replace(workload, placement="least-loaded")
    certify(workload, run_policy(workload, "directcontr"))


@settings(max_examples=examples(30))
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
