"""Owen values are those of Owen 1977, exactly, and satisfy his axioms."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, permutations, product
from math import factorial, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.shapley import owen, owen_denominator, owen_numerators, parts_of, shapley

NUMBERS = st.integers(-(10**24), 10**24)


@st.composite
def nested(draw: st.DrawFn, most: int = 6, unions: int = 3) -> tuple[list[int], list[int]]:
    """Values of all coalitions, and the number of everybody's union."""
    k = draw(st.integers(1, most))
    seed, signed = draw(st.integers(1, 2**30)), draw(st.booleans())
    values = [(seed * mask * (mask + 7)) % 1009 - 500 * signed for mask in range(2**k)]
    values[0] = 0
    changed = draw(st.dictionaries(st.integers(1, 2**k - 1), NUMBERS, max_size=8))
    for mask, value in changed.items():
        values[mask] = value
    return values, draw(st.lists(st.integers(0, unions - 1), min_size=k, max_size=k))


def members_of(unions: list[int]) -> list[list[int]]:
    return [[u for u, of in enumerate(unions) if of == union] for union in sorted(set(unions))]


def by_orderings(values: list[int], unions: list[int]) -> tuple[Fraction, ...]:
    """What everybody adds on average, over all orderings in which unions stay together."""
    total, count = [Fraction(0)] * len(unions), 0
    for blocks in permutations(members_of(unions)):
        for inside in product(*map(permutations, blocks)):
            before, count = 0, count + 1
            for u in chain.from_iterable(inside):
                total[u] += values[before | 1 << u] - values[before]
                before |= 1 << u
    return tuple(one / count for one in total)


@settings(deadline=None)
@given(game=nested())
def test_it_is_the_mean_over_the_orderings_that_interrupt_no_union(
    game: tuple[list[int], list[int]],
) -> None:
    assert owen(*game) == by_orderings(*game)


@pytest.mark.parametrize(
    "unions", [[0, 0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 0, 1, 0, 0, 0], [0, 1, 2, 2, 2, 2, 1, 0]]
)
def test_eight_departments_of_three_faculties_share_by_it(unions: list[int]) -> None:
    values = [(mask * mask * 37 + mask.bit_count() ** 3 * 11) % 4099 for mask in range(2**8)]
    values[0] = 0
    assert owen(values, unions) == by_orderings(values, unions)
    sizes = [len(block) for block in members_of(unions)]
    orderings = factorial(len(sizes)) * prod(map(factorial, sizes))
    assert orderings % owen_denominator(unions) == 0


@given(game=nested())
def test_without_unions_or_with_one_it_is_the_shapley_value_to_the_unit(
    game: tuple[list[int], list[int]],
) -> None:
    values, unions = game
    k = len(unions)
    for flat in ([0] * k, list(range(k))):
        assert owen_denominator(flat) == factorial(k)
        assert owen(values, flat) == shapley(values)


@given(game=nested())
def test_it_needs_whole_unions_and_a_part_of_one_more_alone(
    game: tuple[list[int], list[int]],
) -> None:
    values, unions = game
    masks = [sum(1 << u for u in block) for block in members_of(unions)]
    needed = {
        mask for mask in range(len(values)) if sum(mask & of not in {0, of} for of in masks) <= 1
    }
    assert owen_numerators({mask: values[mask] for mask in needed}, unions) == owen_numerators(
        values, unions
    )


@given(game=nested())
def test_unions_get_what_they_would_as_one_each(game: tuple[list[int], list[int]]) -> None:
    """Owen's quotient property: in the game of the unions each gets its Shapley value."""
    values, unions = game
    blocks = members_of(unions)
    between = [
        values[sum(1 << u for place, block in enumerate(blocks) if q >> place & 1 for u in block)]
        for q in range(2 ** len(blocks))
    ]
    shares = owen(values, unions)
    assert [sum(shares[u] for u in block) for block in blocks] == list(shapley(between))


@given(game=nested())
def test_who_adds_nothing_gets_nothing_and_alters_nothing(
    game: tuple[list[int], list[int]],
) -> None:
    values, unions = game
    *others, dummy = owen(values + values, [*unions, 0])
    assert dummy == 0
    if 0 in unions:
        assert tuple(others) == owen(values, unions)


@given(mask=st.integers(0, 200))
def test_parts_of_a_coalition_are_all_its_subsets(mask: int) -> None:
    assert list(parts_of(mask)) == [part for part in range(mask + 1) if part & mask == part]
