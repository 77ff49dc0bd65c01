"""Jobs that only get processors of their partition's bays, against the literal definition."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.rule import OrganizationState, Situation
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.workload import Workload, jobs_of
from tests.examples import examples
from tests.replay import literal
from tests.replay.certificate import KEYS, processors_started
from tests.replay.literal_bays import ConfinedSchedule
from tests.replay.strategies import Job, placed, workload_of_jobs, workloads
from tests.replay.test_policies import BACKFILLS

EXPANDED = workloads(organizations=st.integers(2, 3), lengths=st.integers(10, 40), jobs=16)
RIGID = workloads(
    organizations=st.integers(2, 3),
    lengths=st.integers(10, 40),
    widths=st.integers(1, 5),
    owned=st.integers(1, 3),
    jobs=16,
    wide="rigid",
    backfills=BACKFILLS,
)


@st.composite
def in_bays(draw: st.DrawFn, drawn: st.SearchStrategy[Workload], horizons: bool = True) -> Workload:
    """Workloads with their processors spread over overlapping bays, and jobs over partitions."""
    workload = draw(drawn)
    partitions, count = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    row = st.lists(st.booleans(), min_size=count, max_size=count).filter(any)
    reach = np.array(draw(st.lists(row, min_size=partitions, max_size=partitions)))
    owned = np.zeros((count, len(workload.owned)), dtype=np.int64)
    for u, processors in enumerate(workload.owned.tolist()):
        for _ in range(processors):
            owned[draw(st.integers(0, count - 1)), u] += 1
    n = len(workload.job)
    codes = draw(st.lists(st.integers(0, partitions - 1), min_size=n, max_size=n))
    bays = Bays(
        partitions=tuple("abc"[:partitions]),
        reach=reach,
        owned=owned,
        partition=np.array(codes, dtype=np.int32),
    )
    horizon = draw(st.none() | st.integers(1, 12)) if horizons else None
    return replace(workload, bays=bays, placement="least-loaded", horizon=horizon)


CONFINED = in_bays(EXPANDED) | in_bays(RIGID)


def assert_is_ref(workload: Workload) -> Schedule:
    schedule = run_policy(workload, "ref")
    grand = frozenset(range(len(workload.organizations)))
    schedules = literal.ref_schedules(workload, make=ConfinedSchedule)
    expected = literal.outcome(schedules[grand], partial(literal.eq_1, coalition=grand), schedules)
    assert processors_started(schedule) == literal.processors_started(expected.starts)
    assert schedule.contribution == tuple(expected.contribution)
    assert list(measure(workload, schedule).utilities) == expected.utility
    return schedule


def simulated(workload: Workload, policy: str) -> ConfinedSchedule:
    schedule = ConfinedSchedule(workload, frozenset(range(len(workload.organizations))))
    for t in literal.moments(workload, [schedule]):
        schedule.decide(t, partial(literal.RULES[policy], schedule, t))
    return schedule


def owners(schedule: Schedule) -> list[tuple[int, int, int, int]]:
    """Job, start, owner and how many processors, whatever bay they are in."""
    rows: dict[tuple[int, int, int], int] = {}
    columns = (schedule.job, schedule.start, schedule.owner, schedule.copies)
    for *entry, copies in zip(*(column.tolist() for column in columns), strict=True):
        rows[tuple(entry)] = rows.get(tuple(entry), 0) + copies
    return sorted((*entry, copies) for entry, copies in rows.items())


# the oracle itself


@settings(max_examples=examples(40))
@given(workload=EXPANDED | RIGID, policy=st.sampled_from(["fcfs", "fairshare", "roundrobin"]))
def test_the_oracle_with_a_single_bay_is_the_one_without(workload: Workload, policy: str) -> None:
    expected = literal.simulated(workload, policy, seed=0).starts
    found = simulated(replace(workload, bays=one_bay(workload)), policy).starts
    assert literal.processors_started(found) == literal.processors_started(expected)


def one_bay(workload: Workload) -> Bays:
    return Bays.single(workload.owned, len(workload.job))


# the kernel against the oracle


@settings(max_examples=examples(80))
@given(workload=CONFINED)
def test_ref_is_the_literal_one(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(40))
@given(workload=placed(CONFINED))
def test_jobs_start_alike_whosever_processors_they_really_got(workload: Workload) -> None:
    schedule = run_policy(workload, "ref")
    elsewhere = run_policy(replace(workload, placement="least-loaded"), "ref")
    assert processors_started(schedule) == processors_started(elsewhere)
    assert (schedule.copies > 0).all()


@pytest.mark.parametrize("policy", sorted(KEYS))
@settings(max_examples=examples(15))
@given(workload=CONFINED)
def test_starts_and_owners_are_the_literal_ones(policy: str, workload: Workload) -> None:
    schedule = run_policy(workload, policy)
    expected = simulated(workload, policy)
    rows: dict[tuple[int, int, int], int] = {}
    for start in expected.starts:
        for owner in start.owners:
            entry = start.task.job, start.start, owner
            rows[entry] = rows.get(entry, 0) + 1
    assert owners(schedule) == sorted((*entry, copies) for entry, copies in rows.items())
    assert list(measure(workload, schedule).utilities) == [
        expected.utility(u, workload.window.length) for u in sorted(expected.members)
    ]


@settings(max_examples=examples(25))
@given(workload=CONFINED, count=st.integers(1, 3), seed=st.integers(0, 2**40))
def test_rand_is_the_literal_one(workload: Workload, count: int, seed: int) -> None:
    schedule = run_policy(workload, "rand", seed=seed, orderings=count)
    assert schedule.coalitions is not None
    everybody = range(len(workload.organizations))
    simplified = {
        literal.Coalition(u for u in everybody if members >> u & 1): value
        for members, value in zip(
            schedule.coalitions.members.tolist(), schedule.coalitions.values.tolist(), strict=True
        )
    }
    for coalition, value in simplified.items():
        alone = ConfinedSchedule(workload, coalition)
        for t in literal.moments(workload, [alone]):
            alone.decide(t, literal.first_come(alone))
        assert alone.value(workload.window.length) == value


# what must be the same


@settings(max_examples=examples(40))
@given(workload=EXPANDED | RIGID, policy=st.sampled_from([*sorted(KEYS), "ref", "rand"]))
def test_one_bay_for_all_is_no_bay_at_all(workload: Workload, policy: str) -> None:
    within, without = (
        run_policy(replace(workload, bays=bays), policy, seed=3)
        for bays in (one_bay(workload), None)
    )
    assert processors_started(within) == processors_started(without)
    if policy != "ref":  # there without contention anybody comes first
        assert owners(within) == owners(without)
    assert within.contribution == without.contribution


OF_ALL_PARTITIONS = {"roundrobin", "karma", "kai", "kai:20s"}


@pytest.mark.parametrize("policy", sorted({*KEYS, "ref"} - OF_ALL_PARTITIONS))
@settings(max_examples=examples(8))
@given(one=EXPANDED | RIGID, two=EXPANDED)
def test_bays_that_do_not_overlap_are_replays_of_their_own(
    policy: str, one: Workload, two: Workload
) -> None:
    """Organizations with all they have in one partition owe those in another one nothing.

    KAI and Karma are not asked: fair shares and what is lent are of the processors of all
    partitions.

    A rigid job may wait beside a free processor until something happens anywhere. Where the order
    changes with the time alone, what happens in the other partition counts.
    """
    if policy not in {"currfairshare", "fcfs"}:
        one = replace(one, wide="expand", backfill="none")
    if one.wide == "rigid":
        two = replace(two, wide="rigid", backfill=one.backfill)
    length = min(one.window.length, two.window.length)
    parts = [replace(part, window=replace(part.window, length=length)) for part in (one, two)]
    parts = [
        jobs_of(part, np.flatnonzero((part.release < length) & is_possible(part))) for part in parts
    ]
    alone = [replace(part, placement="least-loaded") for part in parts if len(part.job)]
    if len(alone) < 2:
        return
    together = side_by_side(*alone)
    found = owners(run_policy(together, policy))
    expected = owners(run_policy(alone[0], policy))
    shift, jobs = len(alone[0].owned), len(alone[0].job)
    for job, start, owner, copies in owners(run_policy(alone[1], policy)):
        expected.append((job + jobs, start, owner + shift, copies))
    if policy == "ref":  # there without contention anybody comes first
        assert {entry[:2] for entry in found} == {entry[:2] for entry in expected}
    else:
        assert found == expected


def is_possible(workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if workload.wide == "expand":
        return np.ones(len(workload.job), dtype=np.bool_)
    possible: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        workload.processors <= workload.system_processors
    )
    return possible


def side_by_side(one: Workload, two: Workload) -> Workload:
    """Two consortia on partitions of their own, as one workload."""
    k = len(one.owned)
    columns: dict[str, Any] = {
        name: np.concatenate((getattr(one, name), getattr(two, name)))
        for name in ("job", "release", "processing_time", "processors", "limit", "start")
    }
    owned = np.zeros((2, k + len(two.owned)), dtype=np.int64)
    owned[0, :k], owned[1, k:] = one.owned, two.owned
    return replace(
        one,
        **columns,
        organizations=(*one.organizations, *(f"other {name}" for name in two.organizations)),
        owned=owned.sum(axis=0),
        organization=np.concatenate((one.organization, two.organization + k)).astype(np.int32),
        position=np.concatenate((one.position, two.position + 1_000)),
        bays=Bays(
            partitions=("one", "two"),
            reach=np.eye(2, dtype=np.bool_),
            owned=owned,
            partition=np.repeat([0, 1], [len(one.job), len(two.job)]).astype(np.int32),
        ),
    )


# what bays change


def test_an_organizations_job_in_a_free_partition_passes_one_that_waits_for_its_own() -> None:
    jobs = [Job(0, 0, 10), Job(0, 1, 5), Job(0, 2, 5)]
    bays = Bays(
        partitions=("large", "small"),
        reach=np.eye(2, dtype=np.bool_),
        owned=np.array([[1], [1]]),
        partition=np.array([0, 0, 1], dtype=np.int32),
    )
    workload = replace(workload_of_jobs([2], jobs, 30), bays=bays)
    for policy in ("ref", "rand", "fcfs", "shapley", "live"):
        assert starts(run_policy(workload, policy)) == [0, 10, 2]
    assert starts(run_policy(replace(workload, bays=None), "fcfs")) == [0, 1, 6]


def starts(schedule: Schedule) -> list[int]:
    found: list[int] = schedule.start[np.argsort(schedule.job)].tolist()
    return found


def test_a_job_leaves_processors_that_others_need_more() -> None:
    """The first one may run anywhere, and takes no processor of the partition that has only one."""
    bays = Bays(
        partitions=("everywhere", "special"),
        reach=np.array([[True, True], [False, True]]),
        owned=np.array([[1, 0], [0, 1]]),
        partition=np.array([0, 1], dtype=np.int32),
    )
    jobs = [Job(0, 0, 10), Job(1, 1, 5)]
    workload = replace(workload_of_jobs([1, 1], jobs, 30), bays=bays)
    assert starts(run_policy(workload, "ref")) == [0, 1]


def backwards(state: Situation) -> list[OrganizationState]:
    return list(reversed(state.waiting))


def test_a_policy_of_ones_own_keeps_to_bays() -> None:
    bays = Bays(
        partitions=("a", "b"),
        reach=np.array([[True, False], [True, True]]),
        owned=np.array([[1, 0], [0, 1]]),
        partition=np.array([0, 0, 1, 1], dtype=np.int32),
    )
    jobs = [Job(0, 0, 4), Job(0, 0, 4), Job(1, 0, 4), Job(1, 0, 4)]
    workload = replace(workload_of_jobs([1, 1], jobs, 30), bays=bays)
    assert starts(run_policy(workload, f"{__name__}:backwards")) == [4, 8, 0, 0]


def test_estimates_keep_to_bays_as_ref_does() -> None:
    jobs = [Job(0, 0, 10), Job(1, 0, 10)]
    bays = Bays(
        partitions=("a", "b"),
        reach=np.array([[True, False], [False, True]]),
        owned=np.array([[2, 0], [0, 1]]),
        partition=np.array([0, 0], dtype=np.int32),
    )
    workload = replace(workload_of_jobs([2, 1], jobs, 20), bays=bays)
    fair = run_policy(workload, "ref").contribution
    assert run_policy(workload, "shapley").contribution == fair
    assert run_policy(replace(workload, bays=None), "ref").contribution != fair
