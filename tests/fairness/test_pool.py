"""A pool adds what organizations are owed at its clusters, exactly and from each one's join on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.pool import (
    ClusterBalances,
    PartState,
    Stay,
    StayLedger,
    elsewhere,
    parts_of,
)
from shapleyprio.fairness.rule import Contributions, OrganizationState, Situation
from shapleyprio.fairness.rules import ByShapley, DirectContr
from shapleyprio.fairness.shapley import shapley
from shapleyprio.fairness.tenure import Allocation
from shapleyprio.fairness.worth import Trajectory
from tests.fairness.examples import (
    ALLOCATIONS,
    HORIZONS,
    LAST_EVENT,
    NAMES,
    events_between,
    expected_standings,
    situation_of,
)

STAY = Stay(pool="all", since=100, clusters=("c1", "c2"), stale_after=600)
VALUES = st.lists(st.integers(0, 100), min_size=7, max_size=7)


def found(cluster: str = "c2", *, t: int = 1000, since: int = 100) -> ClusterBalances:
    """Physics is owed 50 and gains 3 a second, which biology loses."""
    balances = {"physics": Trajectory(50, 3, 0), "biology": Trajectory(-50, -3, 0)}
    return ClusterBalances(
        cluster=cluster, since=since, t=t, weight="cpus", all_parts=9, balances=balances
    )


def balances(ledger: Ledger, t: int) -> Mapping[str, Trajectory]:
    return DirectContr().rank(situation_of(ledger, t)).additive


def added(*balances: ClusterBalances, t: int = 1000) -> dict[tuple[str, PartState], int]:
    """Cluster and how it counts -> what it adds for physics now."""
    parts = parts_of(balances, STAY, cluster="c1", t=t, weight="cpus")
    return {
        (part.cluster, part.state): part.balances["physics"].after(0) if part.balances else 0
        for part in parts
    }


# the theory


@given(VALUES, VALUES)
def test_the_value_of_two_games_together_is_the_sum_of_their_values(
    one: list[int], other: list[int]
) -> None:
    games = [[0, *one], [0, *other]]
    together = [a + b for a, b in zip(*games, strict=True)]
    each = [shapley(game) for game in games]
    assert shapley(together) == tuple(a + b for a, b in zip(*each, strict=True))


# what counts from the join on


@given(
    before=st.lists(ALLOCATIONS, max_size=5),
    late=st.lists(ALLOCATIONS, max_size=5),
    withdrawn=st.integers(0, 5),
    joined=st.integers(81, 120),
    later=st.lists(st.integers(0, 60), min_size=1, max_size=3),
    horizon=HORIZONS,
    back=st.integers(0, 120),
)
def test_a_cluster_counts_from_its_join_on_to_the_unit(
    before: list[Allocation],
    late: list[Allocation],
    withdrawn: int,
    joined: int,
    later: list[int],
    horizon: int | None,
    back: int,
) -> None:
    ledger, known = StayLedger(horizon), list(before)
    ledger.add(before)

    def fold_to(t: int) -> None:
        if horizon is not None:
            low, high = sorted((ledger.folded_to, t - horizon))
            ledger.fold(t - horizon, events_between(known, low, high))

    fold_to(joined)
    ledger.begin_stay(joined)
    ledger.add(late)  # of before the join, and across it
    ledger.subtract(before[:withdrawn])
    known = before[withdrawn:] + late
    since_join = [
        replace(each, begin=max(each.begin, joined))
        for each in known
        if each.end is None or each.end > joined
    ]
    for t in [joined + seconds for seconds in [*later, back]]:
        fold_to(t)
        assert ledger.earlier is not None
        whole, earlier = ledger.standings(t, NAMES), balances(ledger.earlier, t)
        assert whole == expected_standings(known, t, horizon)
        expected = expected_standings(since_join, t, horizon)
        for name in NAMES:
            own = whole[name].balance - earlier[name].after(0)
            assert own == expected[name].balance
    assert joined > LAST_EVENT


def test_what_ran_across_the_join_counts_only_from_then_on_and_goes_on_doing_so() -> None:
    ledger = StayLedger(None)
    ledger.add([Allocation("physics", "biology", 2, 0, None)])
    ledger.begin_stay(10)
    assert ledger.earlier is not None
    own = balances(ledger, 12)["biology"] - balances(ledger.earlier, 12)["biology"]
    assert [own.after(seconds) for seconds in range(3)] == [2 * 3, 2 * 6, 2 * 10]


# what the others add


def test_what_is_current_goes_on_as_it_is_known_to() -> None:
    assert added(found(t=1000), t=1600) == {("c2", PartState.CURRENT): 50 + 600 * 3}


def test_what_is_stale_counts_as_it_stood() -> None:
    assert added(found(t=1000), t=1601) == {("c2", PartState.STALE): 50}


def test_what_a_clock_ahead_has_found_is_not_taken_back_and_may_be_stale() -> None:
    assert added(found(t=1500), t=1000) == {("c2", PartState.CURRENT): 50}
    assert added(found(t=1601), t=1000) == {("c2", PartState.STALE): 50}


def test_a_cluster_that_left_counts_as_it_stood_and_again_if_it_comes_back() -> None:
    assert added(found("c9", t=999)) == {
        ("c2", PartState.UNKNOWN): 0,
        ("c9", PartState.LEFT): 50,
    }
    parts = parts_of(
        [found(since=100, t=400), found(since=500, t=999)],
        STAY,
        cluster="c1",
        t=1000,
        weight="cpus",
    )
    assert [(part.since, part.state) for part in parts] == [
        (500, PartState.CURRENT),
        (100, PartState.LEFT),
    ]


def test_of_the_cluster_itself_only_earlier_stays_are_added() -> None:
    ours = [found("c1", since=100), found("c1", since=20, t=60)]
    assert added(*ours, found()) == {("c1", PartState.LEFT): 50, ("c2", PartState.CURRENT): 50}


def test_a_cluster_that_counts_other_processors_adds_nothing() -> None:
    other = replace(found(), weight="gres/gpu")
    assert added(other) == {("c2", PartState.OTHER_WEIGHT): 0}
    assert [
        part.all_parts
        for part in parts_of([found(), other], STAY, cluster="c1", t=1000, weight="cpus")
    ] == [9, 0]


# the ranking


@pytest.mark.parametrize(("owed", "first"), [(-40, "physics"), (-60, "biology")])
def test_organizations_are_ranked_by_the_exact_sum_and_matched_by_name(
    owed: int, first: str
) -> None:
    estimated = Contributions(
        t=1000,
        trajectories={
            "biology": Trajectory(-owed * 7, 0, 0, 7),
            "physics": Trajectory(owed * 7 + 1, 0, 0, 7),
        },
    )
    names = ("biology", "physics")
    stranger = replace(found("c3"), balances={"chemistry": Trajectory(10**9, 0, 0)})
    stay = replace(STAY, clusters=("c1", "c2", "c3"))
    parts = parts_of([found(), stranger], stay, cluster="c1", t=1000, weight="cpus")
    earlier = {"physics": Trajectory(2, 1, 0)}
    situation = Situation(
        t=1000,
        free=0,
        organizations=tuple(OrganizationState(name=name, processors=1) for name in names),
        estimated=estimated,
        elsewhere=elsewhere(parts, earlier, names),
    )
    sums = ByShapley().rank(situation)
    assert sums.order[0] == first
    assert sums.trajectories["physics"] == Trajectory((owed + 48) * 7 + 1, 14, 0, 7)
    assert sums.scores.keys() == {"physics", "biology"}
    assert sums.reasons["physics"] == f"balance {owed + 48} in the pool"
