"""Organizations that stand together: unions are served first, then within them, as is defined."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.engine import limits
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.policies.coalitions import orderings_for
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay import literal, literal_unions
from tests.replay.certificate import KEYS, certify, processors_started, rows
from tests.replay.literal import CoalitionSchedule
from tests.replay.strategies import Job, workload_of_jobs, workloads
from tests.replay.test_policies import BUSY, RIGID
from tests.replay.test_ref import blocks_of
from tests.replay.test_turns import CUT, WHOLE, grand, scheduled, turns, value_at

FIVE = workloads(organizations=st.just(5), lengths=st.integers(10, 25), jobs=18)


FLAT = ["ref", "shapley", "live", "directcontr", "fairshare", "fairshare:20s"]


@st.composite
def united(draw: st.DrawFn, drawn: st.SearchStrategy[Workload]) -> Workload:
    """The same workloads with some organizations in unions."""
    workload = draw(drawn)
    k = len(workload.organizations)
    of = draw(st.lists(st.integers(0, 2), min_size=k, max_size=k))
    return replace(workload, unions=numbered(of))


def numbered(of: list[int]) -> tuple[int, ...]:
    """The numbers of unions, in the order in which they come."""
    first = list(dict.fromkeys(of))
    return tuple(map(first.index, of))


@settings(deadline=None, max_examples=examples(150))
@given(
    workload=united(CUT | WHOLE | FIVE),
    seconds=st.sampled_from([3, 1024]),
    long_window=st.sampled_from([1, limits.LONG_WINDOW]),
)
def test_ref_serves_by_owen_values(workload: Workload, seconds: int, long_window: int) -> None:
    """With numbers of one limb and, as for long windows, of two."""
    expected = literal_unions.ref(workload)
    with blocks_of(seconds), pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "LONG_WINDOW", long_window)
        schedule = run_policy(workload, "ref")
    assert processors_started(schedule) == literal.processors_started(expected.starts)
    assert schedule.contribution == tuple(expected.contribution)


@settings(deadline=None)
@given(
    workload=united(CUT | WHOLE),
    count=st.integers(1, 3),
    long_window=st.sampled_from([1, limits.LONG_WINDOW]),
)
def test_rand_serves_by_orderings_that_keep_unions_together(
    workload: Workload, count: int, long_window: int
) -> None:
    everybody = frozenset(range(len(workload.organizations)))
    blocks = tuple(literal_unions.unions_within(workload, everybody).values())
    drawn = [tuple(row) for row in orderings_for(workload, RunOptions(orderings=count)).tolist()]
    assert set(drawn) <= set(literal_unions.orderings_of(blocks))
    expected = literal_unions.rand(workload, drawn)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "LONG_WINDOW", long_window)
        schedule = run_policy(workload, "rand", orderings=count)
    assert processors_started(schedule) == literal.processors_started(expected.starts)
    assert schedule.contribution == tuple(expected.contribution)


@settings(deadline=None)
@given(workload=CUT | WHOLE, policy=st.sampled_from(FLAT))
def test_with_one_union_or_each_alone_nothing_changes(workload: Workload, policy: str) -> None:
    k = len(workload.organizations)
    flat = run_policy(workload, policy)
    for unions in (tuple(range(k)), (0,) * k):
        nested = run_policy(replace(workload, unions=unions), policy)
        assert rows(nested) == rows(flat)
        assert nested.contribution == flat.contribution


@pytest.mark.parametrize("policy", sorted(KEYS))
@settings(deadline=None, max_examples=examples(60))
@given(workload=united(BUSY | RIGID), seed=st.integers(0, 2**40))
def test_every_decision_is_the_policys(policy: str, workload: Workload, seed: int) -> None:
    """By balances and shares unions come first; other policies know none."""
    certify(workload, run_policy(workload, policy, seed=seed))


@settings(deadline=None)
@given(workload=united(CUT | WHOLE))
def test_ref_is_never_out_of_turn(workload: Workload) -> None:
    assert turns(workload, run_policy(workload, "ref")).out_of_turn == 0


@settings(deadline=None, max_examples=examples(60))
@given(workload=united(CUT | WHOLE))
def test_the_rule_upside_down_is_out_of_turn_at_each_contested_moment(workload: Workload) -> None:
    schedules = literal_unions.ref_schedules(workload, range(workload.window.length))
    own = CoalitionSchedule(workload, grand(workload))
    for t in range(workload.window.length):
        v = {coalition: value_at(schedule, t) for coalition, schedule in schedules.items()}
        v[own.members] = own.value(t)
        pick = literal_unions.by_owen(workload, own, v, t, reverse=True)
        own.decide(t, pick)
    found = turns(workload, scheduled(own.starts))
    assert found.out_of_turn == found.contested


@settings(deadline=None)
@given(workload=united(CUT | WHOLE))
def test_the_daemons_rule_serves_as_the_policy_does(workload: Workload) -> None:
    by_rule = run_policy(workload, "rule:directcontr", seed=3)
    assert rows(by_rule) == rows(run_policy(workload, "directcontr", seed=3))


def test_too_many_unions_are_refused() -> None:
    many = replace(workload_of_jobs([1] * 17, [Job(0, 0, 1)], 2), unions=(0,) + (1,) * 16)
    with pytest.raises(PolicyError, match="16 are possible"):
        run_policy(many, "ref")
