"""A ranking keeps its order until it says so, and DirectContr's is that of the balances."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.rule import Contributions, Ranking, RankingRule, Situation, by_score
from shapleyprio.fairness.rules import RULES, ByShapley, DirectContr
from shapleyprio.fairness.tenure import Allocation
from shapleyprio.fairness.worth import NOTHING, Trajectory
from tests.fairness.examples import (
    ALLOCATIONS,
    HORIZONS,
    LAST_EVENT,
    NAMES,
    events_between,
    expected_standings,
    ledger_of,
    situation_of,
)

TRAJECTORY = st.builds(
    Trajectory,
    st.integers(-99, 99),
    st.integers(-9, 9),
    st.integers(-2, 2),
    st.integers(1, 4),
)
TRAJECTORIES = st.dictionaries(st.sampled_from("abcd"), TRAJECTORY)


def ranking_of(trajectories: dict[str, Trajectory]) -> Ranking:
    return Ranking(
        rule="test",
        trajectories=trajectories,
        contributions=dict.fromkeys(trajectories, 0),
        reasons=dict.fromkeys(trajectories, "so it is"),
    )


@given(trajectories=TRAJECTORIES, within=st.integers(0, 60), data=st.data())
def test_the_order_holds_for_as_long_as_the_ranking_says_and_no_longer(
    trajectories: dict[str, Trajectory], within: int, data: st.DataObject
) -> None:
    among = data.draw(st.sets(st.sampled_from("abcd")))

    def order(seconds: int) -> list[str]:
        return by_score(
            {name: path.after(seconds) for name, path in trajectories.items() if name in among}
        )

    found = ranking_of(trajectories).seconds_until_reorder(among, within)
    assert all(order(seconds) == order(0) for seconds in range(within if found is None else found))
    assert found is None or (found < within and order(found) != order(0))


def test_who_is_overtaken_and_overtakes_again_changes_the_order_twice() -> None:
    b = Trajectory(value=3, rate=0, acceleration=0)
    # a's scores are 0, 4, 7, 9, 10, 10, 9, 7, 4, 0: ahead of b's 3 from second 1 to 8
    ranking = ranking_of({"a": Trajectory(value=0, rate=5, acceleration=-1), "b": b})
    assert ranking.seconds_until_reorder("ab", within=30) == 1
    later = ranking_of({"a": Trajectory(value=4, rate=4, acceleration=-1), "b": b})
    assert later.seconds_until_reorder("ab", within=30) == 8


@given(trajectories=TRAJECTORIES)
def test_the_highest_score_comes_first_and_ties_go_to_the_one_listed_first(
    trajectories: dict[str, Trajectory],
) -> None:
    ranking = ranking_of(trajectories)
    names = list(trajectories)
    assert sorted(ranking.order) == sorted(names)
    for one, other in pairwise(ranking.order):
        difference = ranking.scores[one] - ranking.scores[other]
        assert difference > 0 or (difference == 0 and names.index(one) < names.index(other))


@given(
    allocations=st.lists(ALLOCATIONS, max_size=8),
    later=st.integers(0, 60),
    horizon=HORIZONS,
    seconds=st.integers(0, 40),
)
def test_directcontr_knows_later_balances_if_nothing_starts_or_ends(
    allocations: list[Allocation], later: int, horizon: int | None, seconds: int
) -> None:
    t = LAST_EVENT + later
    if horizon is not None:  # nor may anything have done so a horizon ago
        passing = events_between(allocations, t - horizon, t + seconds - horizon)
        allocations = [allocation for allocation in allocations if allocation not in passing]
    ranking = DirectContr().rank(situation_of(ledger_of(allocations, t, horizon), t))
    at_last = expected_standings(allocations, t + seconds, horizon)
    assert {name: path.after(seconds) for name, path in ranking.trajectories.items()} == {
        name: standing.balance for name, standing in at_last.items()
    }


def test_the_shapley_rule_ranks_by_estimated_contributions_minus_exact_utilities() -> None:
    # alpha's job ran on beta's processor in [0, 10), and 5 s passed since the estimate
    ledger = ledger_of([Allocation("alpha", "beta", 1, 0, 10)], 20, None)
    estimated = Contributions(
        t=15,
        trajectories={
            "alpha": Trajectory(value=140, rate=4, acceleration=2, denominator=2),
            "beta": Trajectory(value=99, rate=6, acceleration=0, denominator=3),
        },
    )
    ranking = ByShapley().rank(situation_of(ledger, 20, ("alpha", "beta"), estimated=estimated))
    assert ranking.rule == "shapley"
    assert ranking.estimated_at == 15
    # φ: 70 + 5·2 + 15 = 95 and 33 + 10 = 43; ψ of alpha: 20 + 19 + … + 11 = 155
    assert ranking.contributions == {"alpha": 95, "beta": 43}
    assert ranking.scores == {"alpha": 95 - 155, "beta": 43}
    assert ranking.trajectories["alpha"].after(1) == 70 + 6 * 2 + 21 - 165


@pytest.mark.parametrize(
    "estimated",
    [None, Contributions(t=15, trajectories={"alpha": Trajectory(1, 0, 0)})],
    ids=["none", "of others"],
)
def test_without_estimates_of_everybody_the_shapley_rule_ranks_as_directcontr_and_says_so(
    estimated: Contributions | None,
) -> None:
    ledger = ledger_of([Allocation("alpha", "beta", 1, 0, 10)], 20, None)
    found = ByShapley().rank(situation_of(ledger, 20, ("alpha", "beta"), estimated=estimated))
    assert found == DirectContr().rank(situation_of(ledger, 20, ("alpha", "beta")))
    assert (found.rule, found.estimated_at) == ("directcontr", None)


@given(one=TRAJECTORY, other=TRAJECTORY, seconds=st.integers(0, 50), later=st.integers(0, 50))
def test_trajectories_are_added_and_moved_exactly(
    one: Trajectory, other: Trajectory, seconds: int, later: int
) -> None:
    def exactly(path: Trajectory, after: int) -> Fraction:
        gained = after * path.rate + after * (after + 1) // 2 * path.acceleration
        return Fraction(path.value + gained, path.denominator)

    assert exactly(one.later(seconds), later) == exactly(one, seconds + later)
    difference = exactly(one, seconds) - exactly(other, seconds)
    assert exactly(one - other, seconds) == difference
    assert (one - other).after(seconds) == floor(difference)


# what every rule keeps


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """A cluster in a pool or in none, with jobs that wait and some that run."""
    allocations, horizon = draw(st.lists(ALLOCATIONS, max_size=8)), draw(HORIZONS)
    situation = situation_of(ledger_of(allocations, LAST_EVENT, horizon), LAST_EVENT)
    states = tuple(
        replace(
            state,
            processors=draw(st.integers(0, 9)),
            waiting=waiting,
            release=draw(st.integers(0, LAST_EVENT)) if waiting else None,
        )
        for state in situation.organizations
        for waiting in [draw(st.integers(0, 9))]
    )
    paths = st.fixed_dictionaries(dict.fromkeys(NAMES, TRAJECTORY))
    estimates = st.builds(Contributions, t=st.integers(0, LAST_EVENT), trajectories=paths)
    return replace(
        situation,
        free=draw(st.integers(0, 9)),
        organizations=states,
        estimated=draw(st.none() | estimates),
        elsewhere=draw(st.none() | paths),
    )


@pytest.mark.parametrize("name", RULES)
@given(situation=situations())
def test_a_rule_ranks_every_organization_and_says_why(name: str, situation: Situation) -> None:
    rule: RankingRule = RULES[name]
    assert rule.name == name
    assert rule.criterion
    assert rule.dynamics.endswith(".")
    ranking = rule.rank(situation)
    assert list(ranking.trajectories) == list(NAMES)
    assert ranking.contributions.keys() == set(NAMES)
    assert all(ranking.reasons[organization] for organization in NAMES)


@pytest.mark.parametrize("name", RULES)
@given(situation=situations(), data=st.data())
def test_a_pool_adds_to_a_score_what_the_rule_calls_additive_and_nothing_else(
    name: str, situation: Situation, data: st.DataObject
) -> None:
    rule = RULES[name]
    alone = rule.rank(replace(situation, elsewhere=None))
    assert alone.additive.keys() in (set(), set(NAMES))
    elsewhere = data.draw(st.fixed_dictionaries(dict.fromkeys(NAMES, TRAJECTORY)))
    pooled = rule.rank(replace(situation, elsewhere=elsewhere))
    assert pooled.additive == alone.additive  # what is published holds none of the others'
    if not alone.additive:
        assert pooled.trajectories == alone.trajectories
        return
    nothing = dict.fromkeys(NAMES, NOTHING)
    assert rule.rank(replace(situation, elsewhere=nothing)).scores == alone.scores


@pytest.mark.parametrize("name", RULES)
@given(first=situations(), second=situations())
def test_a_rule_finds_the_same_in_the_same_situation_whatever_it_ranked_before(
    name: str, first: Situation, second: Situation
) -> None:
    found = RULES[name].rank(second)
    RULES[name].rank(first)
    assert RULES[name].rank(second) == found


# unions


@given(trajectories=TRAJECTORIES, within=st.integers(0, 20), data=st.data())
def test_the_union_owed_most_comes_first_and_within_it_the_member(
    trajectories: dict[str, Trajectory], within: int, data: st.DataObject
) -> None:
    k = len(trajectories)
    of = data.draw(st.lists(st.integers(0, 2), min_size=k, max_size=k))
    unions = dict(zip(trajectories, map(list(dict.fromkeys(of)).index, of), strict=True))
    ranking = replace(ranking_of(trajectories), unions=tuple(unions.values()))

    def exactly(name: str, seconds: int) -> Fraction:
        path = trajectories[name]
        gained = seconds * path.rate + seconds * (seconds + 1) // 2 * path.acceleration
        return Fraction(path.value + gained, path.denominator)

    def order(seconds: int) -> list[str]:
        sums = {
            one: floor(sum(exactly(name, seconds) for name in trajectories if unions[name] == one))
            for one in unions.values()
        }
        return sorted(
            trajectories,
            key=lambda name: (
                -sums[unions[name]],
                unions[name],
                -floor(exactly(name, seconds)),
                list(trajectories).index(name),
            ),
        )

    assert ranking.order == order(0)
    found = ranking.seconds_until_reorder(set("abcd"), within)
    assert all(order(second) == order(0) for second in range(within if found is None else found))
    assert found is None or (found < within and order(found) != order(0))


def test_a_union_of_each_alone_or_of_all_changes_no_order() -> None:
    flat = ranking_of({"a": Trajectory(1, 0, 0), "b": Trajectory(5, 0, 0), "c": NOTHING})
    assert flat.order == ["b", "a", "c"]
    for unions in ((0, 1, 2), (0, 0, 0)):
        assert replace(flat, unions=unions).order == flat.order
