"""The brokers do what section 5 of CloudShare says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.common.errors import ReplayError
from shapleyprio.common.wording import HOUR
from shapleyprio.lab.papers.cloudshare.brokers import ALGORITHMS, Ints, Queues, total_waits
from shapleyprio.replay import Window, Workload, run_policy
from tests.examples import examples
from tests.lab.papers.brokers_literal import LiteralBrokers

Job = tuple[int, int, int]
"""Organization, release, units."""

K = 3
EVERYBODY = 2**K - 1
RELEASES = st.integers(0, 3 * HOUR) | st.integers(0, 6).map(lambda half: half * HOUR // 2)
JOBS = st.lists(st.tuples(st.integers(0, K - 1), RELEASES, st.integers(1, 4)), max_size=12)
OWNED = st.lists(st.integers(1, 3), min_size=K, max_size=K)


def queues(jobs: Sequence[Job], organizations: int = K) -> Queues:
    ordered = sorted(jobs, key=lambda job: job[:2])
    whose = [u for u, _, _ in ordered]
    return Queues(
        first=np.searchsorted(whose, np.arange(organizations + 1)).astype(np.int64),
        release=np.array([release for _, release, _ in ordered], dtype=np.int64),
        units=np.array([units for _, _, units in ordered], dtype=np.int64),
    )


NOTHING = queues([])


def processors(*owned: int) -> Ints:
    return np.array(owned, dtype=np.int64)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=examples(40), deadline=None)
@given(
    owned=OWNED,
    federated=JOBS,
    background=JOBS,
    coalition=st.integers(1, EVERYBODY),
    seed=st.integers(0, 99),
)
def test_units_wait_as_under_the_paper_s_formulas(
    algorithm: str,
    owned: list[int],
    federated: list[Job],
    background: list[Job],
    coalition: int,
    seed: int,
) -> None:
    here = queues(federated), queues(background)
    started = LiteralBrokers(algorithm, coalition, owned, *here, seed=seed).run()
    waits = [0] * K
    for unit in started:
        waits[unit.organization] += unit.start - unit.release
    assert total_waits(algorithm, coalition, processors(*owned), *here, seed=seed) == tuple(waits)


@settings(max_examples=examples(60), deadline=None)
@given(owned=OWNED, federated=JOBS, background=JOBS, coalition=st.integers(1, EVERYBODY))
def test_every_algorithm_has_the_same_total_wait_in_every_coalition(
    owned: list[int], federated: list[Job], background: list[Job], coalition: int
) -> None:
    here = processors(*owned), queues(federated), queues(background)
    assert len({sum(total_waits(name, coalition, *here)) for name in ALGORITHMS}) == 1


def workload(owned: Sequence[int], jobs: Sequence[Job]) -> Workload:
    """The same for the replay: every job is copies of one hour."""
    ordered = sorted(jobs, key=lambda job: job[:2])
    count = len(ordered)
    unknown = np.full(count, -1, dtype=np.int64)
    return Workload(
        organizations=tuple(f"o{u}" for u in range(len(owned))),
        owned=processors(*owned),
        window=Window(start=0, length=HOUR * (sum(units for _, _, units in jobs) + 10)),
        job=np.arange(count, dtype=np.int64),
        organization=np.array([u for u, _, _ in ordered], dtype=np.int32),
        release=np.array([release for _, release, _ in ordered], dtype=np.int64),
        processing_time=np.full(count, HOUR, dtype=np.int64),
        processors=np.array([units for _, _, units in ordered], dtype=np.int64),
        limit=unknown,
        start=unknown,
        position=np.arange(count, dtype=np.int64),
        wide="expand",
    )


def replayed(policy: str, owned: Sequence[int], jobs: Sequence[Job]) -> tuple[int, ...]:
    """Total waits of the organizations in the replay's schedule."""
    work = workload(owned, jobs)
    schedule = run_policy(work, policy)
    waits = [0] * len(owned)
    for job, start, copies in zip(
        schedule.job.tolist(), schedule.start.tolist(), schedule.copies.tolist(), strict=True
    ):
        waits[work.organization[job]] += (start - int(work.release[job])) * copies
    return tuple(waits)


@settings(max_examples=examples(40), deadline=None)
@given(owned=OWNED, jobs=JOBS.filter(len))
def test_fair_share_serves_as_in_the_replay(owned: list[int], jobs: list[Job]) -> None:
    waits = total_waits("fairshare", EVERYBODY, processors(*owned), queues(jobs), NOTHING)
    assert waits == replayed("fairshare", owned, jobs)


@pytest.mark.parametrize("algorithm", ["orig-direct", "simpl-direct"])
@settings(max_examples=examples(40), deadline=None)
@given(owned=OWNED, jobs=JOBS.filter(len))
def test_where_all_processors_are_needed_directcontr_serves_as_in_the_replay(
    algorithm: str, owned: list[int], jobs: list[Job]
) -> None:
    # then it does not matter whose free processor a unit gets
    flood = [(u, 0, 10) for u in range(K)] + jobs
    waits = total_waits(algorithm, EVERYBODY, processors(*owned), queues(flood), NOTHING)
    assert waits == replayed(algorithm, owned, flood)


def test_who_lent_its_processors_is_served_before_who_used_them() -> None:
    # the first hour: organization 0 runs on both processors; then both want both
    jobs = queues([(0, 0, 2), (0, HOUR, 2), (1, HOUR, 2)], 2)
    waits = total_waits("simpl-direct", 0b11, processors(1, 1), jobs, queues([], 2))
    assert waits == (2 * HOUR, 0)


def test_directcontr_does_not_blame_who_used_its_own_processor() -> None:
    # Figs. 2 and 3: A has a job at 0, 2 and so on, B two jobs at 4; here hours
    jobs = queues([*((0, hour * HOUR, 1) for hour in range(5)), (1, 2 * HOUR, 2)], 2)
    here = processors(1, 1), jobs, queues([], 2)
    assert total_waits("simpl-direct", 0b11, *here) == (0, HOUR)
    assert total_waits("fairshare", 0b11, *here) == (HOUR, 0)


def test_round_robin_serves_whoever_was_served_least_recently() -> None:
    # 0 and then 2 are served alone on the one processor that is free; a list would go on with 0
    jobs = queues([(0, 0, 1), (2, HOUR, 1), *((u, 2 * HOUR, 1) for u in range(K))])
    background = queues([(u, 0, 100) for u in (1, 2)])
    waits = total_waits("roundrobin", EVERYBODY, processors(1, 1, 1), jobs, background)
    assert waits == (HOUR, 0, 2 * HOUR)


def test_background_units_come_first_and_only_at_home() -> None:
    federated, background = queues([(0, 0, 2)], 2), queues([(0, 0, 2)], 2)
    waits = total_waits("fairshare", 0b11, processors(1, 1), federated, background)
    assert waits == (0 + HOUR, 0)
    assert total_waits("fairshare", 0b01, processors(1, 1), federated, background) == (
        2 * HOUR + 3 * HOUR,
        0,
    )


def test_background_units_wait_for_running_ones() -> None:
    federated, background = queues([(0, 0, 1), (0, 10, 1)], 1), queues([(0, 5, 1)], 1)
    waits = total_waits("fairshare", 1, processors(1), federated, background)
    assert waits == (2 * HOUR - 10,)


def test_others_than_members_neither_lend_nor_ask() -> None:
    jobs = queues([(0, 0, 2), (1, 0, 5)], 2)
    assert total_waits("fairshare", 0b01, processors(1, 9), jobs, queues([], 2)) == (HOUR, 0)


def test_what_might_wrap_is_refused() -> None:
    jobs = queues([(0, 0, 10**8)], 1)
    with pytest.raises(ReplayError, match="take more processors"):
        total_waits("fairshare", 1, processors(1), jobs, queues([], 1))
