"""Ref decides exactly as Fig. 1 and 3 of the papers do, written out with rationals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import factorial, gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.common.errors import Remedy
from shapleyprio.lab.bench.replay.replay_workloads import made_up
from shapleyprio.replay.engine import lattice, limits
from shapleyprio.replay.engine.keys import by_second_of
from shapleyprio.replay.engine.lattice import odd_divisor
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.choices import Backfill
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.fairness.examples import worth_by_parts
from tests.replay import literal
from tests.replay.certificate import certify, processors_started, rows
from tests.replay.strategies import Job, jobs_of, workload_of_jobs, workloads

BACKFILLS: st.SearchStrategy[Backfill] = st.sampled_from(["none", "easy"])
QUEUES = workloads(
    organizations=st.integers(2, 4),
    lengths=st.integers(1_000, 5_000),
    processing_times=st.integers(1, 300),
    spread=300,
    jobs=30,
)


LONGEST_IN_ROWS = 2**24


def assert_is_ref(workload: Workload) -> None:
    """Compares with the literal Ref, with rough keys for all seconds, for a few, and with none.

    Rows of all seconds, even of those in which nothing happens, take too long in long windows.
    """
    expected = literal.ref(workload)
    schedules = [run_policy(workload, "ref")]
    with cells_of_a_second():
        schedules.append(run_policy(workload, "ref"))
    if workload.window.length < LONGEST_IN_ROWS:
        with rows_alone():
            schedules.append(run_policy(workload, "ref"))
    for schedule in schedules:
        assert processors_started(schedule) == literal.processors_started(expected.starts)
        assert schedule.contribution == tuple(expected.contribution)
        assert list(measure(workload, schedule).utilities) == expected.utility


@contextmanager
def rows_alone() -> Iterator[None]:
    """Keys are in rows only, and made as soon as more than one coalition's block is noted."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lattice, "by_second_of", lambda _, block: by_second_of(0, block))
        patched.setattr(lattice, "LISTS", 1)
        yield


@contextmanager
def cells_of_a_second() -> Iterator[None]:
    """There are rough keys for all seconds of usual blocks, so that few are compared exactly."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "LONGEST_CELL", max(limits.LONGEST_BLOCK >> 10, 1))
        yield


@contextmanager
def blocks_of(seconds: int) -> Iterator[None]:
    """Windows are scheduled in blocks of so many seconds at most."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "LONGEST_BLOCK", seconds)
        yield


# the oracle itself


@given(start=st.integers(0, 40), processing_time=st.integers(1, 40), later=st.integers(0, 60))
def test_eq_3_is_the_sum_over_unit_size_parts(start: int, processing_time: int, later: int) -> None:
    t = start + later
    expected = worth_by_parts(start, start + processing_time, t)
    assert literal.eq_3(start, processing_time, t) == expected


@given(
    values=st.lists(st.integers(-1000, 1000), min_size=15, max_size=15),
    k=st.integers(1, 4),
)
def test_eq_1_eq_2_and_the_potential_are_the_same_shapley_value(values: list[int], k: int) -> None:
    coalitions = literal.subsets(frozenset(range(k)))
    v = dict(zip(coalitions, [0, *values], strict=False))
    potential = {frozenset[int](): Fraction(0)}
    for coalition in coalitions[1:]:
        total = v[coalition] + sum(potential[coalition - {u}] for u in coalition)
        potential[coalition] = Fraction(total, len(coalition))
        for u in coalition:
            phi = literal.eq_1(u, coalition, v)
            assert phi == literal.eq_2(u, literal.all_orderings(coalition), v)
            assert phi == potential[coalition] - potential[coalition - {u}]


@settings(max_examples=examples(25))
@given(workload=workloads())
def test_nothing_is_decided_between_releases_and_ends(workload: Workload) -> None:
    every_second = literal.ref(workload, range(workload.window.length))
    assert literal.ref(workload) == every_second


@given(
    balances=st.lists(st.integers(-300, 300), min_size=1, max_size=4),
    k=st.integers(1, 12),
)
def test_fig_3_takes_an_organization_whose_start_fig_1_finds_nearest(
    balances: list[int], k: int
) -> None:
    """Fig. 1 measures after a gain. At the moment of a start there is none, and to Fig. 1 all
    starts are equally near (or, with the sum over all organizations as the figure prints it,
    that is nearest whose balance is nearest to 0: the text says otherwise). A second later the
    start has gained 1, and then what Fig. 3 takes is among the nearest.
    """
    balance = {u: Fraction(numerator, k) for u, numerator in enumerate(balances)}
    taken = literal.highest(list(balance), balance.__getitem__)
    assert len({literal.distance(u, balance, 0) for u in balance}) == 1
    printed = {u: literal.distance(u, balance, 0, others_only=False) for u in balance}
    assert min(balance, key=printed.__getitem__) == min(balance, key=lambda u: abs(balance[u]))
    later = {u: literal.distance(u, balance, 1) for u in balance}
    assert later[taken] == min(later.values())


# the kernel against the oracle


@settings(max_examples=examples(250))
@given(workload=workloads())
def test_ref_is_what_the_papers_define(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(12))
@given(workload=workloads(organizations=st.just(5)))
def test_ref_of_five_organizations_is_what_the_papers_define(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(workload=workloads(processing_times=st.just(1), owned=st.just(1), widths=st.just(1)))
def test_ref_resolves_ties_as_the_papers_define(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(
    workload=workloads(
        lengths=st.integers(900_000, 1_000_000), processing_times=st.integers(1, 400_000)
    )
)
def test_ref_of_long_windows_and_rare_jobs(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(workload=QUEUES)
def test_ref_of_queues_that_last(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(workload=workloads(organizations=st.integers(2, 4)), seconds=st.integers(1, 12))
def test_ref_does_not_depend_on_where_its_blocks_end(workload: Workload, seconds: int) -> None:
    with blocks_of(seconds):
        assert_is_ref(workload)


def test_every_key_is_a_multiple_of_the_divisor() -> None:
    for members in range(2, limits.MOST_REF_ORGANIZATIONS + 1):
        others = members - 1
        weights = [factorial(m - 1) * factorial(others - m) for m in range(1, members)]
        divisor = gcd(*weights, factorial(others))
        assert divisor // (divisor & -divisor) == odd_divisor(members)


@settings(max_examples=examples(3))
@given(workload=workloads(organizations=st.just(7)))
def test_ref_of_seven_organizations_is_what_the_papers_define(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(
    begins=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    workload=workloads(organizations=st.integers(2, 3), owned=st.integers(1, 2), jobs=10),
)
def test_ref_of_bursts_on_both_sides_of_powers_of_two(
    begins: list[int], workload: Workload
) -> None:
    jobs = [
        replace(job, release=4**begin - 5 + job.release)
        for begin in begins
        for job in jobs_of(workload)
        if 4**begin - 5 + job.release >= 0
    ]
    assert_is_ref(workload_of_jobs(workload.owned.tolist(), jobs or [Job(0, 0, 1)], 70_000))


def test_ref_of_seven_organizations_with_large_values() -> None:
    random = np.random.default_rng(7)
    jobs = [
        Job(int(u), int(release), int(processing_time), int(processors))
        for u, release, processing_time, processors in zip(
            random.integers(0, 7, 20),
            random.integers(0, 10**6, 20),
            random.integers(1, 10**7, 20),
            random.integers(1, 3, 20),
            strict=True,
        )
    ]
    assert_is_ref(workload_of_jobs([1, 0, 2, 1, 0, 1, 3], jobs, 10**8))


@pytest.mark.parametrize("seconds", [50, 1024])
@pytest.mark.parametrize("organizations", [6, 11])
def test_several_cores_decide_as_one_does(organizations: int, seconds: int) -> None:
    random = np.random.default_rng(organizations)
    columns = (
        random.integers(0, organizations, 80),
        random.integers(0, 3_000, 80),
        random.integers(1, 900, 80),
        random.integers(1, 4, 80),
    )
    jobs = [Job(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    workload = workload_of_jobs(random.integers(0, 3, organizations).tolist(), jobs, 5_000)
    with blocks_of(seconds):
        one, *others = (run_policy(workload, "ref", seed=3, cores=cores) for cores in (1, 2, 3))
        with rows_alone():
            others += (run_policy(workload, "ref", seed=3, cores=cores) for cores in (1, 3))
    for other in others:
        assert rows(one) == rows(other)
        assert one.contribution == other.contribution


@settings(max_examples=examples(40))
@given(workload=workloads(), seed=st.integers(0, 2**32))
def test_seeds_draw_owners_and_decide_nothing(workload: Workload, seed: int) -> None:
    first, again, other = (run_policy(workload, "ref", seed=s) for s in (seed, seed, seed + 1))
    assert rows(first) == rows(again)
    assert processors_started(first) == processors_started(other)
    assert first.contribution == other.contribution
    certify(workload, other)


@settings(max_examples=examples(150))
@given(workload=workloads(wide="rigid", backfills=BACKFILLS))
def test_coalitions_run_the_same_rule_for_rigid_jobs(workload: Workload) -> None:
    assert_is_ref(workload)


# Shapley's axioms hold for the contributions


@settings(max_examples=examples(40))
@given(workload=workloads())
def test_contributions_sum_to_the_value_of_the_consortium(workload: Workload) -> None:
    schedule = run_policy(workload, "ref")
    assert schedule.contribution is not None
    assert sum(schedule.contribution) == sum(measure(workload, schedule).utilities)


@settings(max_examples=examples(40))
@given(workload=workloads(organizations=st.integers(2, 4)))
def test_an_organization_without_jobs_and_processors_contributes_nothing(
    workload: Workload,
) -> None:
    last = len(workload.organizations) - 1
    owned = [*workload.owned.tolist()[:-1], 0]
    jobs = [job for job in jobs_of(workload) if job.organization != last]
    if sum(owned) and jobs:
        length = workload.window.length
        schedule = run_policy(workload_of_jobs(owned, jobs, length), "ref")
        without = run_policy(workload_of_jobs(owned[:-1], jobs, length), "ref")
        assert without.contribution is not None
        assert schedule.contribution == (*without.contribution, 0)


@settings(max_examples=examples(40))
@given(workload=workloads(organizations=st.integers(1, 3)), twin=st.integers(0, 2))
def test_organizations_that_are_alike_contribute_alike(workload: Workload, twin: int) -> None:
    twin = min(twin, len(workload.organizations) - 1)
    owned = workload.owned.tolist()
    jobs = []
    for job in jobs_of(workload):
        jobs.append(replace(job, organization=job.organization + (job.organization > twin)))
        if job.organization == twin:
            jobs.append(replace(job, organization=twin + 1))
    doubled = [*owned[: twin + 1], *owned[twin:]]
    schedule = run_policy(workload_of_jobs(doubled, jobs, workload.window.length), "ref")
    assert schedule.contribution is not None
    assert schedule.contribution[twin] == schedule.contribution[twin + 1]


# the range


@settings(max_examples=examples(20))
@given(data=st.data())
def test_ref_is_exact_where_its_numbers_come_to_another_limb(data: st.DataObject) -> None:
    """Keys of 62, 63, 64 and 100 bits, a few seconds and processors more or less."""
    k = data.draw(st.integers(1, 3))
    near = st.integers(-3, 3)
    if (bits := data.draw(st.sampled_from([62, 63, 64, 100]))) == 100:
        length, m = 2**38 - 4 + data.draw(near), 2**24 - 4 + data.draw(near)
    else:
        length = 2 ** data.draw(st.integers(22, 30)) + data.draw(near)
        m = max(2 ** (bits + data.draw(st.integers(-1, 2))) // length**2, k) + data.draw(near) + 3
    lent = sorted(data.draw(st.lists(st.integers(0, m), min_size=k - 1, max_size=k - 1)))
    owned = [after - before for before, after in pairwise((0, *lent, m))]
    eighths = st.integers(0, 7)
    jobs = [
        Job(
            organization=data.draw(st.integers(0, k - 1)),
            release=length * data.draw(eighths) // 8 + data.draw(st.integers(0, 3)),
            processing_time=length * data.draw(eighths) // 8 + data.draw(st.integers(1, 3)),
            processors=m * data.draw(eighths) // 8 + 1,
        )
        for _ in range(data.draw(st.integers(1, 10)))
    ]
    backfill = data.draw(BACKFILLS)
    with blocks_of(2**17 if bits < 100 else 2**20):
        workload = workload_of_jobs(owned, jobs, length, wide="rigid", backfill=backfill)
        assert_is_ref(workload)
        assert_is_ref(replace(workload, horizon=length * data.draw(eighths) // 8 + 1))


def with_two_limbs(workload: Workload) -> Schedule:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "check_range", lambda _: True)
        assert limits.ref_block(workload).wide
        return run_policy(workload, "ref")


@settings(max_examples=examples(25))
@given(workload=workloads(organizations=st.integers(7, 9), lengths=st.integers(1, 60), jobs=40))
def test_divided_keys_decide_as_those_of_two_limbs_do(workload: Workload) -> None:
    schedule, expected = run_policy(workload, "ref"), with_two_limbs(workload)
    assert rows(schedule) == rows(expected)
    assert schedule.contribution == expected.contribution


@settings(max_examples=examples(20))
@given(
    workload=workloads(
        organizations=st.integers(5, 8),
        lengths=st.integers(2**21, 3 * 2**20),
        jobs=40,
        processing_times=st.integers(1, 2**20),
        owned=st.integers(0, 2**14),
        widths=st.integers(1, 2**15),
        wide="rigid",
    )
)
def test_keys_that_exceed_their_limb_decide_as_those_of_two_limbs_do(workload: Workload) -> None:
    with blocks_of(2**13):
        schedule, expected = run_policy(workload, "ref"), with_two_limbs(workload)
    assert rows(schedule) == rows(expected)
    assert schedule.contribution == expected.contribution


def test_larger_differences_than_a_limb_has_are_compared_exactly() -> None:
    """Keys of the organizations 4 and 5 differ by about 2^63 when 4's job has to wait."""
    jobs = [
        Job(4, 2295249, 616162, 9426),
        Job(3, 384332, 625253, 26147),
        Job(3, 1329790, 603614, 7934),
        Job(2, 771201, 198592, 26918),
        Job(1, 138296, 642540, 32156),
        Job(1, 162074, 883384, 2630),
        Job(5, 2267440, 716701, 12822),
        Job(5, 2200222, 289024, 17099),
        Job(1, 902619, 938517, 22266),
        Job(4, 1759188, 607855, 9019),
        Job(3, 2066346, 692318, 21011),
        Job(4, 483811, 510074, 19238),
        Job(5, 1406226, 886129, 6239),
        Job(1, 67985, 767023, 8882),
    ]
    owned = [1326, 8484, 15922, 13268, 9938, 15617]
    workload = workload_of_jobs(owned, jobs, 2979154, wide="rigid")
    with blocks_of(2**13):
        assert not limits.ref_block(workload).wide
        assert_is_ref(workload)


EXACT = ["ref", "rand", "shapley", "directcontr", "rel-direct", "utfairshare"]


@pytest.mark.parametrize("policy", EXACT)
def test_no_values_are_too_large(policy: str) -> None:
    exponents = [10, 20, *range(26, 31)]
    with blocks_of(2**17):
        for exponent in [*exponents, *([] if policy == "shapley" else [34])]:
            workload = enlarged(2**exponent)
            assert_exact(workload, run_policy(workload, policy))


def test_a_year_of_200000_processors_is_replayed_for_18_organizations() -> None:
    jobs = [Job(0, 0, 10**9, 200_000)]
    workload = workload_of_jobs([200_000, *[0] * 17], jobs, 365 * 86_400)
    assert limits.ref_block(workload).wide
    assert limits.ref_block(workload).seconds >= limits.FEWEST_SECONDS


def test_64_bits_are_enough_for_20_organizations_on_the_window_of_the_benchmark() -> None:
    workload = made_up(20)
    assert not limits.ref_block(workload).wide
    assert limits.ref_block(workload).seconds > 64
    with pytest.raises(PolicyError, match="k = 20 is more than 18"):
        limits.ref_block(replace(workload, horizon=3_600))


def test_a_million_processors_for_days_are_exact() -> None:
    m, seconds = 10**6, 10**6
    jobs = [Job(0, 0, seconds, m), Job(1, 0, seconds, m // 2), Job(1, seconds // 2, 1, m)]
    schedule = run_policy(workload_of_jobs([m, m // 2], jobs, seconds), "ref")
    alone, other = m * seconds * (seconds + 1) // 2, m // 2 * seconds * (seconds + 1) // 2
    assert schedule.contribution == (Fraction(alone), Fraction(other))


def enlarged(times: int) -> Workload:
    """The same mixture of jobs on scales of any size."""
    jobs = [
        Job(0, 0, 3 * times, 2),
        Job(1, 1, 2 * times, 3),
        Job(0, times - 1, times + 1, 2),
        Job(1, times, 2 * times - 3),
        Job(2, 2, 5 * times),
        Job(2, times + 5, 7),
    ]
    return workload_of_jobs([2, 0, 1], jobs, 8 * times)


def assert_exact(workload: Workload, schedule: Schedule) -> None:
    if schedule.policy == "shapley":
        assert schedule.contribution == tuple(literal.ref(workload).contribution)
    elif schedule.policy == "ref":
        expected = literal.ref(workload)
        assert processors_started(schedule) == literal.processors_started(expected.starts)
        assert schedule.contribution == tuple(expected.contribution)
    elif schedule.policy == "rand":
        grand = literal.CoalitionSchedule(workload, frozenset(range(3)))
        for t in literal.moments(workload, [grand]):
            grand.decide(t, literal.first_come(grand))
        assert schedule.contribution is not None
        assert sum(schedule.contribution) == grand.value(workload.window.length)
    certify(workload, schedule)


def test_a_million_processors_for_decades_are_exact() -> None:
    m, seconds = 10**6, 10**9
    job = Job(0, 0, seconds, m)
    workload = workload_of_jobs([m, 1], [job, Job(1, 0, 5, m)], seconds)
    schedule = run_policy(workload, "ref")
    assert schedule.contribution is not None
    assert sum(schedule.contribution) == sum(measure(workload, schedule).utilities)


def test_ten_millennia_are_refused() -> None:
    workload = workload_of_jobs([1], [Job(0, 0, 5)], 2**38)
    with pytest.raises(PolicyError, match="274877906943 s at most") as caught:
        run_policy(workload, "ref")
    assert caught.value.remedy is Remedy.WINDOW_AT_MOST


def test_starts_come_in_the_order_of_time() -> None:
    jobs = [Job(u, release, 3) for release in range(20) for u in (1, 0)]
    schedule = run_policy(workload_of_jobs([1, 1], jobs, 40), "ref")
    assert all(a <= b for a, b in pairwise(schedule.start.tolist()))
