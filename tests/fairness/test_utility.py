"""Utility is Eq. 3 of SPAA 2013, exactly, and nobody gains by cutting, merging or delaying."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.runs import JobRecord, run_of
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.fairness.worth import Moments, worth
from tests.fairness.examples import HORIZONS, job_record, parts_of, worth_by_parts

SECONDS = st.integers(-50, 150)
LENGTHS = st.integers(0, 60)
ENDS = st.none() | LENGTHS


@given(begin=SECONDS, length=ENDS, t=SECONDS, horizon=HORIZONS)
def test_worth_is_the_sum_over_unit_size_parts(
    begin: int, length: int | None, t: int, horizon: int | None
) -> None:
    end = None if length is None else begin + length
    assert worth(begin, end, t, horizon=horizon) == worth_by_parts(begin, end, t, horizon)


@given(
    runs=st.lists(st.tuples(st.integers(0, 50), ENDS, st.integers(1, 9))),
    later=st.integers(0, 100),
)
def test_moments_are_worth_the_sum_of_their_runs(
    runs: list[tuple[int, int | None, int]], later: int
) -> None:
    t = 110 + later  # no event may lie after it
    moments, expected, parts = Moments(), 0, 0
    for begin, length, processors in runs:
        end = None if length is None else begin + length
        moments.add(begin, processors)
        if end is not None:
            moments.add(end, -processors)
        expected += processors * worth_by_parts(begin, end, t)
        parts += processors * len(parts_of(begin, end, t))
    assert moments.worth(t) == expected
    assert moments.parts(t) == parts


@given(begin=SECONDS, length=ENDS, horizon=HORIZONS)
def test_a_part_is_worth_nothing_when_it_starts_and_one_a_second_later(
    begin: int, length: int | None, horizon: int | None
) -> None:
    end = None if length is None else begin + length
    assert worth(begin, end, begin, horizon=horizon) == 0
    assert worth(begin, end, begin + 1, horizon=horizon) == (0 if length == 0 else 1)


# strategy-proofness (SPAA 2013, Definition and Theorem 4.1), for every horizon


@given(
    cuts=st.lists(SECONDS, min_size=2).map(sorted),
    t=SECONDS,
    horizon=HORIZONS,
)
def test_splitting_a_job_earns_nothing_and_merging_neither(
    cuts: list[int], t: int, horizon: int | None
) -> None:
    pieces = sum(worth(begin, end, t, horizon=horizon) for begin, end in pairwise(cuts))
    assert pieces == worth(cuts[0], cuts[-1], t, horizon=horizon)


@given(
    begin=SECONDS,
    length=LENGTHS,
    delay=st.integers(1, 50),
    t=SECONDS,
    horizon=HORIZONS,
)
def test_delaying_a_job_never_earns(
    begin: int, length: int, delay: int, t: int, horizon: int | None
) -> None:
    end = begin + length
    now = worth(begin, end, t, horizon=horizon)
    delayed = worth(begin + delay, end + delay, t, horizon=horizon)
    assert delayed <= now
    if horizon is None and begin < min(end, t):
        assert delayed < now


@given(begin=SECONDS, length=LENGTHS, delay=st.integers(0, 50), t=SECONDS, horizon=HORIZONS)
def test_delaying_the_rest_of_a_job_never_earns(
    begin: int, length: int, delay: int, t: int, horizon: int | None
) -> None:
    middle, end = begin + length // 2, begin + length
    in_one = worth(begin, end, t, horizon=horizon)
    paused = worth(begin, middle, t, horizon=horizon) + worth(
        middle + delay, end + delay, t, horizon=horizon
    )
    assert paused <= in_one


@given(begin=SECONDS, length=ENDS, more=LENGTHS, t=SECONDS, horizon=HORIZONS)
def test_running_longer_never_costs_utility_and_time_never_takes_any(
    begin: int, length: int | None, more: int, t: int, horizon: int | None
) -> None:
    end = None if length is None else begin + length
    longer = None if end is None else end + more
    now = worth(begin, end, t, horizon=horizon)
    assert worth(begin, longer, t, horizon=horizon) >= now
    assert worth(begin, end, t + 1, horizon=horizon) >= now


def records_of_pieces(cuts: list[int]) -> list[JobRecord]:
    return [
        job_record(number, start=start, end=end)
        for number, (start, end) in enumerate(pairwise(cuts), start=1)
    ]


@given(
    cuts=st.lists(st.integers(0, 60), min_size=2).map(sorted),
    width=st.integers(1, 4),
    later=st.integers(0, 60),
    horizon=HORIZONS,
)
def test_no_way_to_cut_a_job_in_time_and_width_changes_a_standing(
    cuts: list[int], width: int, later: int, horizon: int | None
) -> None:
    t = 60 + later
    in_one = [job_record(start=cuts[0], end=cuts[-1], processors={"n1": width})]
    in_pieces = width * records_of_pieces(cuts)
    assert utility(in_pieces, t, horizon) == utility(in_one, t, horizon)


# the horizon


@given(begin=SECONDS, length=LENGTHS, horizon=st.integers(1, 60), later=st.integers(0, 50))
def test_parts_older_than_the_horizon_are_worth_exactly_the_horizon(
    begin: int, length: int, horizon: int, later: int
) -> None:
    t = begin + length + horizon + later
    assert worth(begin, begin + length, t, horizon=horizon) == horizon * length


@given(begin=SECONDS, length=ENDS, t=SECONDS, beyond=st.integers(0, 10))
def test_a_horizon_that_no_part_reaches_is_the_papers_rule(
    begin: int, length: int | None, t: int, beyond: int
) -> None:
    end = None if length is None else begin + length
    horizon = max(t - begin, 0) + beyond
    assert worth(begin, end, t, horizon=horizon) == worth(begin, end, t)


@given(begin=SECONDS, length=LENGTHS, t=SECONDS)
def test_a_horizon_of_one_second_is_plain_work_done(begin: int, length: int, t: int) -> None:
    end = begin + length
    assert worth(begin, end, t, horizon=1) == len(parts_of(begin, end, t))


# SPAA 2013, Fig. 1: (start, processing time) on three processors

FIRST = [(0, 3), (0, 4), (0, 3), (3, 6), (3, 3), (4, 6), (6, 3), (9, 3), (10, 4)]
SECOND = [(9, 5)]
J6, J9 = 5, 8
EPOCH = 1_700_000_000


def utility(records: list[JobRecord], t: int, horizon: int | None = None) -> int:
    """ψ of the account's organization, the way accounting goes: record to ledger."""
    tenures = Tenures()
    tenures.observe("account", {"phys": "O(1)", "chem": "O(2)"}, 0)
    tenures.observe("node", {"n1": "O(1)"}, 0)
    allocations = [
        allocation
        for record in records
        if (run := run_of(record, {})) is not None
        for allocation in tenures.allocations(run)
    ]
    ledger = Ledger(horizon)
    ledger.add(allocations)
    if horizon is not None:
        ledger.fold(t - horizon, allocations)
    return ledger.standings(t, ["O(1)", "O(2)"])["O(1)"].utility


def utility_in_figure_1(jobs: list[tuple[int, int]], t: int, epoch: int) -> int:
    records = [
        job_record(number, start=epoch + start, end=epoch + start + p, account=account)
        for account, of_account in (("phys", jobs), ("chem", SECOND))
        for number, (start, p) in enumerate(of_account)
        if start < t
    ]
    running = [
        job_record(r.job_id, start=r.start, state="RUNNING", account=r.account)
        if r.end is not None and r.end > epoch + t
        else r
        for r in records
    ]
    return utility(running, epoch + t)


@pytest.mark.parametrize("epoch", [0, EPOCH])
@pytest.mark.parametrize(("t", "expected"), [(13, 262), (14, 297)])
def test_figure_1_of_the_paper(t: int, expected: int, epoch: int) -> None:
    assert utility_in_figure_1(FIRST, t, epoch) == expected


def test_figure_1_flow_time() -> None:
    assert sum(start + p for start, p in FIRST) == 70


@pytest.mark.parametrize("epoch", [0, EPOCH])
@pytest.mark.parametrize(
    ("job", "changed", "difference"),
    [(J9, [(9, 4)], +4), (J6, [(5, 6)], -6), (J9, [], -10)],
    ids=["J9 a second sooner", "J6 a second later", "without J9"],
)
def test_figure_1_of_the_paper_with_one_job_changed(
    job: int, changed: list[tuple[int, int]], difference: int, epoch: int
) -> None:
    jobs = [*FIRST[:job], *changed, *FIRST[job + 1 :]]
    assert utility_in_figure_1(jobs, 14, epoch) == 297 + difference
