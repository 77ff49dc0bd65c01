"""Replays the last window with Ref, and holds what happened and other policies against it."""

from __future__ import annotations

from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.daemon.drift.figures import ALONE, SCHEDULES
from shapleyprio.daemon.drift.messages import DriftAnswer, DriftRequest, DriftResult
from shapleyprio.replay.alone import with_singles
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.logs.window import read_past
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.measures.turns import Turns, turns_of
from shapleyprio.replay.policies import REFERENCE, reference_for, run_policy
from shapleyprio.replay.workloads.workload import Workload
from shapleyprio.store import DriftRow

REMEDIES = {
    Remedy.SHORTER_WINDOW: "shorten drift.window",
    Remedy.WINDOW_AT_MOST: "choose a drift.window of {bound} s at most",
    Remedy.SAMPLE: "lower drift.most_organizations",
}
"""Remedy -> the key of the configuration that brings it about."""


def replay_window(request: DriftRequest) -> DriftAnswer:
    """Replays the window.

    Raises:
        StoreError: the store cannot be read.
    """
    past = read_past(request.url, request.cluster, request.window)
    if len(past.log.job) == 0:
        return DriftAnswer(result=DriftResult.NO_JOBS, why="no job was executed in the window")
    try:
        consortium = past.consortium(request.organizations, request.parents)
        if not consortium.owned.any():
            why = "no organization brings processors; see `shapleyprio check`"
            return DriftAnswer(result=DriftResult.FAILED, why=why)
        workload = past.workload(consortium)
    except WorkloadError:
        why = "no job of an organization was executed in the window"
        return DriftAnswer(result=DriftResult.NO_JOBS, why=why)
    reference = reference_for(len(consortium.organizations), request.most_organizations)
    try:
        return answer_of(workload, reference)
    except ReplayError as error:
        return DriftAnswer(result=DriftResult.TOO_LARGE, why=error.worded(REMEDIES))


def answer_of(workload: Workload, reference: str) -> DriftAnswer:
    """Returns what every schedule gave every organization, beside what was fair.

    Args:
        workload: with the recorded starts.
        reference: the policy whose schedule counts as fair, ``ref`` or ``rand``.

    Raises:
        ReplayError: numbers get too large.
    """
    fair = run_policy(workload, reference)
    measures = measure(workload, fair)
    schedules = {policy: run_policy(workload, policy) for policy in SCHEDULES}
    utilities = {
        policy: measure(workload, schedule).utilities for policy, schedule in schedules.items()
    }
    utilities[ALONE] = _alone(workload, fair)
    rows = tuple(
        DriftRow(
            t=workload.window.start + workload.window.length,
            organization=organization,
            schedule=schedule,
            begin=workload.window.start,
            reference=reference,
            utility=of_schedule[u],
            fair=measures.utilities[u],
            parts=measures.p_tot,
        )
        for schedule, of_schedule in utilities.items()
        for u, organization in enumerate(workload.organizations)
    )
    judged = turns_of(workload, list(schedules.values())) if reference == REFERENCE else None
    turns = {} if judged is None else dict(zip(schedules, map(_counts, judged), strict=True))
    return DriftAnswer(result=DriftResult.OK, rows=rows, turns=turns)


def _counts(turns: Turns) -> tuple[int, int]:
    return turns.contested, turns.out_of_turn


def _alone(workload: Workload, fair: Schedule) -> tuple[int, ...]:
    """Returns v({u}) of each organization."""
    assert fair.coalitions is not None
    known = with_singles(workload, fair.coalitions)
    values = dict(zip(known.members.tolist(), known.values.tolist(), strict=True))
    return tuple(values[1 << u] for u in range(len(workload.organizations)))
