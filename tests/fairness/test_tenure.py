"""Nodes and accounts change hands; what was earned stays where it was earned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.ledger import Standing
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY, Allocation, Kind, Tenure, Tenures
from tests.fairness.examples import a_run, ledger_of, parts_of, standings_by_parts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

ORGANIZATIONS = ["physics", "biology", "chemistry"]
NAMES = [*ORGANIZATIONS, NOBODY]
NODES = ["n1", "n2", "n3"]
ACCOUNTS = ["phys", "bio"]


@dataclass(frozen=True)
class Sighting:
    """Somebody was seen to hold something."""

    second: int
    kind: Kind
    name: str
    organization: str


def sightings_of(kind: Kind, names: list[str]) -> st.SearchStrategy[Sighting]:
    return st.builds(
        Sighting,
        st.integers(0, 60),
        st.just(kind),
        st.sampled_from(names),
        st.sampled_from([*ORGANIZATIONS, NOBODY]),
    )


HISTORIES = st.lists(
    sightings_of("node", NODES) | sightings_of("account", ACCOUNTS), max_size=12
).map(lambda history: sorted(history, key=lambda sighting: sighting.second))

RUNS = st.builds(
    lambda begin, length, processors, account: a_run(
        begin, None if length is None else begin + length, processors, account=account
    ),
    st.integers(0, 60),
    st.none() | st.integers(0, 40),
    st.dictionaries(st.sampled_from(NODES), st.integers(0, 8), min_size=1),
    st.sampled_from(ACCOUNTS),
)

END_OF_TIME = 101


def tenures_of(history: Iterable[Sighting]) -> Tenures:
    tenures = Tenures()
    for seen in history:
        tenures.observe(seen.kind, {seen.name: seen.organization}, seen.second)
    return tenures


def holder_by_definition(history: list[Sighting], kind: Kind, name: str, second: int) -> str:
    """The one last seen by then; before the first sighting, the one seen first."""
    seen = [item for item in history if (item.kind, item.name) == (kind, name)]
    by_then = [item for item in seen if item.second <= second]
    if by_then:
        return by_then[-1].organization
    return seen[0].organization if seen else NOBODY


@given(history=HISTORIES, second=st.integers(-10, 70))
def test_the_holder_is_the_one_last_seen_and_the_first_seen_counts_from_always(
    history: list[Sighting], second: int
) -> None:
    tenures = tenures_of(history)
    kinds: list[tuple[Kind, list[str]]] = [("node", NODES), ("account", ACCOUNTS)]
    for kind, names in kinds:
        for name in names:
            expected = holder_by_definition(history, kind, name, second)
            assert tenures.holder(kind, name, second) == expected


def test_a_name_not_mentioned_any_more_keeps_its_holder() -> None:
    tenures = Tenures()
    tenures.observe("node", {"n1": "physics", "n2": "physics"}, 10)
    assert tenures.observe("node", {"n2": "biology"}, 20) != []
    assert tenures.holder("node", "n1", 30) == "physics"


def test_a_name_never_heard_of_belongs_to_nobody() -> None:
    tenures = Tenures()
    assert tenures.holder("node", "n1", 0) == NOBODY
    assert not tenures.knows("node", "n1")
    tenures.observe("account", {"n1": "physics"}, 0)
    assert not tenures.knows("node", "n1")


def test_seeing_the_same_holder_again_changes_nothing() -> None:
    tenures = Tenures()
    assert tenures.observe("node", {"n1": "physics"}, 10) == [
        Tenure("node", "n1", "physics", None, None)
    ]
    assert tenures.observe("node", {"n1": "physics"}, 20) == []


@given(history=HISTORIES)
def test_every_history_is_a_row_of_tenures_without_gaps(history: list[Sighting]) -> None:
    tenures = tenures_of(history)
    for kind, name in {(tenure.kind, tenure.name) for tenure in tenures}:
        rows = tenures.of(kind, name)
        assert rows[0].since is None
        assert rows[-1].until is None
        assert [row.until for row in rows[:-1]] == [row.since for row in rows[1:]]


@given(history=HISTORIES)
def test_what_is_reported_as_changed_is_all_that_changed(history: list[Sighting]) -> None:
    tenures = Tenures()
    for seen in history:
        before = set(tenures)
        changed = tenures.observe(seen.kind, {seen.name: seen.organization}, seen.second)
        assert set(tenures) - before == set(changed) - before
        assert set(changed) <= set(tenures)


@given(history=HISTORIES, shuffled=st.randoms(use_true_random=False))
def test_tenures_can_be_stored_and_read_back_in_any_order(
    history: list[Sighting], shuffled: Random
) -> None:
    tenures = tenures_of(history)
    rows = list(tenures)
    shuffled.shuffle(rows)
    again = Tenures(rows)
    assert set(again) == set(tenures)
    for second in range(62):
        for node in NODES:
            assert again.holder("node", node, second) == tenures.holder("node", node, second)


# allocations partition the run


def processors_by_second(allocations: Iterable[Allocation]) -> dict[tuple[int, str, str], int]:
    """(second, organization, owner) -> processors that worked."""
    found: dict[tuple[int, str, str], int] = {}
    for allocation in allocations:
        end = END_OF_TIME if allocation.end is None else allocation.end
        assert allocation.begin < end
        assert allocation.processors > 0
        for second in range(allocation.begin, end):
            key = (second, allocation.organization, allocation.owner)
            found[key] = found.get(key, 0) + allocation.processors
    return found


@given(history=HISTORIES, run=RUNS)
def test_allocations_give_every_part_to_those_who_held_job_and_node_then(
    history: list[Sighting], run: Run
) -> None:
    expected: dict[tuple[int, str, str], int] = {}
    for second in range(run.begin, END_OF_TIME if run.end is None else run.end):
        organization = holder_by_definition(history, "account", run.account, second)
        for node, processors in run.processors.items():
            owner = holder_by_definition(history, "node", node, second)
            if processors:
                key = (second, organization, owner)
                expected[key] = expected.get(key, 0) + processors
    assert processors_by_second(tenures_of(history).allocations(run)) == expected


@given(history=HISTORIES, run=RUNS)
def test_allocations_neither_add_nor_lose_a_part(history: list[Sighting], run: Run) -> None:
    allocations = tenures_of(history).allocations(run)
    length = (END_OF_TIME if run.end is None else run.end) - run.begin
    parts: int = sum(processors_by_second(allocations).values())
    assert parts == length * sum(run.processors.values())
    if run.end is None and any(run.processors.values()):
        assert any(allocation.end is None for allocation in allocations)


# moving a node


@given(
    history=HISTORIES,
    run=RUNS,
    node=st.sampled_from(NODES),
    to=st.sampled_from(ORGANIZATIONS),
    moved_at=st.integers(60, 100),
    later=st.integers(0, 50),
    horizon=st.none() | st.integers(1, 120),
)
def test_moving_a_node_leaves_what_it_earned_where_it_was(
    history: list[Sighting],
    run: Run,
    node: str,
    to: str,
    moved_at: int,
    later: int,
    horizon: int | None,
) -> None:
    if run.end is not None and run.end > moved_at:
        run = replace(run, end=None)
    known_from_the_start = [Sighting(0, "node", name, "physics") for name in NODES]
    tenures = tenures_of([*known_from_the_start, *history])
    before = standings(run, tenures, moved_at, horizon)
    tenures.observe("node", {node: to}, moved_at)
    assert standings(run, tenures, moved_at, horizon) == before
    t = moved_at + later
    assert standings(run, tenures, t, horizon) == standings_by_parts(
        [run], tenures.holder, NAMES, t, horizon
    )


def standings(run: Run, tenures: Tenures, t: int, horizon: int | None) -> dict[str, Standing]:
    return ledger_of(tenures.allocations(run), t, horizon).standings(t, NAMES)


def test_a_moved_node_earns_its_new_owner_only_what_runs_from_then_on() -> None:
    tenures = Tenures()
    tenures.observe("account", {"phys": "physics"}, 0)
    tenures.observe("node", {"n1": "biology"}, 0)
    run = a_run(10, None)
    before = ledger_of(tenures.allocations(run), 20).standings(20, NAMES)
    tenures.observe("node", {"n1": "chemistry"}, 20)
    at_once = ledger_of(tenures.allocations(run), 20).standings(20, NAMES)
    later = ledger_of(tenures.allocations(run), 23).standings(23, NAMES)
    assert at_once == before
    assert before["biology"].contribution == 55  # 10 + 9 + ... + 1
    assert later["biology"].contribution == 55 + 10 * 3  # ten parts, three seconds older
    assert later["chemistry"].contribution == 3 + 2 + 1
    assert later["physics"].utility == 85 + 6


@given(history=HISTORIES, run=RUNS, later=st.integers(0, 50))
def test_what_the_owners_gain_is_the_worth_of_the_run(
    history: list[Sighting], run: Run, later: int
) -> None:
    t = END_OF_TIME + later
    tenures = tenures_of(history)
    standings = ledger_of(tenures.allocations(run), t).standings(t, NAMES)
    until = run.end if run.paused_at is None else run.paused_at
    worth = sum(run.processors.values()) * sum(
        t - second
        for second in parts_of(run.begin, until, t)
        if tenures.holder("account", run.account, second) != NOBODY
    )
    assert sum(standing.contribution for standing in standings.values()) == worth
    assert sum(standing.utility for standing in standings.values()) == worth


@given(run=RUNS, earlier=st.sampled_from(ORGANIZATIONS), at=st.integers(0, 60))
@pytest.mark.parametrize("kind", ["account", "partition"])
def test_from_when_its_account_or_partition_is_left_out_a_run_means_nothing_for_anybody(
    kind: Kind, run: Run, earlier: str, at: int
) -> None:
    run = replace(run, partition="batch")
    tenures = Tenures()
    tenures.observe("account", {run.account: earlier}, 0)
    tenures.observe("partition", {"batch": NOBODY}, 0)
    before = tenures.allocations(run)
    tenures.observe(kind, {run.account if kind == "account" else "batch": LEFT_OUT}, at)
    after = tenures.allocations(run)
    assert all(one.end is not None and one.end <= at for one in after if one.end != run.end)
    assert all(one.begin < at for one in after)
    clipped = [replace(one, end=at if one.end is None else min(one.end, at)) for one in before]
    assert [replace(one, end=min(one.end or at, at)) for one in after] == [
        one for one in clipped if one.end is not None and one.begin < one.end
    ]
    if kind == "account":
        assert tenures.holder("account", run.account, at) == NOBODY
    else:
        assert tenures.left_out("partition", at) == {"batch"}


def test_a_run_whose_partition_is_not_known_counts() -> None:
    tenures = Tenures()
    tenures.observe("partition", {"test": LEFT_OUT}, 0)
    assert tenures.allocations(a_run(10, None, partition="test")) == ()
    assert len(tenures.allocations(a_run(10, None))) == 1


def test_an_account_that_was_always_left_out_never_meant_anything() -> None:
    tenures = Tenures()
    tenures.observe("account", {"phys": LEFT_OUT}, 50)
    tenures.observe("node", {"n1": "physics"}, 50)
    assert tenures.allocations(a_run(10, None)) == ()
