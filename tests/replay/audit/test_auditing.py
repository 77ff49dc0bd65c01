"""The audit as a whole: what is compared with what."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from shapleyprio.common.errors import ReplayError
from shapleyprio.replay.audit import auditing
from shapleyprio.replay.audit.auditing import audit
from shapleyprio.replay.policies import ORDERINGS
from shapleyprio.replay.results import results_of
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay.audit.recorded import recorded, recorded_workloads
from tests.replay.strategies import Job, workload_of_jobs

WAITED = recorded(
    [1, 1], [(Job(0, 0, 10), 30, 0), (Job(1, 0, 40), 0, 1), (Job(1, 0, 30), 0, 0)], length=100
)
"""Organization 0 waited 30 s for its own processor, on which 1's second job ran."""


def test_a_delay_is_what_came_too_late_spread_over_everybody_s_work() -> None:
    found = audit(WAITED)
    assert found.reference.result.measures.p_tot == 80
    assert found.recorded.delays == (Fraction(30 * 10, 80), Fraction(-10 * 30, 80))


def test_the_reference_has_no_drift_and_no_delay() -> None:
    fair = audit(WAITED).reference
    assert fair.result.unfairness == 0
    assert fair.result.drifts == (Fraction(0), Fraction(0))
    assert fair.delays == (Fraction(0), Fraction(0))


@given(recorded_workloads())
@settings(max_examples=examples(40))
def test_drifts_are_those_of_the_replay(workload: Workload) -> None:
    found = audit(workload)
    schedules = [one.result.schedule for one in found.schedules]
    assert [one.policy for one in schedules] == ["recorded", "ref", "directcontr", "fairshare"]
    replayed = results_of(workload, schedules)
    assert tuple(one.result for one in found.schedules) == replayed


def test_with_many_organizations_coalitions_are_sampled_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert audit(WAITED).orderings is None
    monkeypatch.setattr(auditing, "MOST_FOR_ALL", 1)
    found = audit(WAITED)
    assert found.orderings == ORDERINGS
    assert found.reference.result.schedule.policy == "rand"


def test_orderings_that_are_asked_for_are_sampled_whatever_the_number_of_organizations() -> None:
    found = audit(WAITED, orderings=3)
    assert found.orderings == 3
    assert found.reference.result.schedule.policy == "rand"


def test_without_owners_nobody_is_said_to_carry_anybody() -> None:
    found = audit(replace(WAITED, placed=None))
    assert found.carried is None
    assert found.periods[0].contributed is None


def test_a_log_without_starts_is_refused() -> None:
    with pytest.raises(ReplayError, match="does not say when jobs started"):
        audit(workload_of_jobs([1], [Job(0, 0, 5)], 10))


def test_jobs_without_a_start_are_counted() -> None:
    start = np.where(np.arange(3) == 1, UNKNOWN, WAITED.start)
    assert audit(replace(WAITED, start=start)).unknown_starts == 1
