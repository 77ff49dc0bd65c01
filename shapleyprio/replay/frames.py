"""Schedules and their measures as data frames, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.results import as_float, jobs_of, results_of
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload


def starts_frame(workload: Workload, schedule: Schedule) -> pd.DataFrame:
    """Returns every start of a schedule, in its order.

    Returns:
        Columns job (the log's number), organization, owner (missing where it is not known),
        release, start, processing_time (seconds from the window's begin) and copies: how many
        processors of that owner's it got.
    """
    job = schedule.job
    names = list(workload.organizations)
    owner = np.where(schedule.owner == UNKNOWN, -1, schedule.owner)
    return pd.DataFrame(
        {
            "job": workload.job[job],
            "organization": pd.Categorical.from_codes(workload.organization[job], pd.Index(names)),
            "owner": pd.Categorical.from_codes(owner, pd.Index(names)),
            "release": workload.release[job],
            "start": schedule.start,
            "processing_time": workload.processing_time[job],
            "copies": schedule.copies,
        }
    )


def comparison_frame(workload: Workload, schedules: Sequence[Schedule]) -> pd.DataFrame:
    """Returns each policy's measures for each organization at the window's end.

    Returns:
        One row for each policy and organization: policy, organization, processors, jobs, utility
        (exact, Python's integers), contribution (exact fractions, None where not known), parts,
        mean_wait in seconds, rho (finish-time fairness), and drift in seconds against ref if that
        is among the schedules.
    """
    jobs, unknown = jobs_of(workload), [None] * len(workload.organizations)
    return pd.DataFrame(
        [
            {
                "policy": result.schedule.policy,
                "organization": name,
                "processors": int(workload.owned[u]),
                "jobs": jobs[u],
                "utility": result.measures.utilities[u],
                "contribution": (result.schedule.contribution or unknown)[u],
                "parts": result.measures.parts[u],
                "mean_wait": as_float(result.measures.mean_waits[u]),
                "rho": as_float(result.finish_times.rho[u]),
                "drift": None if result.drifts is None else float(result.drifts[u]),
            }
            for result in results_of(workload, schedules)
            for u, name in enumerate(workload.organizations)
        ]
    ).astype({"utility": object})
