"""Guarantees in replays: what goes first, how soon it starts, and what that costs the others."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.guarantee import EligibleJob, guaranteed
from shapleyprio.fairness.situation import OrganizationState, Situation
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.policies import RunOptions, run_policy
from shapleyprio.replay.policies.own import own_decisions
from shapleyprio.replay.workloads.workload import Workload
from tests.replay import literal
from tests.replay.certificate import processors_started
from tests.replay.strategies import workloads
from tests.replay.test_policies import BUSY, BUSY_AND_WIDE, DECIDED, OWNERS_DECIDE, RIGID

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = st.integers(1, 15)
CROWDED = workloads(
    organizations=st.integers(2, 4),
    owned=st.integers(0, 3),
    lengths=st.integers(30, 60),
    widths=st.integers(1, 3),
    jobs=30,
    spread=15,
)


class Keeping(literal.CoalitionSchedule):
    """A schedule in which goes first what the daemon would put first."""

    def __init__(self, workload: Workload, seconds: int) -> None:
        self.names = range(len(workload.organizations))
        super().__init__(workload, frozenset(self.names))
        self.seconds = seconds

    def first(self, t: int, waiting: Sequence[int]) -> int | None:
        heads = []
        for u in waiting:
            task = self.queue[u][0]
            heads.append(EligibleJob(task.position, str(u), task.release, task.processors))
        used = {u: literal.occupied(self, t, u) for u in self.names}
        unused = {str(u): self.owned[u] - used[u] for u in self.names}
        for job in guaranteed(t, dict.fromkeys(unused, self.seconds), unused, heads):
            return int(job.organization)
        return None


def simulated(workload: Workload, policy: str, seconds: int) -> literal.CoalitionSchedule:
    """What a policy makes of a small workload with a guarantee."""
    schedule = Keeping(workload, seconds)

    def pick(t: int, waiting: Sequence[int]) -> int:
        first = schedule.first(t, waiting)
        return literal.RULES[policy](schedule, t, waiting) if first is None else first

    for t in literal.moments(workload, [schedule]):
        schedule.decide(t, partial(pick, t), Random(0))
    return schedule


@pytest.mark.parametrize("policy", sorted(set(DECIDED) - OWNERS_DECIDE))
@settings(max_examples=40)
@given(workload=BUSY | BUSY_AND_WIDE | RIGID, seconds=SECONDS)
def test_what_goes_first_is_what_the_daemon_puts_first(
    policy: str, workload: Workload, seconds: int
) -> None:
    made = run_policy(workload, f"{policy}@{seconds}s")
    expected = literal.processors_started(simulated(workload, policy, seconds).starts)
    assert processors_started(made) == expected


@given(workload=BUSY | RIGID, seconds=SECONDS)
def test_the_daemons_rules_are_followed_alike(workload: Workload, seconds: int) -> None:
    one = run_policy(workload, f"directcontr@{seconds}s")
    other = run_policy(workload, f"rule:directcontr@{seconds}s")
    assert processors_started(one) == processors_started(other)


def longest_claim(workload: Workload, schedule: Schedule, u: int, seconds: int) -> int:
    """For how long without a break u uses less than it brings while it waits for so long."""
    waits = np.zeros(workload.window.length, dtype=np.int64)
    used = np.zeros(workload.window.length, dtype=np.int64)
    own = np.flatnonzero(workload.organization == u)
    for job in own:
        release = int(workload.release[job])
        waits[release + seconds :] += workload.processors[job]
    columns = (schedule.job, schedule.start, schedule.copies)
    for job, start, copies in zip(*(column.tolist() for column in columns), strict=True):
        if job in own:
            waits[max(start, int(workload.release[job]) + seconds) :] -= copies
            used[start : start + int(workload.processing_time[job])] += copies
    longest = current = 0
    for claims in (waits > 0) & (used < workload.owned[u]):
        current = current + 1 if claims else 0
        longest = max(longest, current)
    return longest


def longest_job(workload: Workload) -> int:
    return int(workload.processing_time.max(initial=0))


@pytest.mark.parametrize("policy", ["directcontr", "fairshare", "rule:directcontr", "live", "fcfs"])
@settings(max_examples=40)
@given(workload=CROWDED, seconds=st.integers(1, 6))
def test_who_asks_is_served_before_the_longest_job_could_have_ended(
    policy: str, workload: Workload, seconds: int
) -> None:
    """So a guarantee is kept where no job lasts longer than it says."""
    schedule = run_policy(workload, f"{policy}@{seconds}s")
    for u in range(len(workload.organizations)):
        assert longest_claim(workload, schedule, u, seconds) <= longest_job(workload)


@given(workload=CROWDED, seconds=st.integers(1, 6))
def test_who_comes_first_by_the_rule_is_served_as_soon_whoever_asks(
    workload: Workload, seconds: int
) -> None:
    """Guarantees of others take nothing that it brings itself."""

    def first_listed(situation: Situation) -> list[OrganizationState]:
        return list(situation.waiting)

    schedule = own_decisions(workload, "listed", first_listed, RunOptions(guarantee=seconds))
    assert longest_claim(workload, schedule, 0, 0) <= longest_job(workload)


@given(workload=CROWDED)
def test_a_guarantee_of_more_than_anybody_waits_changes_nothing_but_draws(
    workload: Workload,
) -> None:
    for policy in sorted(set(DECIDED) - OWNERS_DECIDE):
        with_one = run_policy(workload, f"{policy}@{workload.window.length}s")
        assert processors_started(with_one) == processors_started(run_policy(workload, policy))
