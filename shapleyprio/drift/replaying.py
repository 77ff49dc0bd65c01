"""Replays the last window with Ref, and holds what happened and other policies against it."""

from __future__ import annotations

from shapleyprio.audit.alone import with_singles
from shapleyprio.config import Organization
from shapleyprio.drift.figures import ALONE, COMPARED
from shapleyprio.drift.messages import Answer, Outcome, Request
from shapleyprio.drift.window import read_past
from shapleyprio.errors import ReplayError
from shapleyprio.replay.measures import measure
from shapleyprio.replay.organizations import consortium_of
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.schedule import Schedule
from shapleyprio.replay.workload import Workload, WorkloadError, workload_of
from shapleyprio.store import DriftRow

ORDERINGS = 15
"""Of Rand, as in the papers' experiments."""

REMEDIES = {"--window": "drift.window", "take rand": "lower drift.most_organizations"}
"""What an error tells to change on the command line -> the key here."""


def replay_window(request: Request) -> Answer:
    """Replays the window.

    Raises:
        StoreError: the store cannot be read.
    """
    past = read_past(request.url, request.cluster, request.window)
    if len(past.log.job) == 0:
        return Answer(outcome=Outcome.NO_JOBS, why="no job was executed in the window")
    # the store knows best whose jobs and how many processors they are: only names count
    members = [Organization(name=name) for name in request.organizations]
    try:
        consortium = consortium_of(past.log, members)
        if not consortium.owned.any():
            why = "no organization brings processors; see `shapleyprio check`"
            return Answer(outcome=Outcome.FAILED, why=why)
        workload = workload_of(past.log, consortium, window=past.window)
    except WorkloadError:
        why = "no job of an organization was executed in the window"
        return Answer(outcome=Outcome.NO_JOBS, why=why)
    reference = "ref" if len(request.organizations) <= request.most_organizations else "rand"
    try:
        return Answer(outcome=Outcome.OK, rows=drift_rows(workload, reference))
    except ReplayError as error:
        why = str(error)
        for remedy, here in REMEDIES.items():
            why = why.replace(remedy, here)
        return Answer(outcome=Outcome.TOO_LARGE, why=why)


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


def _alone(workload: Workload, fair: Schedule) -> tuple[int, ...]:
    """v({u}) of each organization."""
    assert fair.coalitions is not None
    known = with_singles(workload, fair.coalitions)
    values = dict(zip(known.members.tolist(), known.values.tolist(), strict=True))
    return tuple(values[1 << u] for u in range(len(workload.organizations)))
