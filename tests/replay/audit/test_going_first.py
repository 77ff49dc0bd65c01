"""Members that bring next to nothing and always go first: who is pointed at, and who is not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from shapleyprio.replay.audit.auditing import audit
from shapleyprio.replay.audit.findings import advice
from shapleyprio.replay.audit.stability import LEAST_JOBS, GoingFirst, going_first
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.audit.recorded import recorded
from tests.replay.strategies import Job

URGENT = 40
LENGTH = 1000
REST = [(Job(0, 0, 30), 30 * k, 0) for k in range(30)]
"""They come at once, and use one processor one after the other."""


def split(owned: tuple[int, int] = (2, 0), wait: int = 0, urgent: int = URGENT) -> Workload:
    """Organization 1 has short jobs, one every 10 s, each of which waits for so long."""
    short = [(Job(1, 10 * k, 9), 10 * k + wait, 0) for k in range(1, urgent + 1)]
    return recorded(owned, [*REST, *short], LENGTH)


def test_half_of_a_split_organization_is_pointed_at() -> None:
    work = 30 * 30 + URGENT * 9
    (found,) = going_first(split())
    assert found == GoingFirst(1, Fraction(0), Fraction(URGENT * 9, work), URGENT, URGENT)
    (found,) = going_first(split(owned=(199, 1)))  # next to nothing
    assert found.brings == Fraction(1, 200)


def test_the_advice_of_an_audit_names_it() -> None:
    found = audit(split())
    (sentence,) = (line for line in advice(found) if "org1" in line and "behind" in line)
    assert "brings 0.0% of the processors" in sentence
    assert f"of its {URGENT} jobs that came while others waited 100.0%" in sentence
    silent = audit(split(owned=(1, 1)))
    assert not any("behind" in line for line in advice(silent))


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(split(owned=(1, 1)), id="it brings nodes"),
        pytest.param(split(owned=(19, 1)), id="it brings more than a tenth of what it uses"),
        pytest.param(split(wait=600 - 1), id="it waits like the others"),
        pytest.param(split(urgent=LEAST_JOBS - 1), id="too few jobs to say"),
        pytest.param(replace(split(), start=split().release), id="nobody waits"),
        pytest.param(
            replace(split(), processors=np.where(split().organization == 0, 2, 1)),
            id="it is backfilled around wider jobs",
        ),
    ],
)
def test_who_brings_something_or_waits_or_is_backfilled_is_not_pointed_at(
    workload: Workload,
) -> None:
    assert going_first(workload) == ()
