"""Replays the last window with Ref, and holds what happened and other policies against it."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.audit.alone import with_singles
from shapleyprio.config import Organization
from shapleyprio.drift.figures import ALONE, COMPARED
from shapleyprio.drift.messages import Answer, Outcome, Request
from shapleyprio.drift.window import Past, read_past
from shapleyprio.errors import ReplayError
from shapleyprio.replay.measures import measure
from shapleyprio.replay.organizations import consortium_of
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.schedule import Schedule
from shapleyprio.replay.workload import Workload, WorkloadError, workload_of
from shapleyprio.store import DriftRow

ORDERINGS = 15
"""Of Rand, as in the papers' experiments."""


def replay_window(request: Request) -> Answer:
    """Replays the window.

    Raises:
        StoreError: the store cannot be read.
    """
    past = read_past(request.url, request.cluster, request.window)
    if len(past.log.job) == 0:
        return Answer(outcome=Outcome.NO_JOBS, why="no job was executed in the window")
    try:
        workload = _workload(past, request.organizations)
    except WorkloadError as error:
        return Answer(outcome=Outcome.NO_JOBS, why=str(error))
    reference = "ref" if len(request.organizations) <= request.most_organizations else "rand"
    try:
        return Answer(outcome=Outcome.OK, rows=drift_rows(workload, reference))
    except ReplayError as error:
        what, _, _ = str(error).partition(";")  # the remedy behind it is for the command line
        return Answer(
            outcome=Outcome.TOO_LARGE,
            why=f"{what}; shorten drift.window, or lower drift.most_organizations",
        )


def drift_rows(workload: Workload, reference: str) -> tuple[DriftRow, ...]:
    """What every schedule of a workload gave every organization, beside what was fair.

    Args:
        workload: with the recorded starts.
        reference: the policy whose schedule counts as fair, ``ref`` or ``rand``.

    Raises:
        ReplayError: numbers get too large.
    """
    fair = run_policy(workload, reference, orderings=ORDERINGS)
    measures = measure(workload, fair)
    utilities = {
        policy: measure(workload, run_policy(workload, policy)).utilities for policy in COMPARED
    }
    utilities[ALONE] = _alone(workload, fair)
    return tuple(
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


def _workload(past: Past, names: Sequence[str]) -> Workload:
    # the store knows best whose jobs and how many processors they are: only names count
    consortium = consortium_of(past.log, [Organization(name=name) for name in names])
    return workload_of(past.log, consortium, window=past.window)


def _alone(workload: Workload, fair: Schedule) -> tuple[int, ...]:
    """v({u}) of each organization."""
    assert fair.coalitions is not None
    known = with_singles(workload, fair.coalitions)
    values = dict(zip(known.members.tolist(), known.values.tolist(), strict=True))
    return tuple(values[1 << u] for u in range(len(workload.organizations)))
