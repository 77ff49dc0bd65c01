"""Scores become points that keep their order and stay clear of Slurm's limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.rule import by_score
from shapleyprio.fairness.scale import LARGEST_PRIORITY, MINIMUM_STEP, scale

LARGEST_NICE = 2**31 - 3
SCORES = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2),
    st.integers(-5, 5) | st.integers(-(10**24), 10**24),
    min_size=1,
    max_size=8,
)
ORGANIZATIONS = st.integers(1, 60)
OTHERS = st.integers(0, 2**33)
INFLUENCES = st.none() | st.integers(1, 1_000_000_000)


@given(scores=SCORES, others=OTHERS, influence=INFLUENCES)
def test_the_higher_score_has_the_more_points_and_ties_go_to_the_one_listed_first(
    scores: dict[str, int], others: int, influence: int | None
) -> None:
    points = scale(len(scores), others, influence).points_of(by_score(scores))
    names = list(scores)
    for number, name in enumerate(names):
        for after in names[number + 1 :]:
            assert (points[name] > points[after]) == (scores[name] >= scores[after])
            assert points[name] != points[after]


@given(first=SCORES, others=OTHERS, influence=INFLUENCES, data=st.data())
def test_an_unchanged_order_leaves_every_priority_as_it_was(
    first: dict[str, int], others: int, influence: int | None, data: st.DataObject
) -> None:
    order = by_score(first)
    values = data.draw(
        st.lists(st.integers(), min_size=len(order), max_size=len(order), unique=True)
    )
    by_name = dict(zip(order, sorted(values, reverse=True), strict=True))
    second = {name: by_name[name] for name in first}
    on = scale(len(first), others, influence)
    assert on.points_of(by_score(second)) == on.points_of(by_score(first))


@given(organizations=ORGANIZATIONS, others=OTHERS, influence=INFLUENCES)
def test_no_priority_reaches_the_floor_or_the_ceiling(
    organizations: int, others: int, influence: int | None
) -> None:
    on = scale(organizations, others, influence)
    assert on.points(0) > 0
    assert on.points(organizations - 1) <= LARGEST_NICE


@given(organizations=ORGANIZATIONS, others=OTHERS, influence=INFLUENCES)
def test_the_order_holds_exactly_if_a_step_exceeds_all_that_others_can_add(
    organizations: int, others: int, influence: int | None
) -> None:
    on = scale(organizations, others, influence)
    if on.step > others:
        for level in range(organizations - 1):
            assert on.points(level) + others < on.points(level + 1)


@given(organizations=ORGANIZATIONS, others=st.integers(0, 100_000_000))
def test_strict_order_holds_wherever_there_is_room_for_it(organizations: int, others: int) -> None:
    there_is_room = (others + 1) * organizations <= LARGEST_PRIORITY
    assert (scale(organizations, others, None).step > others) == there_is_room


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
    distance = on.points(organizations - 1) - on.points(0)
    assert influence - (organizations - 1) < distance <= influence


def test_an_influence_of_less_than_a_point_each_still_separates_organizations() -> None:
    on = scale(10, 0, 3)
    assert [on.points(level) for level in range(3)] == [1, 2, 3]


def test_an_organization_alone_has_a_priority_too() -> None:
    assert scale(1, 0, None).points_of(["physics"]) == {"physics": MINIMUM_STEP}
    assert scale(1, 0, 500).points_of(["physics"]) == {"physics": 500}


def test_no_organizations_are_no_error() -> None:
    assert scale(0, 0, None).points_of([]) == {}
    assert scale(0, 0, 10).points_of([]) == {}
