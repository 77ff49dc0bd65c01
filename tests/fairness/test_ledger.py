"""The ledger is an exact sum: no order, repetition or undoing leaves a trace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.ledger import Entry, Ledger, Standing
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import NOBODY, Allocation, Tenures
from tests.fairness.examples import (
    ALLOCATIONS,
    HORIZONS,
    LAST_EVENT,
    NAMES,
    a_run,
    events_between,
    expected_standings,
    ledger_of,
    standings_by_parts,
    worth_by_parts,
)

if TYPE_CHECKING:
    from random import Random

RUNS = st.lists(
    st.builds(
        lambda begin, length, processors, account: a_run(
            begin, None if length is None else begin + length, processors, account=account
        ),
        st.integers(0, 50),
        st.none() | st.integers(0, 30),
        st.dictionaries(st.sampled_from(["p1", "b1", "x1"]), st.integers(0, 8), min_size=1),
        st.sampled_from(["phys", "bio", "other"]),
    ),
    max_size=6,
)


def entries(ledger: Ledger) -> dict[tuple[str, str], Entry]:
    """All entries that are not zero."""
    return {pair: entry for pair, entry in ledger.entries.items() if entry != Entry()}


@given(
    allocations=st.lists(ALLOCATIONS, max_size=8),
    later=st.integers(0, 60),
    horizon=HORIZONS,
)
def test_standings_are_the_sum_over_the_parts(
    allocations: list[Allocation], later: int, horizon: int | None
) -> None:
    t = LAST_EVENT + later
    standings = ledger_of(allocations, t, horizon).standings(t, NAMES)
    assert standings == expected_standings(allocations, t, horizon)


def test_the_owner_of_the_job_gains_utility_and_that_of_the_processor_contribution() -> None:
    standings = ledger_of([Allocation("physics", "biology", 2, 0, 3)], 3).standings(3, NAMES)
    worth = 2 * (3 + 2 + 1)
    assert standings["physics"] == Standing(contribution=0, utility=worth, parts=6)
    assert standings["biology"] == Standing(contribution=worth, utility=0, parts=0)
    assert standings["physics"].balance == -worth
    assert standings["biology"].balance == worth


# a sum


@given(
    allocations=st.lists(ALLOCATIONS, max_size=6),
    extra=st.lists(ALLOCATIONS, max_size=6),
    order=st.randoms(use_true_random=False),
    fold=st.integers(-10, 90),
)
def test_any_order_and_any_detour_gives_the_same_entries(
    allocations: list[Allocation], extra: list[Allocation], order: Random, fold: int
) -> None:
    straight = Ledger(None, folded_to=fold)
    straight.add(allocations)
    steps = [(allocation, +1) for allocation in allocations]
    steps += [(allocation, sign) for allocation in extra for sign in (+1, -1)]
    order.shuffle(steps)
    detour = Ledger(None, folded_to=fold)
    for allocation, sign in steps:
        (detour.add if sign > 0 else detour.subtract)([allocation])
    assert entries(detour) == entries(straight)


@given(
    steps=st.lists(st.tuples(ALLOCATIONS, st.sampled_from([+1, -1])), max_size=12),
    repetitions=st.integers(1, 4),
)
def test_only_how_often_each_allocation_was_added_and_subtracted_counts(
    steps: list[tuple[Allocation, int]], repetitions: int
) -> None:
    ledger, net = Ledger(None), Counter[Allocation]()
    for allocation, sign in steps * repetitions:
        (ledger.add if sign > 0 else ledger.subtract)([allocation])
        net[allocation] += sign
    expected = Ledger(None)
    for allocation, times in net.items():
        (expected.add if times > 0 else expected.subtract)([allocation] * abs(times))
    assert entries(ledger) == entries(expected)


@given(allocations=st.lists(ALLOCATIONS, max_size=8), fold=st.integers(-10, 90))
def test_subtracting_everything_leaves_nothing(allocations: list[Allocation], fold: int) -> None:
    ledger = Ledger(None, folded_to=fold)
    ledger.add(allocations)
    ledger.subtract(reversed(allocations))
    assert entries(ledger) == {}


# the fold


@given(
    allocations=st.lists(ALLOCATIONS, max_size=8),
    path=st.lists(st.integers(-20, 100), min_size=1, max_size=6),
    everything=st.booleans(),
)
def test_folding_forwards_and_backwards_is_the_same_as_counting_anew(
    allocations: list[Allocation], path: list[int], everything: bool
) -> None:
    ledger = Ledger(None)
    ledger.add(allocations)
    for to in path:
        crossing = events_between(allocations, ledger.folded_to, to)
        ledger.fold(to, allocations if everything else crossing)
    anew = Ledger(None, folded_to=path[-1])
    anew.add(allocations)
    assert ledger.folded_to == anew.folded_to
    assert entries(ledger) == entries(anew)


@given(
    early=st.lists(ALLOCATIONS, max_size=6),
    late=st.lists(ALLOCATIONS, max_size=6),
    corrected=st.lists(ALLOCATIONS, max_size=3),
    horizon=st.integers(1, 60),
    laters=st.lists(st.integers(0, 60), min_size=1, max_size=4),
)
def test_records_that_come_after_the_fold_count_as_if_they_had_come_before(
    early: list[Allocation],
    late: list[Allocation],
    corrected: list[Allocation],
    horizon: int,
    laters: list[int],
) -> None:
    ledger, held = Ledger(horizon), [*early, *corrected]
    ledger.add(held)
    for later in sorted(laters):
        t = LAST_EVENT + later
        ledger.fold(t - horizon, events_between(held, ledger.folded_to, t - horizon))
        assert ledger.standings(t, NAMES) == expected_standings(held, t, horizon)
        if late:
            ledger.add([late[-1]])
            held.append(late.pop())
        if corrected:
            ledger.subtract([corrected[-1]])
            held.remove(corrected.pop())
        assert ledger.standings(t, NAMES) == expected_standings(held, t, horizon)


@given(
    allocations=st.lists(ALLOCATIONS, max_size=8),
    horizon=st.integers(1, 40),
    laters=st.lists(st.integers(0, 60), min_size=2, max_size=2).map(sorted),
)
def test_what_ended_before_the_fold_needs_no_allocation_any_more(
    allocations: list[Allocation], horizon: int, laters: list[int]
) -> None:
    first, then = (LAST_EVENT + later for later in laters)
    ledger = ledger_of(allocations, first, horizon)
    kept = [p for p in allocations if p.end is None or p.end > ledger.folded_to]
    ledger.fold(then - horizon, events_between(kept, ledger.folded_to, then - horizon))
    assert ledger.standings(then, NAMES) == expected_standings(allocations, then, horizon)


@given(allocations=st.lists(ALLOCATIONS, max_size=8), later=st.integers(0, 60), horizon=HORIZONS)
def test_what_was_executed_is_of_any_age_and_what_runs_is_what_has_not_ended(
    allocations: list[Allocation], later: int, horizon: int | None
) -> None:
    t = LAST_EVENT + later
    theirs = {name: [p for p in allocations if p.organization == name] for name in NAMES}
    assert ledger_of(allocations, t, horizon).executed(t, NAMES) == {
        name: (
            sum(p.processors * ((t if p.end is None else p.end) - p.begin) for p in ours),
            sum(p.processors for p in ours if p.end is None),
        )
        for name, ours in theirs.items()
    }


def test_a_ledger_folded_elsewhere_does_not_answer() -> None:
    ledger = Ledger(30, folded_to=50)
    assert ledger.standings(80, NAMES) == dict.fromkeys(NAMES, Standing(0, 0, 0))
    with pytest.raises(ValueError, match="folded to 50, not 51"):
        ledger.standings(81, NAMES)


def test_without_a_horizon_the_fold_does_not_matter() -> None:
    ledger = Ledger(None, folded_to=50)
    ledger.add([Allocation("physics", "biology", 2, 0, 3)])
    assert ledger.standings(100, NAMES)["physics"].utility == 2 * (100 + 99 + 98)


# contributions and utilities


@given(runs=RUNS, moved_at=st.integers(0, 80), later=st.integers(0, 40), horizon=HORIZONS)
def test_contributions_sum_to_utilities_once_everything_is_owned_and_claimed(
    runs: list[Run], moved_at: int, later: int, horizon: int | None
) -> None:
    tenures = Tenures()
    tenures.observe("node", {"p1": "physics", "b1": "biology", "x1": "chemistry"}, 0)
    tenures.observe("account", {"phys": "physics", "bio": "biology", "other": "chemistry"}, 0)
    tenures.observe("node", {"b1": "physics"}, moved_at)
    tenures.observe("account", {"bio": "chemistry"}, moved_at + 1)
    t = LAST_EVENT + 1 + later
    allocations = [allocation for run in runs for allocation in tenures.allocations(run)]
    ledger = ledger_of(allocations, t, horizon)
    standings = ledger.standings(t, ["physics", "biology", "chemistry"]).values()
    total = sum(
        sum(run.processors.values()) * worth_by_parts(run.begin, run.end, t, horizon)
        for run in runs
    )
    assert sum(standing.contribution for standing in standings) == total
    assert sum(standing.utility for standing in standings) == total
    assert sum(standing.balance for standing in standings) == 0


@given(runs=RUNS, later=st.integers(0, 40), horizon=HORIZONS, claimed_at=st.integers(0, 80))
def test_what_guests_use_makes_no_member_richer_or_poorer(
    runs: list[Run], later: int, horizon: int | None, claimed_at: int
) -> None:
    members = ["physics", "biology"]
    tenures = Tenures()
    tenures.observe("node", {"p1": "physics", "b1": "biology", "x1": "biology"}, 0)
    tenures.observe("account", {"phys": "physics", "bio": "biology", "other": NOBODY}, 0)
    tenures.observe("account", {"bio": NOBODY}, claimed_at)
    t = LAST_EVENT + 1 + later
    everybodys = [allocation for run in runs for allocation in tenures.allocations(run)]
    standings = ledger_of(everybodys, t, horizon).standings(t, members)
    assert sum(standing.balance for standing in standings.values()) == 0
    assert standings == standings_by_parts(runs, tenures.holder, members, t, horizon)
    without_guests = [one for one in everybodys if one.organization != NOBODY]
    assert standings == ledger_of(without_guests, t, horizon).standings(t, members)
    paths = ledger_of(everybodys, t, horizon).trajectories(t, members)
    for name, (gave, got) in paths.items():
        assert (gave.after(0), got.after(0)) == (
            standings[name].contribution,
            standings[name].utility,
        )


@given(allocations=st.lists(ALLOCATIONS, max_size=8), later=st.integers(0, 40), horizon=HORIZONS)
def test_with_nobody_counted_in_contributions_sum_to_utilities_whoever_owns_what(
    allocations: list[Allocation], later: int, horizon: int | None
) -> None:
    t = LAST_EVENT + later
    standings = ledger_of(allocations, t, horizon).standings(t, NAMES).values()
    assert sum(standing.balance for standing in standings) == 0


# exactness

EPOCH = 1_700_000_000
TEN_YEARS = 10 * 366 * 86_400
PROCESSORS = 100_000


def arithmetic_sum(first: int, last: int) -> int:
    """first + (first + 1) + ... + last."""
    return (first + last) * (last - first + 1) // 2


@pytest.mark.parametrize("horizon", [None, 30 * 86_400])
def test_ten_years_of_a_hundred_thousand_processors_are_exact_to_the_unit(
    horizon: int | None,
) -> None:
    t = EPOCH + TEN_YEARS
    always = [Allocation("physics", "biology", PROCESSORS, EPOCH, None)]
    in_days = [
        Allocation("biology", "physics", PROCESSORS, day, day + 86_400)
        for day in range(EPOCH, t, 86_400)
    ]
    one_part_more = Allocation("biology", "physics", 1, t - 1, t)
    standings = ledger_of([*always, *in_days, one_part_more], t, horizon).standings(t, NAMES)
    if horizon is None:
        worth = PROCESSORS * arithmetic_sum(1, TEN_YEARS)
    else:
        worth = PROCESSORS * (arithmetic_sum(1, horizon) + (TEN_YEARS - horizon) * horizon)
    assert standings["physics"].utility == worth
    assert standings["biology"].contribution == worth
    assert standings["biology"].utility == worth + 1
    assert standings["physics"].contribution == worth + 1
    assert standings["physics"].balance == 1
