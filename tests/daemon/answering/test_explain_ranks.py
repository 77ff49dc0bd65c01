"""The balance per part, and the ranks by the rule and by fair share."""

from __future__ import annotations

import json
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.daemon.answering.explain_ranks import RankedOrganization, rank_organizations
from shapleyprio.fairness.rules import DirectContr
from shapleyprio.fairness.scale import scale
from shapleyprio.fairness.tenure import NOBODY, Allocation
from shapleyprio.store import StandingRow
from tests.fairness.examples import (
    ALLOCATIONS,
    HORIZONS,
    ledger_of,
    parts_of,
    situation_of,
    worth_of_part,
)

T = 100


def standing(
    organization: str,
    *,
    contribution: int = 0,
    utility: int = 0,
    priority: int = 1,
    parts: int = 0,
    all_parts: int = 0,
    processors: int = 1,
) -> StandingRow:
    return StandingRow(
        cycle=1,
        organization=organization,
        t=T,
        contribution=contribution,
        utility=utility,
        score=contribution - utility,
        parts=parts,
        all_parts=all_parts,
        priority=priority,
        pending=0,
        running=0,
        reason="it is so",
        processors=processors,
    )


def placed(allocations: list[Allocation], horizon: int | None) -> dict[str, RankedOrganization]:
    """Places of physics and biology after this work, as a cycle would rank them."""
    ledger = ledger_of(allocations, T, horizon)
    standings = ledger.standings(T, ["physics", "biology"])
    order = DirectContr().rank(situation_of(ledger, T, ["physics", "biology"])).order
    points = scale(2, others=0, influence=None).points_of(order)
    rows = [
        standing(
            name,
            contribution=one.contribution,
            utility=one.utility,
            parts=one.parts,
            all_parts=ledger.completed(T),
            priority=points[name],
        )
        for name, one in standings.items()
    ]
    return rank_organizations(rows, {}, None)


@given(st.lists(ALLOCATIONS), HORIZONS)
def test_who_received_more_than_it_contributed_has_a_negative_balance_and_stands_behind(
    allocations: list[Allocation], horizon: int | None
) -> None:
    by_name = placed(allocations, horizon)
    for ranked in by_name.values():
        assert ((ranked.balance_per_part or 0) > 0) == (ranked.balance > 0)
        assert ((ranked.balance_per_part or 0) == 0) == (ranked.balance == 0)
        assert all(
            (by_name[name].balance_per_part or 0) >= (ranked.balance_per_part or 0)
            for name in ranked.before
        )


@given(
    st.lists(ALLOCATIONS.filter(lambda one: bool(one.organization and one.owner))),
    HORIZONS,
)
def test_what_some_received_more_others_received_less(
    allocations: list[Allocation], horizon: int | None
) -> None:
    by_name = placed(allocations, horizon)
    assert sum(ranked.balance_per_part or 0 for ranked in by_name.values()) == 0


@given(st.lists(ALLOCATIONS, min_size=1), HORIZONS)
def test_a_balance_per_part_is_the_mean_over_every_part_ever_executed(
    allocations: list[Allocation], horizon: int | None
) -> None:
    """A part of a job of somebody counts for its owner, minus for whose job it was."""
    each = [
        worth_of_part(second, T, horizon)
        * ((one.owner == "physics") - (one.organization == "physics"))
        * (one.organization != NOBODY)
        for one in allocations
        for second in parts_of(one.begin, one.end, T)
        for _ in range(one.processors)
    ]
    expected = Fraction(sum(each), len(each)) if each else None
    assert placed(allocations, horizon)["physics"].balance_per_part == expected


def test_older_work_is_worth_more() -> None:
    one_hour_each = [
        Allocation("physics", "biology", 1, 0, 40),
        Allocation("biology", "physics", 1, 50, 90),
    ]
    by_name = placed(one_hour_each, None)
    late, ahead = (by_name[name].balance_per_part for name in ("biology", "physics"))
    assert (late, ahead) == (Fraction(25), Fraction(-25))


def test_beyond_the_horizon_age_makes_no_difference() -> None:
    exchanged = [
        Allocation("physics", "biology", 1, 0, 40),
        Allocation("biology", "physics", 1, 40, 80),
    ]
    assert {ranked.balance_per_part for ranked in placed(exchanged, 20).values()} == {0}


def test_ranks_follow_the_points_and_show_whose_jobs_are_before() -> None:
    rows = [standing("a", priority=1), standing("b", priority=3), standing("c", priority=2)]
    by_name = rank_organizations(rows, {"a": 5, "b": 2, "": 9}, None)
    assert [(name, ranked.rank) for name, ranked in by_name.items()] == [
        ("b", 1),
        ("c", 2),
        ("a", 3),
    ]
    assert by_name["b"].before == {}
    assert by_name["a"].before == {"b": 2, "c": 0}


def test_fair_share_puts_first_who_used_least_of_each_processor_it_owns() -> None:
    rows = [
        standing("large", parts=90, processors=10, priority=1),
        standing("small", parts=20, processors=2, priority=2),
    ]
    by_name = rank_organizations(rows, {"large": 4, "small": 1}, None)
    assert (by_name["large"].used_each, by_name["small"].used_each) == (Fraction(9), Fraction(10))
    assert (by_name["large"].fair_share_rank, by_name["large"].before_by_fair_share) == (1, {})
    assert by_name["small"].fair_share_rank == 2
    assert by_name["small"].before_by_fair_share == {"large": 4}


def test_equal_usage_of_each_processor_shares_a_rank() -> None:
    rows = [
        standing("a", parts=10**30, processors=3),
        standing("b", parts=2 * 10**30, processors=6),
        standing("c", parts=10**30 + 1, processors=3),
    ]
    by_name = rank_organizations(rows, {}, None)
    assert [by_name[name].fair_share_rank for name in "abc"] == [1, 1, 3]
    assert set(by_name["c"].before_by_fair_share) == {"a", "b"}


def test_fair_share_puts_last_who_owns_no_processors() -> None:
    rows = [standing("guest", processors=0), standing("owner", parts=10**9)]
    by_name = rank_organizations(rows, {}, None)
    assert by_name["guest"].fair_share_rank == 2
    assert by_name["guest"].used_each is None
    assert by_name["guest"].as_json()["fair_share"]["used_hours_each"] is None


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=6),
)
def test_the_place_by_fair_share_is_one_more_than_those_with_a_higher_factor(
    usages: list[tuple[int, int]],
) -> None:
    """Slurm's classic factor is 2^(−usage / share), and 0 without a share."""
    rows = [
        standing(str(n), parts=parts, processors=processors)
        for n, (parts, processors) in enumerate(usages)
    ]
    total, shares = sum(p for p, _ in usages) or 1, sum(s for _, s in usages) or 1
    factor = {
        str(n): 2.0 ** -((parts / total) / (processors / shares)) if processors else -parts
        for n, (parts, processors) in enumerate(usages)
    }
    for name, ranked in rank_organizations(rows, {}, None).items():
        higher = sum(one > factor[name] * (1 + 1e-9) for one in factor.values())
        if factor[name] <= 0:
            higher = sum(one > factor[name] for one in factor.values())
        assert ranked.fair_share_rank == 1 + higher


def test_as_json() -> None:
    row = standing(
        "a", contribution=3600, utility=9000, parts=7200, all_parts=10_800, processors=4, priority=8
    )
    (ranked,) = rank_organizations([row], {}, None).values()
    assert json.loads(json.dumps(ranked.as_json())) == {
        "organization": "a",
        "rank": 1,
        "organizations": 1,
        "contribution": 3600,
        "utility": 9000,
        "balance": -5400,
        "score": -5400,
        "balance_per_part": -0.5,
        "drift_seconds": None,
        "reason": "it is so",
        "points": 8,
        "before": {},
        "fair_share": {
            "rank": 1,
            "processors": 4,
            "used_processor_seconds": 7200,
            "used_hours_each": 0.5,
            "before": {},
        },
        "value": None,
        "waiting_work": None,
        "union": None,
    }
