"""Every decision in a schedule is the policy's: each one is proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import POLICIES, run_policy
from shapleyprio.replay.workloads.choices import Backfill, Wide
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Window, Workload, workload_of
from tests.examples import examples
from tests.replay import literal
from tests.replay.certificate import KEYS, NotCertified, certify, processors_started, rows
from tests.replay.strategies import Job, workload_of_jobs, workloads

TRACES = Path(__file__).parents[3] / "shared" / "traces"
LPC, HPC2N = "LPC-EGEE-2004-1.2-cln.swf.gz", "HPC2N-2002-2.2-cln.swf.gz"
DECIDED = sorted(KEYS)
BACKFILLS: st.SearchStrategy[Backfill] = st.sampled_from(["none", "easy"])
ONE_COPY_EACH = {"currfairshare", "karma", "kai", "kai:20s", "roundrobin"}
OWNERS_DECIDE = {"directcontr", "orig-direct", "rel-direct", "simpl-direct"}
BUSY = workloads(
    organizations=st.integers(2, 4), owned=st.integers(0, 3), lengths=st.integers(20, 60), jobs=20
)
BUSY_AND_WIDE = workloads(
    organizations=st.integers(2, 4),
    owned=st.integers(0, 5),
    lengths=st.integers(20, 60),
    widths=st.integers(1, 9),
    jobs=20,
)
RIGID = workloads(
    organizations=st.integers(2, 4),
    owned=st.integers(0, 3),
    lengths=st.integers(20, 60),
    widths=st.integers(1, 6),
    jobs=20,
    wide="rigid",
    backfills=BACKFILLS,
)


def schedule_of(workload: Workload, policy: str, seed: int) -> Schedule:
    """The schedule that the oracle makes, as a kernel would hand it over."""
    schedule = literal.simulated(workload, policy, seed)
    entries = [
        (start.task.job, start.start, owner) for start in schedule.starts for owner in start.owners
    ]
    job, start, owner = zip(*entries, strict=True) if entries else ((), (), ())
    t = workload.window.length
    parts = literal.executed(schedule, t)
    return Schedule(
        policy=policy,
        seed=seed,
        job=np.array(job, dtype=np.int64),
        start=np.array(start, dtype=np.int64),
        owner=np.array(owner, dtype=np.int32),
        copies=np.ones(len(entries), dtype=np.int64),
        contribution=tuple(
            Fraction(sum(literal.psi(part, t) for part in parts if part.owner == u))
            for u in range(len(workload.organizations))
        ),
        seconds=0.0,
    )


# the certificate itself


@pytest.mark.parametrize("policy", DECIDED)
@settings(max_examples=examples(25))
@given(workload=BUSY | RIGID, seed=st.integers(0, 99))
def test_a_schedule_made_word_for_word_is_certified(
    policy: str, workload: Workload, seed: int
) -> None:
    schedule = schedule_of(workload, policy, seed)
    certified = certify(workload, schedule)
    assert certified.utility == list(measure(workload, schedule).utilities)


@pytest.mark.parametrize("policy", DECIDED)
@settings(max_examples=examples(25))
@given(workload=BUSY | RIGID, data=st.data())
def test_any_other_decision_is_refused(
    policy: str, workload: Workload, data: st.DataObject
) -> None:
    schedule = schedule_of(workload, policy, seed=1)
    assume(len(schedule.job) > 0)
    wrong = data.draw(st.sampled_from(list(spoilt(schedule, data))))
    with pytest.raises(NotCertified):
        certify(workload, wrong)


def spoilt(schedule: Schedule, data: st.DataObject) -> Iterator[Schedule]:
    """Schedules that differ from a right one in a single decision."""
    last = len(schedule.job) - 1
    one = data.draw(st.integers(0, last))
    other = data.draw(st.integers(0, last))
    yield replace(schedule, start=changed(schedule.start, one, int(schedule.start[one]) + 1))
    yield replace(schedule, start=changed(schedule.start, one, int(schedule.start[one]) - 1))
    yield replace(schedule, copies=changed(schedule.copies, one, 2))
    yield replace(schedule, copies=changed(schedule.copies, one, 0))
    assert schedule.contribution is not None
    too_much = (schedule.contribution[0] + 1, *schedule.contribution[1:])
    yield replace(schedule, contribution=too_much)
    kept = np.arange(last + 1) != one
    yield replace(
        schedule,
        job=schedule.job[kept],
        start=schedule.start[kept],
        owner=schedule.owner[kept],
        copies=schedule.copies[kept],
    )
    if schedule.job[one] != schedule.job[other]:
        swapped = changed(schedule.job, one, int(schedule.job[other]))
        yield replace(schedule, job=changed(swapped, other, int(schedule.job[one])))


def changed(column: np.ndarray, row: int, value: int) -> np.ndarray:
    column = column.copy()
    column[row] = value
    return column


def test_a_processor_runs_one_job_at_a_time() -> None:
    workload = workload_of_jobs([1, 1], [Job(0, 0, 5, 2)], 10)
    schedule = schedule_of(workload, "fcfs", seed=0)
    with pytest.raises(NotCertified, match="no free processor"):
        certify(workload, replace(schedule, owner=np.array([1, 1], dtype=np.int32)))


@pytest.mark.parametrize("policy", DECIDED)
def test_policies_are_distinguished(policy: str) -> None:
    """What one policy decides is certified for others only where they agree."""
    random = np.random.default_rng(1)
    jobs = [Job(int(u), int(r), int(p)) for u, r, p in random.integers(1, 9, (60, 3)) % (4, 9, 9)]
    jobs = [replace(job, processing_time=job.processing_time + 1) for job in jobs]
    workload = workload_of_jobs([2, 2, 1, 1], jobs, 60)
    schedule = schedule_of(workload, policy, seed=0)
    for other in DECIDED:
        if {policy, other} != {"directcontr", "orig-direct"} and policy != other:
            with pytest.raises(NotCertified):
                certify(workload, replace(schedule, policy=other))


# the kernel's schedules


@pytest.mark.parametrize("policy", DECIDED)
@settings(max_examples=examples(40))
@given(workload=BUSY | workloads(), seed=st.integers(0, 2**40))
def test_every_decision_is_the_policys(policy: str, workload: Workload, seed: int) -> None:
    certify(workload, run_policy(workload, policy, seed=seed))


@pytest.mark.parametrize("policy", DECIDED)
@settings(max_examples=examples(20))
@given(
    workload=workloads(
        lengths=st.integers(900_000, 10_000_000),
        processing_times=st.integers(1, 1_000_000),
        widths=st.integers(1, 30),
        owned=st.integers(0, 10),
        jobs=40,
    )
)
def test_every_decision_over_months_is_the_policys(policy: str, workload: Workload) -> None:
    certify(workload, run_policy(workload, policy))


@pytest.mark.parametrize("policy", DECIDED)
@settings(max_examples=examples(40))
@given(workload=RIGID, seed=st.integers(0, 2**40))
def test_every_decision_about_rigid_jobs_is_the_policys(
    policy: str, workload: Workload, seed: int
) -> None:
    certify(workload, run_policy(workload, policy, seed=seed))


@pytest.mark.parametrize("policy", sorted(set(DECIDED) - OWNERS_DECIDE))
@settings(max_examples=examples(20))
@given(workload=BUSY | RIGID)
def test_where_owners_do_not_matter_starts_are_those_of_the_papers(
    policy: str, workload: Workload
) -> None:
    expected = literal.simulated(workload, policy, seed=0).starts
    started = processors_started(run_policy(workload, policy, seed=1))
    assert started == literal.processors_started(expected)


@pytest.mark.parametrize("policy", [*DECIDED, "rand"])
@settings(max_examples=examples(10))
@given(workload=BUSY | RIGID, seed=st.integers(0, 2**40))
def test_a_seed_always_gives_the_same_schedule(policy: str, workload: Workload, seed: int) -> None:
    one, two = (run_policy(workload, policy, seed=seed) for _ in range(2))
    assert rows(one) == rows(two)
    assert one.contribution == two.contribution


@pytest.mark.parametrize("policy", sorted({*DECIDED, "ref", "rand"} - ONE_COPY_EACH))
@settings(max_examples=examples(20))
@given(workload=BUSY_AND_WIDE, seed=st.integers(0, 2**40))
def test_copies_that_start_together_on_ones_processors_are_one_entry(
    policy: str, workload: Workload, seed: int
) -> None:
    schedule = run_policy(workload, policy, seed=seed)
    started = list(zip(schedule.job, schedule.start, schedule.owner, strict=True))
    assert len(set(started)) == len(started)


def test_free_processors_are_drawn_by_their_number() -> None:
    """Every processor is as likely as any other, so owners come up by how many they have."""
    workload = workload_of_jobs([1, 3], [Job(0, 0, 2)], 5)
    drawn = [int(run_policy(workload, "fcfs", seed=seed).owner[0]) for seed in range(400)]
    assert 60 <= drawn.count(0) <= 140  # 100 expected; more than four standard deviations


def test_processors_that_are_left_are_drawn_without_those_in_use() -> None:
    workload = workload_of_jobs([2, 2], [Job(0, 0, 2, 4), Job(1, 1, 2, 4)], 9)
    for seed in range(50):
        schedule = run_policy(workload, "directcontr", seed=seed)
        for start in (0, 2):
            at_once = schedule.start == start
            lent = np.bincount(schedule.owner[at_once], schedule.copies[at_once])
            assert lent.tolist() == [2, 2]


def test_a_policy_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(PolicyError, match="directcontr"):
        run_policy(workload_of_jobs([1], [Job(0, 0, 1)], 2), "best")


def test_every_policy_has_a_description() -> None:
    named = {policy.partition(":")[0] for policy in DECIDED}
    assert set(POLICIES) == {*named, "ref", "rand", "shapley", "live", "recorded"}
    assert all(POLICIES.values())


def test_the_recorded_schedule_is_that_of_the_log() -> None:
    jobs = [Job(0, 0, 3, 2), Job(1, 1, 4), Job(0, 2, 5), Job(1, 3, 1)]
    workload = workload_of_jobs([1, 1], jobs, 10)
    started = np.array([0, UNKNOWN, 4, 12])
    schedule = run_policy(replace(workload, start=started), "recorded")
    begun = [(job, start) for job, start in enumerate(started.tolist()) if 0 <= start < 10]
    assert sorted(processors_started(schedule)) == begun


# real logs


@cache
def real_log(name: str) -> Log:
    file = TRACES / name
    if not file.exists():
        pytest.skip(f"{file.name} is not here; it is not part of the repository")
    return read_log(str(file))


def real_workload(
    name: str, jobs: int, organizations: int, *, wide: Wide = "expand", backfill: Backfill = "none"
) -> Workload:
    """A stretch of a log, its users dealt out, on so few processors that jobs have to wait."""
    log = real_log(name)
    releases = np.sort(log.release)
    begin, end = releases[20_000], releases[20_000 + jobs]
    return workload_of(
        log,
        deal(log, organizations, shares="zipf", processors=64, seed=5),
        window=Window(start=int(begin), length=int(2 * (end - begin)) + 1),
        wide=wide,
        backfill=backfill,
    )


@pytest.mark.parametrize("policy", DECIDED)
@pytest.mark.parametrize("name", [LPC, HPC2N])
def test_every_decision_about_a_real_log_is_the_policys(name: str, policy: str) -> None:
    workload = real_workload(name, 250, 5)
    certify(workload, run_policy(workload, policy))


@pytest.mark.parametrize("policy", DECIDED)
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_every_decision_about_real_rigid_jobs_is_the_policys(
    policy: str, backfill: Backfill
) -> None:
    workload = real_workload(HPC2N, 200, 5, wide="rigid", backfill=backfill)
    certify(workload, run_policy(workload, policy))


@pytest.mark.parametrize("wide", ["expand", "rigid"])
def test_ref_of_a_real_log_is_what_the_papers_define(wide: Wide) -> None:
    workload = real_workload(HPC2N, 60, 3, wide=wide)
    expected = literal.ref(workload)
    schedule = run_policy(workload, "ref")
    assert processors_started(schedule) == literal.processors_started(expected.starts)
    assert schedule.contribution == tuple(expected.contribution)
