"""The consortium's schedule by Shapley values, exactly and with what is known at the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.shapley import shapley
from shapleyprio.fairness.worth import worth
from shapleyprio.replay.coalitions.estimate import estimate
from shapleyprio.replay.coalitions.game import Game, Ints, game_of
from shapleyprio.replay.coalitions.knowledge import Knowledge, Limit, Predictor
from shapleyprio.replay.engine.beginning import coalitions_of, jobs_of, record_of
from shapleyprio.replay.engine.keys import Block, keys_of
from shapleyprio.replay.engine.state import World
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.policies import Estimation, run_policy
from shapleyprio.replay.policies.shapley import run
from shapleyprio.replay.workloads.workload import UserHistory, Workload
from tests.replay.coalitions.games import literal_decided_values
from tests.replay.strategies import Job, workload_of_jobs, workloads

Starts = Counter[tuple[int, int]]
"""(job, second) -> copies."""


def starts_of(
    workload: Workload, *, recompute: int = 1, predictor: Predictor | None = None
) -> Starts:
    k = len(workload.organizations)
    jobs = jobs_of(workload)
    world = World(
        jobs,
        coalitions_of(
            jobs,
            workload.owned,
            np.ones((1, k), dtype=np.bool_),
            wide=False,
            horizon=workload.saturation,
        ),
        keys_of(rows=k, coalitions=1, block=Block(recompute, wide=False), lattice=False),
        record_of(workload, jobs, 0, seed=0, wide=False),
    )
    knowledge = Knowledge(workload, predictor)
    for _ in run(
        world,
        contributions=lambda record, t: estimate(knowledge.game(record, t), budget=100),
        length=workload.window.length,
    ):
        pass
    size = int(world.record.size[0])
    found: Starts = Counter()
    for job, start, copies in zip(
        world.record.job[:size].tolist(),
        world.record.start[:size].tolist(),
        world.record.copies[:size].tolist(),
        strict=True,
    ):
        found[job, start] += copies
    return found


def literal_starts(workload: Workload, *, recompute: int = 1) -> Starts:
    """By φ − ψ at every moment, with φ from literal accounts of all coalitions.

    An account is made when organizations compete, and its polynomials hold so many seconds.
    """
    k, free = len(workload.organizations), int(workload.owned.sum())
    left = workload.processors.tolist()
    running: list[tuple[int, int]] = []
    starts: Starts = Counter()

    def first_waiting(u: int, t: int) -> int | None:
        return next(
            (
                job
                for job in range(len(left))
                if workload.organization[job] == u and workload.release[job] <= t and left[job]
            ),
            None,
        )

    def utility(u: int, t: int) -> int:
        return sum(
            copies
            * worth(start, start + int(workload.processing_time[job]), t, horizon=workload.horizon)
            for (job, start), copies in starts.items()
            if workload.organization[job] == u
        )

    def competing(t: int, waiting: list[int]) -> bool:
        wanted = sum(count for job, count in enumerate(left) if workload.release[job] <= t)
        return len(waiting) > 1 and wanted > free

    computed, contributions = -recompute, list[Path]()
    for t in range(workload.window.length):
        free += sum(copies for end, copies in running if end == t)
        while free and (waiting := [u for u in range(k) if first_waiting(u, t) is not None]):
            if t >= computed + recompute and competing(t, waiting):
                computed, contributions = t, literal_contributions(game_of(workload, until=t))
            u = waiting[0]
            if competing(t, waiting):
                u = max(waiting, key=lambda u: at(contributions[u], t - computed) - utility(u, t))
            job = first_waiting(u, t)
            assert job is not None
            starts[job, t] += 1
            left[job] -= 1
            free -= 1
            running.append((t + int(workload.processing_time[job]), 1))
    return starts


Path = tuple[Fraction, ...]
"""Value, rate and acceleration."""


def literal_contributions(game: Game) -> list[Path]:
    values = literal_decided_values(game)
    return list(zip(*(shapley(column) for column in zip(*values, strict=True)), strict=True))


def at(path: Path, seconds: int) -> Fraction:
    value, rate, acceleration = path
    return value + seconds * rate + Fraction(seconds * (seconds + 1), 2) * acceleration


@given(
    workloads(
        organizations=st.integers(1, 3),
        lengths=st.integers(1, 14),
        jobs=8,
        horizons=st.none() | st.integers(1, 8),
    )
)
def test_with_true_durations_every_decision_is_by_exact_shapley_values(
    workload: Workload,
) -> None:
    assert starts_of(workload) == literal_starts(workload)


@given(
    workloads(organizations=st.integers(1, 3), lengths=st.integers(1, 14), jobs=8),
    st.integers(2, 9),
)
def test_between_computations_contributions_follow_their_polynomials(
    workload: Workload, recompute: int
) -> None:
    found = starts_of(workload, recompute=recompute)
    assert found == literal_starts(workload, recompute=recompute)


class Recorder:
    """Predicts an hour, and writes down what it learned and was asked."""

    def __init__(self) -> None:
        self.learned: list[tuple[int, ...]] = []
        self.asked: list[list[tuple[int, ...]]] = []

    def learn(self, user: int, limit: int, processors: int, processing_time: int) -> None:
        self.learned.append((user, limit, processors, processing_time))

    def predict(self, user: Ints, limit: Ints, processors: Ints, elapsed: Ints) -> Ints:
        columns = (user, limit, processors, elapsed)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self.asked.append(list(rows))
        return np.full(len(user), 3600)


@pytest.fixture
def workload() -> Workload:
    """One processor each; user 7 of the first and user 9 of the second organization."""
    jobs = [Job(0, 0, 4, limit=9), Job(1, 0, 2), Job(0, 1, 3), Job(1, 1, 5), Job(0, 50, 1)]
    drawn = workload_of_jobs([1, 1], jobs, length=60)
    user = np.where(drawn.organization == 0, 7, 9).astype(np.int64)
    history = UserHistory(
        user=user,
        past_user=np.array([9, 7]),
        past_limit=np.array([-1, 300]),
        past_processors=np.array([4, 5]),
        past_processing_time=np.array([100, 200]),
    )
    return replace(drawn, history=history)


def test_an_observer_learns_of_ends_and_predicts_what_has_not_ended(workload: Workload) -> None:
    recorder = Recorder()
    jobs = jobs_of(workload)
    record = record_of(workload, jobs, 0, seed=0, wide=False)
    knowledge = Knowledge(workload, recorder)
    assert recorder.learned == [(9, -1, 4, 100), (7, 300, 5, 200)]

    def starts(*entries: tuple[int, int]) -> Iterator[int]:
        for job, start in entries:
            place = int(record.size[0])
            record.job[place], record.start[place], record.copies[place] = job, start, 1
            record.size[0] = place + 1
            yield place

    first, second, later, other, _ = (
        int(np.flatnonzero(workload.job == 100 + number)[0]) for number in range(5)
    )
    list(starts((first, 0), (second, 0)))
    game = knowledge.game(record, 1)
    assert game.release.tolist() == [0, 0, 1, 1]
    assert recorder.asked.pop() == [(7, 9, 1, 1), (9, -1, 1, 1), (7, -1, 1, 0), (9, -1, 1, 0)]
    assert game.processing_time.tolist() == [3600] * 4
    assert game.certain is not None
    assert game.certain.tolist() == [1, 1, 0, 0]

    list(starts((other, 2), (later, 4)))
    game = knowledge.game(record, 6)
    assert recorder.learned[2:] == [(9, -1, 1, 2), (7, 9, 1, 4)]
    assert recorder.asked.pop() == [(7, -1, 1, 2), (9, -1, 1, 4)]
    assert sorted(game.processing_time.tolist()) == [2, 4, 3600, 3600]
    assert game.certain is not None
    assert sorted(game.certain.tolist()) == [2, 2, 4, 4]
    assert (game.until, game.owned.tolist()) == (6, [[1, 1]])


@given(workloads(organizations=st.integers(2, 3)), st.integers(1, 5))
def test_with_limits_that_are_true_it_decides_as_if_it_knew_all(
    workload: Workload, recompute: int
) -> None:
    truthful = replace(workload, limit=workload.processing_time)
    by_limits = starts_of(truthful, recompute=recompute, predictor=Limit())
    assert by_limits == starts_of(workload, recompute=recompute)


@pytest.fixture
def rigid() -> Workload:
    """The first organization's second job needs all processors; the other's could pass it.

    The first one outlasts its limit, so that there is more time for that than the limit says.
    """
    jobs = [Job(0, 0, 10, 2, limit=3), Job(0, 1, 5, 3, limit=5), Job(1, 1, 5, limit=5)]
    return workload_of_jobs([3, 0], jobs, length=60, wide="rigid", backfill="easy")


@pytest.mark.parametrize("policy", ["ref", "rand", "directcontr", "fcfs", "shapley", "live"])
def test_backfilling_does_not_foresee_which_jobs_outlast_their_limits(
    rigid: Workload, policy: str
) -> None:
    schedule = run_policy(rigid, policy)
    assert schedule.start[schedule.job == 2].tolist() == [15]


def test_before_anything_has_ended_only_limits_are_known(rigid: Workload) -> None:
    by_limits = run_policy(rigid, "live", estimation=Estimation(predictor="limit"))
    assert run_policy(rigid, "live").start.tolist() == by_limits.start.tolist()


@pytest.mark.parametrize("policy", ["directcontr", "fairshare", "shapley", "live"])
def test_a_hundred_organizations_share_as_twenty_do_in_whose_place_they_stand(policy: str) -> None:
    """The others have neither processors nor jobs, and so no part in it."""
    random = np.random.default_rng(4)
    jobs = [
        Job(int(random.integers(0, 20)), int(random.integers(0, 60)), int(random.integers(1, 20)))
        for _ in range(60)
    ]
    owned = [1 + u % 2 for u in range(20)]
    few = workload_of_jobs(owned, jobs, length=100)
    apart = [replace(job, organization=5 * job.organization + 4) for job in jobs]
    many = workload_of_jobs(
        [count if place == 4 else 0 for count in owned for place in range(5)], apart, length=100
    )
    assert len(many.organizations) == 100
    starts = [run_policy(workload, policy).start for workload in (few, many)]
    assert starts[0].sum() == pytest.approx(starts[1].sum(), rel=0.02)
    if policy in ("directcontr", "fairshare"):
        assert (starts[0] == starts[1]).all()


def test_rand_keeps_its_coalitions_in_62_bits() -> None:
    jobs = [Job(u, 0, 5) for u in range(63)]
    with pytest.raises(PolicyError, match="63 organizations; rand takes 62 at most"):
        run_policy(workload_of_jobs([1] * 63, jobs, length=10), "rand")
    run_policy(workload_of_jobs([1] * 62, jobs[:62], length=10), "rand")
