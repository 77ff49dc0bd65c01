"""What a replay of a window says, against figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

import pytest
from prometheus_client import generate_latest

from shapleyprio.daemon.drift.comparison import answer_of, replay_window
from shapleyprio.daemon.drift.figures import alone_gains_of, drifts_of, unfairness_of
from shapleyprio.daemon.drift.messages import DriftAnswer, DriftRequest, DriftResult
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.replay.logs.window import read_past
from tests.daemon.consortium import NAME
from tests.daemon.drift.conftest import END, FLOOD, PROCESSORS, remember, run
from tests.store.examples import BEGIN, standing

if TYPE_CHECKING:
    from shapleyprio.store import Store

WORTH = {0: 25_050, 10: 24_050, 100: 15_050, 200: 5_050}
"""Start -> p·t − p(2s + p − 1)/2 with p = 100 and t = 300 (SPAA 2013, Eq. 3)."""


@pytest.fixture
def request_(url: str) -> DriftRequest:
    return DriftRequest(
        url=url,
        cluster=NAME,
        organizations=("biology", "physics"),
        window=300,
        most_organizations=12,
        memory_limit=2**32,
    )


def test_who_flooded_the_others_processors_came_too_early(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    answer = replay_window(request_)
    assert answer.result is DriftResult.OK
    drifts = drifts_of(answer.rows)
    assert drifts["biology", "recorded"] == Fraction(WORTH[100] - WORTH[200], 500) == 20
    assert drifts["physics", "recorded"] == -20
    assert unfairness_of(answer.rows)["recorded"] == 40
    assert {(row.begin, row.t, row.reference, row.parts) for row in answer.rows} == {
        (BEGIN, END, "ref", 500)
    }


def test_a_parents_union_counts_in_what_is_fair(
    store: Store, request_: DriftRequest, url: str
) -> None:
    names, parents = ("biology", "physics", "chemistry"), {"chemistry": "physics"}
    remember(store, *FLOOD, run(9, "chemistry", 20, 90, owner="biology"))
    request_ = replace(request_, organizations=names, parents=parents)
    past = read_past(url, NAME, request_.window)
    workload = past.workload(past.consortium(names, parents))
    assert workload.unions == (0, 1, 1)
    assert replay_window(DriftRequest.from_json(request_.as_json())) == answer_of(workload, "ref")


def test_directcontr_and_fair_share_are_held_against_ref_too(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    drifts = drifts_of(replay_window(request_).rows)
    # both give physics the first processor that comes free, as ref does
    for schedule in ("directcontr", "fairshare"):
        assert drifts["biology", schedule] == drifts["physics", schedule] == 0


def test_decisions_are_judged_from_where_the_schedule_is(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    answer = replay_window(request_)
    # the processors that come free at 100 went to biology, where everybody else gives physics one
    assert answer.turns == {"recorded": (1, 1), "directcontr": (1, 0), "fairshare": (1, 0)}
    assert DriftAnswer.from_json(answer.as_json()) == answer
    metrics = Metrics(NAME)
    metrics.publish_drifts(answer.rows, answer.turns, 1.0)
    output = generate_latest(metrics.registry).decode()
    labels = f'{{cluster="{NAME}",schedule="recorded"}}'
    assert f"shapleyprio_contested_moments{labels} 1.0" in output
    assert f"shapleyprio_out_of_turn_moments{labels} 1.0" in output


def test_alone_is_what_an_organization_has_with_its_own_jobs_on_its_own_processors(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    rows = replay_window(request_).rows
    assert {row.organization: row.utility for row in rows if row.schedule == "alone"} == {
        "biology": WORTH[0] + WORTH[100] + WORTH[200],
        "physics": WORTH[10],
    }
    assert alone_gains_of(rows) == {
        "biology": Fraction(WORTH[0] + WORTH[100] + WORTH[200], 2 * (WORTH[0] + WORTH[100])) - 1,
        "physics": Fraction(WORTH[10], WORTH[200]) - 1,
    }


def test_of_who_has_nothing_either_way_no_ratio_is_reported(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD[:4])
    rows = replay_window(request_).rows
    assert alone_gains_of(rows).keys() == {"biology"}


def test_who_got_nothing_but_would_have_alone_is_infinitely_worse_off(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    rows = [
        replace(row, utility=0)
        if (row.organization, row.schedule) == ("physics", "recorded")
        else row
        for row in replay_window(request_).rows
    ]
    assert alone_gains_of(rows)["physics"] == inf
    metrics = Metrics(NAME)
    metrics.publish_drifts(rows, {}, 1.0)
    output = generate_latest(metrics.registry).decode()
    assert f'alone_gain_ratio{{cluster="{NAME}",organization="physics"}} +Inf' in output


def test_with_many_organizations_coalitions_are_sampled(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    few = replace(request_, most_organizations=1)
    rows = replay_window(few).rows
    assert {row.reference for row in rows} == {"rand"}
    assert {row.schedule for row in rows} == {"recorded", "directcontr", "fairshare", "alone"}
    # all orderings of two organizations are drawn, so that here rand is ref
    assert unfairness_of(rows)["recorded"] == 40


def test_organizations_that_the_past_does_not_know_count_with_nothing(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    more = replace(request_, organizations=("chemistry", "biology", "physics"))
    drifts = drifts_of(replay_window(more).rows)
    assert drifts["chemistry", "recorded"] == 0
    assert drifts["physics", "recorded"] == -20


def test_who_left_after_the_window_counts_in_it_as_before(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    before = drifts_of(replay_window(request_).rows)
    with store.cluster(NAME).transaction() as rows:
        seen = [standing(1, name, BEGIN + 10) for name in PROCESSORS]
        heir = replace(standing(2, "physics", END + 10), processors=2)
        rows.history.save_standings([*(replace(row, processors=1) for row in seen), heir])
    left = replace(request_, organizations=("physics",))
    assert drifts_of(replay_window(left).rows) == before
    assert {row.reference for row in replay_window(replace(left, most_organizations=1)).rows} == {
        "rand"
    }


def test_a_window_without_jobs_is_no_failure(store: Store, request_: DriftRequest) -> None:
    remember(store)
    answer = replay_window(request_)
    assert (answer.result, answer.rows) == (DriftResult.NO_JOBS, ())
    assert answer.why == "no job was executed in the window"


def test_a_window_with_guests_only_has_no_jobs(store: Store, request_: DriftRequest) -> None:
    remember(store, run(1, NOBODY, 10, 20))
    answer = replay_window(request_)
    assert answer.result is DriftResult.NO_JOBS
    assert answer.why == "no job of an organization was executed in the window"


def test_where_nobody_brings_processors_nothing_can_be_fair(
    store: Store, request_: DriftRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(PROCESSORS):
        monkeypatch.setitem(PROCESSORS, name, 0)
    remember(store, run(1, "physics", 10, 20, owner=NOBODY))
    answer = replay_window(request_)
    assert answer.result is DriftResult.FAILED
    assert answer.why == "no organization brings processors; see `shapleyprio check`"


def test_so_many_organizations_that_not_even_rand_can_are_too_large(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, *FLOOD)
    many = ("physics", "biology", *(f"o{number}" for number in range(68)))
    answer = replay_window(replace(request_, organizations=many))
    assert answer.result is DriftResult.TOO_LARGE
    assert answer.why.startswith("70 organizations; rand takes 62 at most; put some of them toget")


def test_ref_takes_only_so_many(store: Store, request_: DriftRequest) -> None:
    remember(store, *FLOOD)
    many = ("physics", "biology", *(f"o{number}" for number in range(28)))
    answer = replay_window(replace(request_, organizations=many, most_organizations=40))
    assert answer.result is DriftResult.TOO_LARGE
    assert answer.why.endswith("k = 30 is more than 20; lower drift.most_organizations")


def test_numbers_beyond_64_bits_are_as_exact_as_others(
    store: Store, request_: DriftRequest
) -> None:
    remember(store, run(1, "physics", 10, 2**31 - 10, submit=10), until=2**31)
    answer = replay_window(replace(request_, window=2**31))
    assert answer.result is DriftResult.OK
    (row,) = (
        row for row in answer.rows if (row.organization, row.schedule) == ("physics", "recorded")
    )
    p, t = 2**31 - 20, 2**31
    assert row.utility == row.fair == p * t - p * (2 * 10 + p - 1) // 2


def test_messages_arrive_as_they_were_sent(store: Store, request_: DriftRequest) -> None:
    remember(store, *FLOOD)
    assert DriftRequest.from_json(request_.as_json()) == request_
    answer = replay_window(request_)
    huge = replace(answer, rows=(replace(answer.rows[0], utility=10**30), *answer.rows[1:]))
    assert DriftAnswer.from_json(huge.as_json()) == huge
