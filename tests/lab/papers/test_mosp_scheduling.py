"""Scheduling for several organizations, held against the definitions of Euro-Par 2007."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.lab.papers.mosp.algorithms import (
    ALGORITHMS,
    local,
    molba_2,
    molba_2_backfill,
    molba_3,
    molba_3_long,
    verdict,
)
from shapleyprio.lab.papers.mosp.cells import COUNTEREXAMPLES, FIGURES
from shapleyprio.lab.papers.mosp.listing import Timeline
from shapleyprio.lab.papers.mosp.model import BatchJob, BatchSchedule, Instance
from tests.examples import examples
from tests.lab.papers.mosp_literal import active_schedules, is_feasible, optimum, taken


@st.composite
def instances(
    draw: st.DrawFn, most_jobs: int = 14, most_clusters: int = 4, longest: int = 6
) -> Instance:
    organizations = draw(st.integers(1, most_clusters))
    processors = draw(st.integers(1, 6))
    # the first organization often has most of the work, or nothing would have to move
    owner = st.one_of(st.just(0), st.integers(0, organizations - 1))
    job = st.builds(BatchJob, owner, st.integers(1, processors), st.integers(1, longest))
    jobs = draw(st.lists(job, min_size=1, max_size=most_jobs))
    return Instance(organizations, processors, tuple(jobs))


def literal_hf(instance: Instance, organization: int) -> list[int]:
    """When an organization's jobs start at home: section 3, second by second."""
    queue = sorted(
        instance.jobs_of(organization),
        key=lambda index: (
            -instance.jobs[index].processors,
            -instance.jobs[index].processing_time,
            index,
        ),
    )
    start: dict[int, int] = {}
    t = 0
    while queue:
        running = sum(
            instance.jobs[one].processors
            for one, since in start.items()
            if since <= t < since + instance.jobs[one].processing_time
        )
        fitting = [
            one for one in queue if instance.jobs[one].processors <= instance.processors - running
        ]
        if fitting:
            start[fitting[0]] = t
            queue.remove(fitting[0])
        else:
            t += 1
    return [start[job] for job in instance.jobs_of(organization)]


# one cluster


@given(instances())
def test_local_schedules_are_those_of_the_definition(instance: Instance) -> None:
    schedule = local(instance)
    for organization in range(instance.organizations):
        jobs = instance.jobs_of(organization)
        assert [schedule.start[job] for job in jobs] == literal_hf(instance, organization)
        assert {schedule.cluster[job] for job in jobs} <= {organization}


@given(instances())
def test_low_utilization_comes_only_after_high_utilization(instance: Instance) -> None:
    schedule = local(instance)
    for cluster, makespan in enumerate(schedule.makespans):
        high = [
            2 * taken(schedule, cluster, second) > instance.processors for second in range(makespan)
        ]
        assert high == sorted(high, reverse=True)


@settings(max_examples=examples(50))
@given(instances(most_jobs=5, most_clusters=1, longest=3))
def test_list_scheduling_is_within_2_minus_1_over_m_of_the_optimum(instance: Instance) -> None:
    bound = 2 - Fraction(1, instance.processors)
    assert local(instance).makespan <= bound * optimum(instance)


# several clusters


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=examples(40))
@given(instance=instances())
def test_no_processor_ever_runs_two_jobs(algorithm: str, instance: Instance) -> None:
    assert is_feasible(ALGORITHMS[algorithm](local(instance)))


@given(instance=instances())
def test_jobs_that_are_not_sent_away_start_when_they_would_alone(instance: Instance) -> None:
    alone = local(instance)
    cut, kept = 2 * instance.average_load, 2 * instance.average_load + instance.longest
    for schedule in (molba_2(alone), molba_2_backfill(alone)):
        for index, job in enumerate(instance.jobs):
            sent = alone.makespans[job.organization] > kept and alone.start[index] > cut
            if not sent:
                assert schedule.cluster[index] == job.organization
                assert schedule.start[index] == alone.start[index]


@given(instance=instances())
def test_a_low_job_that_was_sent_away_starts_by_2_lb(instance: Instance) -> None:
    alone = local(instance)
    schedule = molba_2(alone)
    for index in sent_away(schedule, alone):
        if not instance.is_high(instance.jobs[index]):
            assert schedule.start[index] <= 2 * instance.average_load


@pytest.mark.parametrize("algorithm", ["molba-2", "molba-3", "molba-3-long"])
@given(instance=instances())
def test_a_high_job_that_was_sent_away_starts_by_2_lb_and_the_longest_job(
    algorithm: str, instance: Instance
) -> None:
    alone = local(instance)
    schedule = ALGORITHMS[algorithm](alone)
    for index in sent_away(schedule, alone):
        assert schedule.start[index] <= 2 * instance.average_load + instance.longest


def sent_away(schedule: BatchSchedule, alone: BatchSchedule) -> list[int]:
    return [
        index
        for index in range(len(schedule.start))
        if (schedule.cluster[index], schedule.start[index])
        != (alone.cluster[index], alone.start[index])
    ]


@given(instance=instances())
def test_molba_keeps_3_and_nobody_loses_where_a_low_job_ends_last(instance: Instance) -> None:
    alone = local(instance)
    schedule = molba_2(alone)
    if schedule.ends_low:
        assert schedule.makespan <= 3 * instance.optimum_bound
        assert_nobody_loses(schedule, alone)


@given(instance=instances())
def test_molba_cut_at_3_lb_keeps_4(instance: Instance) -> None:
    assert molba_3(local(instance)).makespan <= 4 * instance.optimum_bound


@given(instance=instances())
def test_molba_cut_at_3_times_the_bound_keeps_4_and_nobody_ever_loses(instance: Instance) -> None:
    alone = local(instance)
    schedule = molba_3_long(alone)
    assert schedule.makespan <= 4 * instance.optimum_bound
    assert_nobody_loses(schedule, alone)


def assert_nobody_loses(schedule: BatchSchedule, alone: BatchSchedule) -> None:
    assert all(
        ours <= by_itself
        for ours, by_itself in zip(schedule.makespans, alone.makespans, strict=True)
    )


@settings(max_examples=examples(30))
@given(instances(most_jobs=4, most_clusters=2, longest=3))
def test_no_schedule_beats_the_optimum_nor_the_optimum_its_bound(instance: Instance) -> None:
    best = optimum(instance)
    assert best >= instance.optimum_bound
    for make in ALGORITHMS.values():
        assert make(local(instance)).makespan >= best


def test_an_organization_with_nothing_of_its_own_runs_what_the_other_cannot() -> None:
    # LB = 4, so of eight jobs of one second each that cannot run side by side, and of 8 s of
    # local makespan, which is below 2·LB + p_max, nothing moves; with a third cluster LB is 8/3
    two, three = (Instance(n, 2, (BatchJob(0, 2, 1),) * 8) for n in (2, 3))
    assert molba_2(local(two)).makespan == 8
    schedule = molba_2(local(three))
    # those that start at 6 s and 7 s are moved to 0 s
    assert sorted(schedule.start) == [0, 0, 0, 1, 2, 3, 4, 5]
    assert schedule.makespan == 6


# what the paper shows, and what its letter does not keep


@pytest.mark.parametrize("name", FIGURES)
def test_the_optima_given_for_the_figures_are_right(name: str) -> None:
    figure = FIGURES[name]
    assert optimum(figure.instance) == figure.optimum
    assert optimum(figure.instance, local(figure.instance).makespans) == figure.cooperative


def test_figure_1_alone_takes_n_times_as_long() -> None:
    figure = FIGURES["figure 1"]
    assert local(figure.instance).makespan == figure.instance.organizations * figure.optimum


def test_figure_2_lets_both_organizations_gain() -> None:
    instance = FIGURES["figure 2"].instance
    alone = local(instance).makespans
    assert any(
        all(ours < by_itself for ours, by_itself in zip(schedule.makespans, alone, strict=True))
        for schedule in active_schedules(instance)
    )


def test_figure_3_costs_half_as_much_again() -> None:
    figure = FIGURES["figure 3"]
    assert Fraction(figure.cooperative, figure.optimum) == Fraction(3, 2)


def test_the_cut_at_3_lb_can_make_an_organization_worse_off() -> None:
    alone = local(COUNTEREXAMPLES["cut at 3·LB"])
    assert (alone.makespans[0], molba_3(alone).makespans[0]) == (5, 6)
    assert verdict("molba-3", molba_3(alone), alone).breaks_alone
    assert_nobody_loses(molba_3_long(alone), alone)


def test_backfilling_can_make_an_organization_worse_off_although_a_low_job_ends_last() -> None:
    alone = local(COUNTEREXAMPLES["backfilling"])
    backfilled = molba_2_backfill(alone)
    assert backfilled.ends_low
    assert (alone.makespans[0], backfilled.makespans[0]) == (15, 16)
    assert verdict("molba-2-backfill", backfilled, alone).breaks_alone
    assert_nobody_loses(molba_2(alone), alone)


# the profile of a cluster


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(0, 6)), min_size=1, max_size=20
    )
)
def test_the_earliest_place_is_the_first_at_which_no_second_is_too_full(
    jobs: list[tuple[int, int, int]],
) -> None:
    timeline, usage = Timeline(4), [0] * 200
    for processors, processing_time, not_before in jobs:

        def fits(t: int, needed: int = processors, seconds: int = processing_time) -> bool:
            return all(used + needed <= 4 for used in usage[t : t + seconds])

        earliest = next(filter(fits, range(200)))
        assert timeline.earliest(processors, processing_time) == earliest
        assert timeline.earliest(processors, processing_time, earliest) is None
        assert timeline.earliest(processors, processing_time, earliest + 1) == earliest
        start = next(filter(fits, range(not_before, 200)))
        until = timeline.free_until(start, processors)
        assert until is None or until >= start + processing_time
        timeline.take(start, processing_time, processors)
        for second in range(start, start + processing_time):
            usage[second] += processors
