"""A user's own policy, a function in Python, schedules as the engine's do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.rule import OrganizationState, Ranking, Situation
from shapleyprio.fairness.rules import ByShapley, DirectContr
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.policies import RunOptions, policy_named, run_policy
from shapleyprio.replay.policies.own import OwnPolicy, own_decisions, rule_decisions
from shapleyprio.replay.workloads.choices import Backfill, Estimation
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay.strategies import HORIZONS, Job, workload_of_jobs, workloads

BACKFILLS: st.SearchStrategy[Backfill] = st.sampled_from(["none", "easy"])
RIGID = workloads(widths=st.integers(1, 4), wide="rigid", backfills=BACKFILLS)
SATURATING = workloads(horizons=HORIZONS)


def least_by_share(
    amount: Callable[[OrganizationState], int],
) -> OwnPolicy:
    """Serves whoever has least for its share; who brings no processor comes last."""

    def key(item: OrganizationState) -> tuple[bool, Fraction]:
        return item.processors == 0, Fraction(amount(item), item.processors or 1)

    return lambda state: sorted(state.waiting, key=key)


REMADE: dict[str, OwnPolicy] = {
    "directcontr": lambda state: sorted(
        state.waiting, key=lambda item: item.utility - item.contribution
    ),
    "fairshare": least_by_share(lambda item: item.parts),
    "utfairshare": least_by_share(lambda item: item.utility),
}
"""Policies of the engine -> the same as a user would write them."""


@pytest.mark.parametrize("policy", REMADE)
@given(workload=workloads() | RIGID | SATURATING, seed=st.integers(0, 2**64 - 1))
def test_a_policy_remade_in_python_makes_the_same_schedule(
    policy: str, workload: Workload, seed: int
) -> None:
    engine = run_policy(workload, policy, seed=seed)
    own = own_decisions(workload, "own", REMADE[policy], RunOptions(seed=seed))
    for column in ("job", "start", "owner", "copies"):
        np.testing.assert_array_equal(getattr(own, column), getattr(engine, column))
    assert own.contribution == engine.contribution


@given(workload=workloads() | RIGID | SATURATING, seed=st.integers(0, 2**64 - 1))
def test_the_daemons_own_directcontr_makes_the_schedule_of_the_policy(
    workload: Workload, seed: int
) -> None:
    engine = run_policy(workload, "directcontr", seed=seed)
    rule = run_policy(workload, "rule:directcontr", seed=seed)
    for column in ("job", "start", "owner", "copies"):
        np.testing.assert_array_equal(getattr(rule, column), getattr(engine, column))
    assert rule.contribution == engine.contribution


@settings(max_examples=examples(30))
@given(workload=workloads(organizations=st.just(2)) | RIGID, seed=st.integers(0, 99))
@example(
    workload=workload_of_jobs(
        [2, 0, 1],
        [*(Job(u, 1, 1) for u in (0, 0, 1)), Job(1, 0, 1), Job(0, 4, 1), Job(2, 4, 1, 3)],
        5,
        wide="rigid",
    ),
    seed=0,
)
def test_the_daemons_own_shapley_starts_what_live_starts_as_long_as_no_scores_tie(
    workload: Workload, seed: int
) -> None:
    ties: list[int] = []

    class Noting(ByShapley):
        def rank(self, situation: Situation) -> Ranking:
            ranking = super().rank(situation)
            assert ranking.rule == "shapley"  # from estimates
            scores = [ranking.scores[item.name] for item in situation.waiting]
            ties.append(len(scores) - len(set(scores)))
            return ranking

    # `live` is not asked where all can start, so an older estimate may be of another second
    fresh = Estimation(recompute=1)
    live = run_policy(workload, "live", seed=seed, estimation=fresh)
    rule = rule_decisions(
        workload, "rule:shapley", Noting(), RunOptions(seed=seed, estimation=fresh)
    )
    assume(not any(ties))  # scores are rounded down, the engine compares fractions
    # for the same reason the order within a second may be another
    starts = [
        sorted(zip(one.start.repeat(one.copies), one.job.repeat(one.copies), strict=True))
        for one in (live, rule)
    ]
    assert starts[0] == starts[1]


def test_a_rules_trajectories_hold_until_something_happens() -> None:
    """One processor each; both organizations' jobs run from 0, and wait behind them until 4."""
    seen: list[Situation] = []

    class Noting(DirectContr):
        def rank(self, situation: Situation) -> Ranking:
            seen.append(situation)
            return super().rank(situation)

    jobs = [Job(0, 0, 4), Job(1, 0, 6), *(Job(u, 1, 9) for u in (0, 1))]
    horizon = 3
    workload = workload_of_jobs([1, 1], jobs, 12, horizon=horizon)
    rule_decisions(workload, "rule:directcontr", Noting(), RunOptions())
    at = {situation.t: situation for situation in seen}
    for later in (0, 1, 2):
        expected = [
            sum(min(4 + later - s, horizon) for s in range(done)) for done in (4, 4 + later)
        ]
        assert [item.got.after(later) for item in at[4].organizations] == expected


def test_an_unknown_rule_is_refused_with_those_that_exist() -> None:
    with pytest.raises(PolicyError, match=r"unknown rule 'fifo'; take one of .*directcontr"):
        policy_named("rule:fifo")


def test_the_state_is_that_of_the_moment_of_the_choice() -> None:
    """Two processors: b's first job runs from 0 to 3 on one, a's from 1 on; at 3 two wait."""
    jobs = [Job(1, 0, 3), Job(0, 1, 9), Job(0, 2, 1), Job(1, 2, 1), Job(1, 3, 1)]
    seen: list[Situation] = []

    def remember(state: Situation) -> Iterable[OrganizationState]:
        seen.append(state)
        return state.waiting

    workload = workload_of_jobs([1, 1], jobs, 4)
    own_decisions(workload, "own", remember, RunOptions())
    (state,) = seen
    a, b = state.organizations
    assert (state.t, state.free, state.waiting) == (3, 1, (a, b))
    assert (a.parts, a.utility, a.running, a.waiting, a.release) == (2, 3, 1, 1, 2)
    assert (b.parts, b.utility, b.running, b.waiting, b.release) == (3, 6, 0, 2, 2)
    assert (a.processors, a.contribution + b.contribution) == (1, 9)


CONTENDED = workload_of_jobs([1, 0], [Job(0, 0, 2), Job(1, 0, 2)], 9)


@pytest.mark.parametrize(
    "order",
    [
        lambda state: state.waiting[:1],
        lambda state: [state.waiting[0], *state.waiting],
        lambda state: [item.name for item in state.waiting],
    ],
)
def test_what_is_no_order_is_refused(order: OwnPolicy) -> None:
    with pytest.raises(
        PolicyError, match=r"'mine:f' did not return an order of state\.waiting at second 0"
    ):
        own_decisions(CONTENDED, "mine:f", order, RunOptions())


def test_an_error_of_the_function_is_one_line() -> None:
    def broken(state: Situation) -> Iterable[OrganizationState]:
        raise ValueError(f"nobody\nat {state.t}")

    with pytest.raises(PolicyError, match=r"'mine:f' failed at second 0: ValueError: nobody at 0$"):
        own_decisions(CONTENDED, "mine:f", broken, RunOptions())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:f", "no module 'no_such_module' here"),
        ("mine.py:f:g", "not module:function; for policies.py write"),
        ("broken_module:f", "its module cannot be imported: ZeroDivisionError: division by zero"),
        ("whole_module:g", r"whole_module\.py has no function 'g'"),
        ("fcfs:f", "unknown policy 'fcfs:f'; did you mean fcfs"),
    ],
)
def test_a_policy_that_cannot_be_had(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken_module.py").write_text("1 / 0\n")
    Path("whole_module.py").write_text("def f(state):\n    return state.waiting\n")
    with pytest.raises(PolicyError, match=message):
        policy_named(name)
