"""Who would have had more alone: values of coalitions, and the reasons to leave."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.alone import with_singles, workload_alone
from shapleyprio.replay.audit.auditing import audit
from shapleyprio.replay.audit.stability import stability
from shapleyprio.replay.engine.schedule import CoalitionValues, Schedule
from shapleyprio.replay.measures.measures import Measures, measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.choices import Wide
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay import literal
from tests.replay.audit.recorded import recorded
from tests.replay.strategies import Job, workload_of_jobs, workloads

ONE_SECOND = workloads(processing_times=st.just(1), organizations=st.integers(2, 4))


def small(wide: Wide) -> st.SearchStrategy[Workload]:
    """What the papers' figures can be computed for, in every coalition, in no time."""
    return workloads(organizations=st.integers(1, 3), jobs=9, lengths=st.integers(1, 20), wide=wide)


def values_of(schedule: Schedule) -> dict[int, int]:
    assert schedule.coalitions is not None
    members, values = schedule.coalitions.members.tolist(), schedule.coalitions.values.tolist()
    return dict(zip(members, values, strict=True))


def members_of(bits: int) -> list[int]:
    return [u for u in range(bits.bit_length()) if bits >> u & 1]


def value_alone(workload: Workload, bits: int) -> int:
    """v(C): what C's members have if they are the whole consortium, by the papers' figures."""
    alone = workload_alone(workload, members_of(bits))
    return 0 if alone is None else sum(literal.ref(alone[1]).utility)


# what coalitions have alone


@pytest.mark.parametrize("wide", ["expand", "rigid"])
@given(data=st.data())
@settings(max_examples=examples(60))
def test_the_value_of_a_coalition_is_what_ref_makes_of_it_alone(
    wide: Wide, data: st.DataObject
) -> None:
    workload = data.draw(small(wide))
    values = values_of(run_policy(workload, "ref"))
    everybody = 2 ** len(workload.organizations)
    assert values == {bits: value_alone(workload, bits) for bits in range(1, everybody)}


@given(workloads())
def test_all_together_have_what_ref_gives_them(workload: Workload) -> None:
    schedule = run_policy(workload, "ref")
    everybody = 2 ** len(workload.organizations) - 1
    assert values_of(schedule)[everybody] == sum(measure(workload, schedule).utilities)


@given(ONE_SECOND)
def test_with_jobs_of_a_second_two_coalitions_have_no_less_together(workload: Workload) -> None:
    values = {0: 0, **values_of(run_policy(workload, "ref"))}
    for one, other in combinations(values, 2):
        if one & other == 0:
            assert values[one | other] >= values[one] + values[other]


@given(ONE_SECOND, st.sampled_from(["ref", "directcontr", "fairshare", "roundrobin"]))
def test_with_jobs_of_a_second_a_coalition_and_the_rest_never_both_gain(
    workload: Workload, policy: str
) -> None:
    fair = run_policy(workload, "ref")
    utilities = measure(workload, run_policy(workload, policy)).utilities
    everybody = 2 ** len(utilities) - 1
    values = values_of(fair)
    gains = {bits: values[bits] - sum(utilities[u] for u in members_of(bits)) for bits in values}
    for bits in range(1, everybody):
        assert gains[bits] <= 0 or gains[everybody ^ bits] <= 0


def test_the_papers_example_leaves_a_coalition_worse_off_under_ref_itself() -> None:
    """Proposition 5.5 of SPAA 2013: a and b release two jobs of a second, c none."""
    jobs = [Job(0, 0, 1), Job(0, 0, 1), Job(1, 0, 1), Job(1, 0, 1)]
    owners = [(job, i // 2, i % 2) for i, job in enumerate(jobs)]
    found = audit(recorded([1, 1, 1], owners, length=2))
    values = values_of(found.reference.result.schedule)
    a, b, c = 1, 2, 4
    assert (values[a | c], values[b | c], values[a | b | c], values[c]) == (4, 4, 7, 0)
    assert found.reference.result.measures.utilities == (4, 3, 0)
    strongest = found.reference.stability.strongest
    assert strongest is not None
    assert (strongest.members, strongest.gain) == ((1, 2), 1)


@given(workloads(organizations=st.integers(2, 4)), st.integers(1, 3))
def test_sampled_coalitions_include_every_single_organization(
    workload: Workload, orderings: int
) -> None:
    sampled = run_policy(workload, "rand", orderings=orderings).coalitions
    assert sampled is not None
    completed = with_singles(workload, sampled)
    assert len(set(completed.members.tolist())) == len(completed.members)
    found = dict(zip(completed.members.tolist(), completed.values.tolist(), strict=True))
    for u in range(len(workload.organizations)):
        assert found[1 << u] == value_alone(workload, 1 << u)
    assert 2 ** len(workload.organizations) - 1 in found


@given(ONE_SECOND)
def test_with_jobs_of_a_second_sampled_values_are_exact(workload: Workload) -> None:
    exact = values_of(run_policy(workload, "ref"))
    for bits, value in values_of(run_policy(workload, "rand", orderings=3)).items():
        assert value == exact[bits]


@given(workloads())
def test_policies_that_keep_no_coalitions_have_no_values(workload: Workload) -> None:
    assert run_policy(workload, "fcfs").coalitions is None


# reasons to leave


def test_who_waits_for_its_own_processor_would_have_left() -> None:
    own, guest = Job(0, 0, 10), Job(1, 0, 50)
    workload = recorded([1, 0], [(own, 50, 0), (guest, 0, 0)], length=100)
    found = audit(workload).recorded.stability
    assert found.strongest is not None
    assert found.strongest.members == (0,)
    alone = 10 * 100 - 45  # parts executed in seconds 0 to 9
    got = 10 * 50 - 45
    assert (found.strongest.alone, found.strongest.got) == (alone, got)
    assert found.strongest.gain == 500
    assert found.strongest.relative_gain == Fraction(500, 455)
    assert found.strongest.earlier == 50
    assert found.coalitions == 2
    assert found.gaining == 1


def test_who_owns_nothing_is_never_better_off_alone() -> None:
    workload = recorded([1, 0], [(Job(0, 0, 10), 50, 0), (Job(1, 0, 50), 0, 0)], length=100)
    guest = audit(workload).recorded.stability.organizations[1]
    assert guest.alone == 0
    assert guest.gain < 0


def test_two_that_carry_a_third_have_more_reason_to_leave_together() -> None:
    lent = [(Job(2, 0, 60), 0, 0), (Job(2, 0, 60), 0, 1)]
    waited = [(Job(0, 0, 20), 60, 0), (Job(1, 0, 20), 60, 1)]
    found = audit(recorded([1, 1, 0], [*lent, *waited], length=100)).recorded.stability
    assert found.strongest is not None
    assert found.strongest.members == (0, 1)
    assert found.strongest.gain == 2 * 20 * 60
    assert found.strongest.earlier == 60
    assert found.gaining == 3  # each of the two as well, but nobody with the third


def test_nobody_would_have_left_what_was_fair() -> None:
    workload = recorded([1, 1], [(Job(0, 0, 10), 0, 0), (Job(1, 0, 10), 0, 1)], length=50)
    found = audit(workload).recorded.stability
    assert found.gaining == 0
    assert found.strongest is None
    assert found.strongest_relative is None


def test_delays_that_hit_everybody_are_no_reason_to_leave_together() -> None:
    workload = recorded([1, 1], [(Job(0, 0, 10), 10, 0), (Job(1, 0, 10), 10, 1)], length=50)
    found = audit(workload).recorded.stability
    assert found.strongest is not None
    assert found.strongest.members == (0,)
    assert found.strongest.earlier == found.strongest.earlier_if_fair == 10


def measures_with(utilities: tuple[int, ...]) -> Measures:
    """Measures in which only utilities and parts matter."""
    return Measures(
        utilities=utilities,
        parts=(10,) * len(utilities),
        mean_waits=(None,) * len(utilities),
        mean_wait=Fraction(0),
        wait_95th_percentile=0,
        mean_bounded_slowdown=1.0,
        utilization=Fraction(0),
    )


@pytest.mark.parametrize(
    ("values", "strongest"),
    [
        ({1: 5, 2: 0, 4: 0, 3: 5, 5: 5, 6: 0, 7: 0}, (0,)),
        ({1: 0, 2: 0, 4: 5, 3: 5, 5: 5, 6: 5, 7: 0}, (2,)),
        ({1: 0, 2: 0, 4: 0, 3: 5, 5: 5, 6: 5, 7: 0}, (0, 1)),
        ({1: 4, 2: 4, 4: 4, 3: 5, 5: 5, 6: 6, 7: 99}, (1, 2)),
    ],
)
def test_of_equal_reasons_the_smaller_coalition_counts_then_the_first(
    values: dict[int, int], strongest: tuple[int, ...]
) -> None:
    measures = measures_with((0, 0, 0))
    members, worth = zip(*values.items(), strict=True)
    found = stability(CoalitionValues(np.array(members), np.array(worth)), measures, measures)
    assert found.strongest is not None
    assert found.strongest.members == strongest


def test_a_relative_gain_over_nothing_is_the_largest() -> None:
    measures = measures_with((0, 100, 100))
    coalitions = CoalitionValues(np.array([1, 2, 4, 3, 5, 6, 7]), np.array([1, 200, 0, 0, 0, 0, 0]))
    found = stability(coalitions, measures, measures)
    assert found.strongest is not None
    assert found.strongest_relative is not None
    assert found.strongest.members == (1,)
    assert found.strongest.relative_gain == 1
    assert found.strongest_relative.members == (0,)
    assert found.strongest_relative.relative_gain is None


def test_a_part_of_the_workload_keeps_its_jobs_in_order() -> None:
    jobs = [Job(0, 0, 5), Job(2, 3, 7), Job(1, 1, 6), Job(2, 2, 8)]
    alone = workload_alone(workload_of_jobs([1, 2, 3], jobs, 20), [1, 2])
    assert alone is not None
    taken, own = alone
    assert taken.tolist() == [1, 2, 3]
    assert own.organizations == ("org1", "org2")
    assert own.owned.tolist() == [2, 3]
    assert own.organization.tolist() == [0, 1, 1]
    assert own.job.tolist() == [102, 103, 101]
