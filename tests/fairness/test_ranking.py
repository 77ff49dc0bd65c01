"""Balances become priorities that keep their order and stay clear of Slurm's limits."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.ledger import Course
from shapleyprio.fairness.ranking import (
    LARGEST_PRIORITY,
    MINIMUM_STEP,
    leading,
    priorities,
    ranks,
    scale,
    turn,
)

LARGEST_NICE = 2**31 - 3
BALANCES = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2),
    st.integers(-5, 5) | st.integers(-(10**24), 10**24),
    min_size=1,
    max_size=8,
)
ORGANIZATIONS = st.integers(1, 60)
OTHERS = st.integers(0, 2**33)
INFLUENCES = st.none() | st.integers(1, 1_000_000_000)


@given(balances=BALANCES, others=OTHERS, influence=INFLUENCES)
def test_the_higher_balance_has_the_higher_priority_and_ties_go_to_the_one_listed_first(
    balances: dict[str, int], others: int, influence: int | None
) -> None:
    points = priorities(balances, scale(len(balances), others, influence))
    names = list(balances)
    assert list(points) == names
    for place, name in enumerate(names):
        for after in names[place + 1 :]:
            assert (points[name] > points[after]) == (balances[name] >= balances[after])
            assert points[name] != points[after]


@given(
    courses=st.dictionaries(
        st.sampled_from("abcd"),
        st.builds(Course, st.integers(-99, 99), st.integers(-9, 9), st.integers(-2, 2)),
    ),
    within=st.integers(0, 60),
)
def test_the_order_holds_up_to_its_turn_and_no_longer(
    courses: dict[str, Course], within: int
) -> None:
    def order(seconds: int) -> list[str]:
        return leading({name: course.after(seconds) for name, course in courses.items()})

    found = turn(courses, within)
    assert all(order(seconds) == order(0) for seconds in range(within if found is None else found))
    assert found is None or (found < within and order(found) != order(0))


def test_who_is_overtaken_and_overtakes_again_turns_twice() -> None:
    courses = {"a": Course(balance=0, slope=5, bend=-1), "b": Course(balance=3, slope=0, bend=0)}
    # a's balances are 0, 4, 7, 9, 10, 10, 9, 7, 4, 0: ahead of b's 3 from second 1 to 8
    assert turn(courses, within=30) == 1
    later = {"a": Course(balance=4, slope=4, bend=-1), "b": Course(balance=3, slope=0, bend=0)}
    assert turn(later, within=30) == 8


@given(balances=BALANCES)
def test_ranks_count_up_from_the_last_to_be_served(balances: dict[str, int]) -> None:
    order = leading(balances)
    assert sorted(order) == sorted(balances)
    assert ranks(balances) == {name: len(order) - place for place, name in enumerate(order, 1)}
    for one, other in pairwise(order):
        assert balances[one] >= balances[other]


@given(first=BALANCES, others=OTHERS, influence=INFLUENCES, data=st.data())
def test_an_unchanged_order_leaves_every_priority_as_it_was(
    first: dict[str, int], others: int, influence: int | None, data: st.DataObject
) -> None:
    order = leading(first)
    values = data.draw(
        st.lists(st.integers(), min_size=len(order), max_size=len(order), unique=True)
    )
    by_name = dict(zip(order, sorted(values, reverse=True), strict=True))
    second = {name: by_name[name] for name in first}
    on = scale(len(first), others, influence)
    assert priorities(second, on) == priorities(first, on)


@given(organizations=ORGANIZATIONS, others=OTHERS, influence=INFLUENCES)
def test_no_priority_reaches_the_floor_or_the_ceiling(
    organizations: int, others: int, influence: int | None
) -> None:
    on = scale(organizations, others, influence)
    assert on.priority(0) > 0
    assert on.priority(organizations - 1) <= LARGEST_NICE


@given(organizations=ORGANIZATIONS, others=OTHERS, influence=INFLUENCES)
def test_the_order_holds_exactly_if_a_step_exceeds_all_that_others_can_add(
    organizations: int, others: int, influence: int | None
) -> None:
    on = scale(organizations, others, influence)
    assert on.holds == (on.step > others)
    if on.holds:
        for rank in range(organizations - 1):
            assert on.priority(rank) + others < on.priority(rank + 1)


@given(organizations=ORGANIZATIONS, others=st.integers(0, 100_000_000))
def test_strict_order_holds_wherever_there_is_room_for_it(organizations: int, others: int) -> None:
    there_is_room = (others + 1) * organizations <= LARGEST_PRIORITY
    assert scale(organizations, others, None).holds == there_is_room


@given(organizations=ORGANIZATIONS, others=st.integers(0, 30_000_000))
def test_strict_order_leaves_room_for_users_to_order_their_own_jobs(
    organizations: int, others: int
) -> None:
    assert scale(organizations, others, None).step >= MINIMUM_STEP


@given(organizations=ORGANIZATIONS, others=st.integers(0, 10**7))
def test_small_changes_of_the_other_factors_change_no_priority(
    organizations: int, others: int
) -> None:
    one, other = scale(organizations, others, None), scale(organizations, others + 1, None)
    if one != other:
        assert other.step > 1.05 * one.step


@given(organizations=st.integers(2, 60), influence=st.integers(100, 1_000_000_000))
def test_influence_is_the_distance_from_the_first_to_the_last(
    organizations: int, influence: int
) -> None:
    on = scale(organizations, 0, influence)
    distance = on.priority(organizations - 1) - on.priority(0)
    assert influence - (organizations - 1) < distance <= influence


def test_an_influence_of_less_than_a_point_each_still_tells_organizations_apart() -> None:
    on = scale(10, 0, 3)
    assert [on.priority(rank) for rank in range(3)] == [1, 2, 3]


def test_an_organization_alone_has_a_priority_too() -> None:
    assert priorities({"physics": -7}, scale(1, 0, None)) == {"physics": MINIMUM_STEP}
    assert priorities({"physics": -7}, scale(1, 0, 500)) == {"physics": 500}


def test_no_organizations_are_no_error() -> None:
    assert priorities({}, scale(0, 0, None)) == {}
    assert priorities({}, scale(0, 0, 10)) == {}
