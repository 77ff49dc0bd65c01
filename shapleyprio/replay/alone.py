"""The workload that is left when some organizations part from the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.schedule import CoalitionValues
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import Workload, jobs_of


def _jobs_alone(workload: Workload, members: Sequence[int]) -> NDArray[np.int64]:
    """Returns those jobs of some organizations that fit on the processors of these alone."""
    width = 1 if workload.wide == "expand" else workload.processors
    if workload.bays is None:
        room = workload.owned[list(members)].sum()
    else:
        room = workload.bays.of_members(members).processors[workload.bays.partition]
    return np.flatnonzero(np.isin(workload.organization, members) & (width <= room))


def workload_alone(
    workload: Workload, members: Sequence[int]
) -> tuple[NDArray[np.int64], Workload] | None:
    """Returns which jobs fit on the processors of some organizations, and the workload of these.

    It has the jobs and processors of these organizations alone, in the same window.

    Whose processors jobs really got is left out: part of them belonged to others.

    Args:
        workload: of the whole consortium.
        members: indices of the organizations, ascending.

    Returns:
        None if they have no processors, or no job that fits on them.
    """
    owned = workload.owned[list(members)]
    taken = _jobs_alone(workload, members)
    if len(taken) == 0:
        return None
    own = jobs_of(workload, taken)
    return taken, replace(
        own,
        organizations=tuple(workload.organizations[u] for u in members),
        owned=owned,
        organization=np.searchsorted(members, workload.organization[taken]).astype(np.int32),
        placed=None,
        bays=None if own.bays is None else own.bays.of_members(members),
    )


def with_singles(workload: Workload, sampled: CoalitionValues) -> CoalitionValues:
    """Adds every single organization that sampling missed; alone it has nothing to choose."""
    known = set(sampled.members.tolist())
    missing = [u for u in range(len(workload.organizations)) if 1 << u not in known]
    return CoalitionValues(
        members=np.append(sampled.members, [1 << u for u in missing]).astype(np.int64),
        values=np.append(
            sampled.values,
            np.array([_value(workload, u) for u in missing], dtype=sampled.values.dtype),
        ),
    )


def _value(workload: Workload, organization: int) -> int:
    alone = workload_alone(workload, [organization])
    if alone is None:
        return 0
    own = alone[1]
    return sum(measure(own, run_policy(own, "fcfs")).utilities)
