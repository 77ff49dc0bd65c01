"""What is said of an arm, from what was seen of it."""

from __future__ import annotations

from dataclasses import replace

from shapleyprio.fairness.runs import RunKey
from shapleyprio.lab.trial.arms import ARMS
from shapleyprio.lab.trial.plan import OwnNodes
from shapleyprio.lab.trial.report import arm_result
from shapleyprio.lab.trial.running import Trace
from shapleyprio.lab.trial.steering import CycleCounts, counted
from shapleyprio.store import CycleRow
from tests.lab.trial.test_executed import BEGIN, BOTH, FIRST_ID, record, whole
from tests.replay.strategies import Job

JOBS = whole(Job(0, 0, 20, 4), Job(1, 5, 30, 6), Job(0, 6, 10, 1, limit=10))
"""The third may pass the second, which waits for the first."""

TRACE = Trace(
    arm=ARMS["shapleyprio-live-site-factor"],
    slurm_version="slurm 22.05",
    begin=BEGIN,
    submitted={FIRST_ID + job: [job] for job in range(3)},
    records=[
        record(0, submit=0, start=0, end=20, processors=4),
        record(1, submit=6, start=6, end=16, node="n2"),
        record(2, submit=5, start=20, end=50, nodes=BOTH, processors=6),
    ],
    held={RunKey(FIRST_ID + 2, BEGIN + 5, BEGIN + 20): {"n1": 4, "n2": 2}},
    refused={},
    unreadable=0,
    cycles=CycleCounts(outcomes={"ok": 3}, fallen_back=0, written=2),
    start_errors=None,
    real_seconds=1.0,
)


def test_an_arm_is_held_against_ref_of_whole_jobs_that_backfills() -> None:
    found = arm_result(OwnNodes(JOBS), TRACE, seed=0)
    assert found.result.unfairness == 0
    assert found.faults() == []
    late = [*TRACE.records[:2], record(2, submit=5, start=30, end=60, nodes=BOTH, processors=6)]
    later = arm_result(OwnNodes(JOBS), replace(TRACE, records=late, held={}), seed=0).result
    # 6 · 30 of all 6 · 30 + 4 · 20 + 10 parts came ten seconds late
    assert later.unfairness is not None
    assert float(later.unfairness) == 10 * 180 / 270


def test_cycles_without_an_estimate_make_the_numbers_doubtful() -> None:
    doubtful = replace(TRACE, cycles=CycleCounts(outcomes={"ok": 3}, fallen_back=1, written=2))
    assert arm_result(OwnNodes(JOBS), doubtful, seed=0).faults() == [
        "shapleyprio-live-site-factor: 1 cycles ranked without an estimate"
    ]


def test_cycles_before_the_first_estimate_have_not_fallen_back() -> None:
    ranked = [("ok", "directcontr"), ("ok", "shapley"), ("ok", "directcontr"), ("failed", "")]
    rows = [
        CycleRow(number=number, started=0, finished=0, outcome=outcome, rule=rule, written=2)
        for number, (outcome, rule) in enumerate(ranked, start=1)
    ]
    assert counted(rows, "shapley") == CycleCounts({"ok": 3, "failed": 1}, 1, 8)
    assert counted(rows[:1], "shapley").fallen_back == 0
