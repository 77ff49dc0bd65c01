"""Shapley values are those of Eqs. 1 and 2 of SPAA 2013, exactly, and satisfy Shapley's axioms."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.shapley import members, potential, shapley

NUMBERS = st.integers(-(10**24), 10**24) | st.fractions(max_denominator=60)


@st.composite
def games(draw: st.DrawFn, least: int = 0, most: int = 5) -> list[int | Fraction]:
    k = draw(st.integers(least, most))
    return [0, *draw(st.lists(NUMBERS, min_size=2**k - 1, max_size=2**k - 1))]


def organizations(values: list[int | Fraction]) -> range:
    return range(len(values).bit_length() - 1)


def by_subsets(values: list[int | Fraction], u: int) -> Fraction:
    """Eq. 1."""
    k = len(organizations(values))
    without_u = [mask for mask in range(len(values)) if not mask >> u & 1]
    return sum(
        (
            Fraction(factorial(mask.bit_count()) * factorial(k - mask.bit_count() - 1))
            / factorial(k)
            * (values[mask | 1 << u] - values[mask])
            for mask in without_u
        ),
        Fraction(0),
    )


def by_orderings(values: list[int | Fraction], u: int) -> Fraction:
    """Eq. 2."""
    total = Fraction(0)
    for ordering in permutations(organizations(values)):
        before = sum(1 << other for other in ordering[: ordering.index(u)])
        total += values[before | 1 << u] - values[before]
    return total / factorial(len(organizations(values)))


@given(values=games())
def test_it_is_the_weighted_sum_over_all_subsets(values: list[int | Fraction]) -> None:
    assert shapley(values) == tuple(by_subsets(values, u) for u in organizations(values))


@given(values=games(most=4))
def test_it_is_the_mean_over_all_orderings(values: list[int | Fraction]) -> None:
    assert shapley(values) == tuple(by_orderings(values, u) for u in organizations(values))


@given(values=games(least=1, most=4))
def test_the_potential_gives_the_value_in_every_subcoalition(values: list[int | Fraction]) -> None:
    potentials = potential(values)
    for mask in range(1, len(values)):
        inside = list(members(mask))
        subgame = [
            values[sum(1 << inside[place] for place in members(smaller))]
            for smaller in range(2 ** len(inside))
        ]
        assert tuple(potentials[mask] - potentials[mask ^ 1 << u] for u in inside) == shapley(
            subgame
        )


# the axioms


@given(values=games())
def test_efficiency_the_whole_value_is_distributed(values: list[int | Fraction]) -> None:
    assert sum(shapley(values)) == values[-1]


@given(values=games(least=2))
def test_symmetry_those_who_add_the_same_get_the_same(values: list[int | Fraction]) -> None:
    def swapped(mask: int) -> int:
        return mask ^ 0b11 if mask & 0b11 in {0b01, 0b10} else mask

    alike = [value + values[swapped(mask)] for mask, value in enumerate(values)]
    first, second, *_ = shapley(alike)
    assert first == second


@given(values=games(least=3, most=3), others=games(least=3, most=3))
def test_additivity(values: list[int | Fraction], others: list[int | Fraction]) -> None:
    both = [one + other for one, other in zip(values, others, strict=True)]
    apart = zip(shapley(values), shapley(others), strict=True)
    assert shapley(both) == tuple(one + other for one, other in apart)


@given(values=games(most=4))
def test_dummy_who_adds_nothing_to_anybody_gets_nothing(values: list[int | Fraction]) -> None:
    *others, dummy = shapley(values + values)
    assert dummy == 0
    assert tuple(others) == shapley(values)


@pytest.mark.parametrize("values", [[], [0, 1, 2], [1, 2]])
def test_what_is_no_game_is_refused(values: list[int]) -> None:
    with pytest.raises(ValueError, match="coalition"):
        shapley(values)
