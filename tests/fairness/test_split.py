"""How processors are split over nodes where only their sum is known."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from shapleyprio.fairness.runs import split

SIZES = st.dictionaries(st.text(min_size=1), st.integers(0, 500), min_size=1, max_size=8)


@given(st.integers(0, 10**6), SIZES)
def test_splitting_over_nodes_loses_nothing(total: int, sizes: dict[str, int]) -> None:
    parts = split(total, tuple(sizes), sizes)
    assert sum(parts.values()) == total
    assert parts.keys() == sizes.keys()


@given(st.integers(0, 4000), SIZES)
def test_no_node_gets_more_than_it_has_unless_the_run_holds_more_than_all_have(
    total: int, sizes: dict[str, int]
) -> None:
    assume(total <= sum(sizes.values()))
    parts = split(total, tuple(sizes), sizes)
    assert all(parts[node] <= size for node, size in sizes.items())


@given(st.integers(0, 10**6), SIZES)
def test_every_part_is_less_than_one_processor_from_its_share(
    total: int, sizes: dict[str, int]
) -> None:
    assume(sum(sizes.values()))
    for node, part in split(total, tuple(sizes), sizes).items():
        assert abs(part - Fraction(total * sizes[node], sum(sizes.values()))) < 1


@given(SIZES)
def test_a_run_that_fills_its_nodes_holds_what_they_have(sizes: dict[str, int]) -> None:
    assert split(sum(sizes.values()), tuple(sizes), sizes) == sizes


def test_what_is_left_over_goes_where_most_is_missing_and_then_to_the_first_nodes() -> None:
    assert split(8, ("a", "b", "c"), {"a": 4, "b": 4, "c": 4}) == {"a": 3, "b": 3, "c": 2}
    assert split(6, ("a", "b"), {"a": 4, "b": 12}) == {"a": 2, "b": 4}  # 1.5 and 4.5
    assert split(7, ("a", "b"), {"a": 4, "b": 12}) == {"a": 2, "b": 5}  # 1.75 and 5.25


def test_nodes_of_which_nothing_is_known_count_alike() -> None:
    assert split(8, ("a", "b", "c"), {}) == {"a": 3, "b": 3, "c": 2}
    assert split(4, ("a", "gone"), {"a": 2}) == {"a": 2, "gone": 2}
    assert split(3, ("a", "b"), {"a": 0, "b": 0}) == {"a": 2, "b": 1}
