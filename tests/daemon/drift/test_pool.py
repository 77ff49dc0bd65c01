"""The drift of a pool over several clusters: one game, against the merged logs of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.config import Organization
from shapleyprio.daemon.drift.comparison import answer_of, replay_window
from shapleyprio.daemon.drift.figures import unfairness_of
from shapleyprio.daemon.drift.messages import DriftAnswer, DriftRequest, DriftResult
from shapleyprio.fairness.pool import Stay
from shapleyprio.replay.logs.clusters import pooled_consortium
from shapleyprio.replay.logs.stored import read_stored
from shapleyprio.replay.logs.window import known_span
from shapleyprio.replay.workloads.nodes import kept_to_clusters
from shapleyprio.replay.workloads.organizations import consortium_of
from shapleyprio.replay.workloads.workload import Window, workload_of
from tests.daemon.drift.conftest import END, FLOOD, remember, run
from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from shapleyprio.store import AllocatedRun, Store

NAMES = ("biology", "physics")
STAY = Stay(
    pool="all",
    since=BEGIN,
    clusters=("c1", "c2"),
    stale_after=60,
    consortium="Northern universities",
)
BACK = (
    run(1, "physics", 0, 100, owner="physics"),
    run(2, "physics", 0, 100),
    run(3, "physics", 100, 180, owner="physics"),
    run(4, "biology", 110, 200, submit=20),
    run(5, "biology", 180, 250, submit=30, owner="physics"),
)
"""Physics fills the other cluster first, then biology gets its own back and lends it no more."""


def answer(url: str, cluster: str = "c1") -> DriftAnswer:
    return replay_window(
        DriftRequest(
            url=url,
            cluster=cluster,
            organizations=NAMES,
            window=300,
            most_organizations=12,
            memory_limit=2**32,
        )
    )


def in_merged_logs(url: str, *clusters: str) -> DriftAnswer:
    """The same from what `replay` and `audit` read of both clusters."""
    log = read_stored(url, clusters=clusters)
    members = [Organization(name=name) for name in NAMES]
    pool = pooled_consortium([consortium_of(one, members) for one in log.clusters])
    workload = workload_of(log, pool, window=Window(start=BEGIN, length=300))
    return answer_of(kept_to_clusters(log, pool, workload), "ref")


def both(store: Store, *back: AllocatedRun, **of_other: int | str | Stay | None) -> None:
    remember(store, *FLOOD, stay=STAY)
    remember(store, *back, cluster="c2", **{"stay": STAY, **of_other})  # type: ignore[arg-type]


def test_a_pool_is_one_game(store: Store, url: str) -> None:
    both(store, *BACK)
    found = answer(url)
    assert found == in_merged_logs(url, "c1", "c2")
    assert found == answer(url, "c2")
    recorded = {row.organization: row.utility for row in found.rows if row.schedule == "recorded"}
    worth = {
        name: sum(_worth(one) for one in (*FLOOD, *BACK) if one[0].account == name)
        for name in NAMES
    }
    assert recorded == worth
    assert {row.parts for row in found.rows} == {500 + 100 + 100 + 80 + 90 + 70}
    alone = _without_a_pool(store, url)
    assert unfairness_of(alone.rows)["recorded"] == 40
    assert unfairness_of(found.rows)["recorded"] < 40  # who was flooded here flooded there


def _worth(placed: AllocatedRun) -> int:
    """SPAA 2013, Eq. 3, for one processor."""
    begun, ended = placed[0].begin, placed[0].end
    assert ended is not None
    return sum(END - second for second in range(begun, ended))


def _without_a_pool(store: Store, url: str) -> DriftAnswer:
    with store.cluster("c1").transaction() as rows:
        rows.pools.end_stay()
    return answer(url)


def test_a_cluster_where_nobody_of_the_consortium_works_stops_nothing(
    store: Store, url: str
) -> None:
    both(store, run(1, "guest", 0, 100))
    assert answer(url).result is DriftResult.OK


@pytest.mark.parametrize(
    "of_other",
    [
        {"until": 100},  # stale: its accounts end too early
        {"stay": replace(STAY, pool="another")},
        {"stay": None},
        {"weight": "gres/gpu"},
        {"stay": replace(STAY, since=BEGIN + 300)},  # it has just come
    ],
)
def test_what_is_no_part_of_the_game_is_left_out(
    store: Store, url: str, of_other: dict[str, int | str | Stay | None]
) -> None:
    both(store, *BACK, **of_other)
    known = known_span(store, "c1")
    assert (known.ledgers, known.without, known.pool) == (("c1",), ("c2",), "all")
    assert unfairness_of(answer(url).rows)["recorded"] == 40


def test_the_window_is_what_is_known_of_all(store: Store) -> None:
    both(store, *BACK, until=270, stay=replace(STAY, since=BEGIN + 50))
    known = known_span(store, "c1")
    assert (known.ledgers, known.begin - BEGIN, known.end - BEGIN) == (("c1", "c2"), 50, 270)
    assert known_span(store, "c1", until=BEGIN + 200).end == BEGIN + 200
