"""In estimates coalitions keep to partitions as they do in a replay that respects them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shapleyprio.config import Organization
from shapleyprio.daemon.estimation.estimating import StoreEstimator
from shapleyprio.daemon.estimation.known_game import NOWHERE, known_capacity
from shapleyprio.daemon.estimation.messages import EstimateRequest, WorkResult
from shapleyprio.replay.coalitions.estimate import estimate
from shapleyprio.replay.coalitions.game import game_of
from shapleyprio.replay.workloads.nodes import kept_to_partitions
from shapleyprio.replay.workloads.organizations import consortium_of
from shapleyprio.replay.workloads.workload import Window, workload_of
from shapleyprio.store import CapacityRow
from tests.daemon.consortium import NAME
from tests.daemon.drift.conftest import run
from tests.examples import examples
from tests.replay.test_workload import log_of
from tests.store.examples import BEGIN, watermark

if TYPE_CHECKING:
    from shapleyprio.fairness.runs import Run
    from tests.store.servers import Databases

NAMES = ("biology", "physics")
NODES = {"biology": ("n2",), "physics": ("n1", "n3")}
END = 120
FIRST = [
    (0, "physics", "a", 5, 2, "n1"),
    (0, "physics", "a", 5, 1, "n3"),
    (6, "biology", "b", 5, 1, "n2"),
    (6, "biology", "b", 5, 1, "n3"),
]
"""From these the log shows which nodes the partitions have: release, account, partition, seconds,
processors, nodes."""
CAPACITIES: dict[str, dict[tuple[str, ...], int]] = {
    "biology": {("b",): 1},
    "physics": {("a",): 2, ("a", "b"): 1},
}

JOBS = st.lists(
    st.tuples(
        st.integers(12, 90),
        st.sampled_from(NAMES),
        st.sampled_from(["a", "b", None]),
        st.integers(1, 50),
        st.integers(1, 4),
        st.none(),
    ),
    max_size=12,
)


def in_partition(found: Run, partition: str | None) -> Run:
    return replace(found, partition=partition or "")


@settings(max_examples=examples(40), deadline=None)
@given(jobs=JOBS)
@example(  # the last one is wider than its partition, and would be released while others wait
    jobs=[
        (12, "biology", "a", 1, 1, None),
        (12, "biology", "a", 1, 1, None),
        (12, "physics", "a", 1, 1, None),
        (12, "physics", "a", 15, 1, None),
        (12, "physics", "a", 1, 3, None),
        (14, "biology", None, 14, 1, None),
        (26, "biology", "a", 1, 4, None),
    ]
)
def test_contributions_are_those_of_a_replay_that_respects_partitions(
    databases: Databases, jobs: list[tuple[int, str, str | None, int, int, None]]
) -> None:
    rows = [*FIRST, *sorted(jobs, key=lambda job: job[0])]
    release, account, partition, seconds, processors, nodes = zip(*rows, strict=True)
    log = log_of(
        release,
        processing_time=seconds,
        processors=processors,
        account=account,
        partition=partition,
        nodes=nodes,
    )
    members = consortium_of(
        log, [Organization(name=name, accounts=(name,), nodes=NODES[name]) for name in NAMES]
    )
    window = Window(start=0, length=END + 1)
    whole = workload_of(log, members, window=window, wide="rigid", backfill="easy")
    workload = kept_to_partitions(log, members, whole)
    assert workload.bays is not None
    expected = estimate(game_of(workload, until=END), budget=500)
    with databases.store("sqlite") as store:
        with store.cluster(NAME).transaction() as kept:
            kept.ledger.save_watermark(
                watermark(
                    opened=BEGIN,
                    pruned_until=BEGIN,
                    observed_until=BEGIN + END,
                    accounted_to=BEGIN + END,
                )
            )
            for number, job in enumerate(rows, 1):
                found, places = run(
                    number, job[1], job[0], job[0] + job[3], submit=job[0], processors=job[4]
                )
                kept.runs.put([(in_partition(found, job[2]), places)])
            kept.observed.observe_capacities(CAPACITIES, BEGIN)
        answer = StoreEstimator(store.cluster(NAME)).answer(
            EstimateRequest(organizations=NAMES, waiting=(), overlap=3600, coalitions=500, seed=0)
        )
    assert answer.result is WorkResult.OK, answer.why
    assert [row.value * expected.denominator for row in answer.rows] == [
        value * row.denominator
        for (value, _, _), row in zip(expected.numerators, answer.rows, strict=True)
    ]


def test_where_all_nodes_are_in_the_same_partitions_nothing_is_confined() -> None:
    rows = [row("physics", 0, {("all", "debug"): 4}), row("biology", 0, {("all", "debug"): 2})]
    capacity = known_capacity(rows, NAMES, 0, 9)
    assert capacity.bays_for(capacity.places_of(["all", "debug", ""])) is None
    assert capacity.owned.sum(axis=1).tolist() == [[2, 4]]


def test_a_partition_without_processors_of_theirs_is_nowhere() -> None:
    capacity = known_capacity([row("physics", 0, {("a",): 4})], NAMES, 0, 9)
    places = capacity.places_of(["a", "b", ""])
    assert places.tolist() == [1, NOWHERE, 0]
    assert capacity.most_in(places).tolist() == [4, 0, 4]


def test_a_job_may_be_as_wide_as_its_partition_ever_was() -> None:
    rows = [row("physics", 0, {("a",): 4, ("a", "b"): 1}), row("physics", 5, {("b",): 3})]
    capacity = known_capacity(rows, NAMES, 0, 9)
    assert capacity.most_in(capacity.places_of(["a", "b", ""])).tolist() == [5, 3, 5]


def test_bays_change_when_nodes_come_go_or_change_partitions() -> None:
    rows = [
        row("physics", 0, {("a",): 4, ("gone",): 1}),
        row("physics", 5, {("a",): 3, ("a", "b"): 1}),
        row("biology", 7, {("b",): 2}),
        row("guest", 7, {("c",): 2}),
        row("physics", 20, {}),
    ]
    capacity = known_capacity(rows, NAMES, 6, 9)
    assert capacity.bays == (("a",), ("b",), ("a", "b"))
    assert capacity.since.tolist() == [6, 7]
    assert capacity.owned.tolist() == [[[0, 3], [0, 0], [0, 1]], [[0, 3], [2, 0], [0, 1]]]
    bays = capacity.bays_for(np.array([1, 2], dtype=np.int64))
    assert bays is not None
    assert bays.reach.tolist() == [[True] * 3, [True, False, True], [False, True, True]]


def row(organization: str, since: int, processors: dict[tuple[str, ...], int]) -> CapacityRow:
    return CapacityRow(organization=organization, since=since, processors=processors)
