"""What an organization gains by becoming two members, one of which brings nothing.

The member without processors has the urgent jobs, the other one all processors and the rest of the
work. What the rest has had is then no longer held against the urgent jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shapleyprio.lab.bench.fairness.contended import ContendedWindow, WindowKind, collected
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, mean_of
from shapleyprio.replay.policies import COMPARED, LIVE, REFERENCE, run_policy
from shapleyprio.replay.workloads.workload import Workload, jobs_of

MEASURED_LOGS = ("LPC", "HPC2N")
POLICIES = (*COMPARED, LIVE, REFERENCE)
ORGANIZATIONS = 4
WINDOWS = 3

SHARE_OF_WORK = 0.1
"""Part of the organization's work that is urgent: its shortest jobs."""

Jobs = NDArray[np.bool_]


def urgent_jobs(workload: Workload, organization: int) -> Jobs:
    """Returns which jobs are an organization's shortest, with `SHARE_OF_WORK` of its work."""
    ours = np.flatnonzero(workload.organization == organization)
    shortest = ours[np.argsort(workload.processing_time[ours], kind="stable")]
    work = np.cumsum(workload.processing_time[shortest] * workload.processors[shortest])
    urgent = np.zeros(len(workload.job), dtype=np.bool_)
    urgent[shortest[work <= SHARE_OF_WORK * work[-1]]] = True
    return urgent


def in_two(workload: Workload, urgent: Jobs) -> tuple[Workload, NDArray[np.int64]]:
    """Makes a member of its own of some jobs of one organization; it brings no processors.

    Returns:
        the workload, and for each of its jobs the job of the former one.
    """
    organization = np.where(urgent, len(workload.organizations), workload.organization)
    order = np.lexsort((workload.position, workload.release, organization))
    split = replace(
        jobs_of(workload, order),
        organizations=(*workload.organizations, "urgent"),
        owned=np.append(workload.owned, 0),
        organization=organization[order].astype(np.int32),
    )
    return split, order


def waits(workload: Workload, policy: str) -> NDArray[np.int64]:
    """Returns for each job the seconds that its last copy waits; up to the end if it never starts.

    A copy that does not start waits at least until the window ends.
    """
    schedule = run_policy(workload, policy)
    started = np.zeros(len(workload.job), dtype=np.int64)
    np.add.at(started, schedule.job, schedule.copies)
    pieces = workload.processors if workload.wide == "expand" else np.ones_like(started)
    last = np.where(started < pieces, workload.window.length, 0)
    np.maximum.at(last, schedule.job, schedule.start)
    return last - workload.release


def measure_splitting(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures how long jobs wait before and after one organization becomes two members.

    Each organization with urgent jobs does so in turn, while all others stay as they are.

    Yields:
        by log and policy the mean waits of the urgent jobs and of the other organizations' jobs.
    """
    kinds = {"": WindowKind(organizations=ORGANIZATIONS, windows=WINDOWS)}
    for log, (policy, what), values in collected(asked, MEASURED_LOGS, kinds, _waits_in):
        yield mean_of(policy, f"{log}, {what}: mean wait", values, unit="s")


def _waits_in(window: ContendedWindow) -> Iterator[tuple[tuple[str, str], float]]:
    """Yields by policy and whose jobs how long they wait in the mean."""
    for policy in POLICIES:
        for what, wait in _waits_around(window.workload, policy):
            yield (policy, what), wait


def _waits_around(workload: Workload, policy: str) -> Iterator[tuple[str, float]]:
    """Yields for each organization with urgent jobs how long whose jobs wait, before and after."""
    before = waits(workload, policy)
    for u in range(len(workload.organizations)):
        if not (workload.organization == u).any():
            continue
        urgent, others = urgent_jobs(workload, u), workload.organization != u
        if not urgent.any() or not others.any():
            continue
        split, order = in_two(workload, urgent)
        after = np.empty_like(before)
        after[order] = waits(split, policy)
        for what, jobs in (("urgent jobs", urgent), ("others' jobs", others)):
            yield f"{what}, one member", float(before[jobs].mean())
            yield f"{what}, two members", float(after[jobs].mean())
