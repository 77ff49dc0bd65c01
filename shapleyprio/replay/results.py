"""The results of a replay, for people's tables and for machines: JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.output import inert_cell
from shapleyprio.common.wording import duration
from shapleyprio.replay.alone import FinishTimes, finish_times
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.measures import Measures, drifts, measure, unfairness
from shapleyprio.replay.measures.turns import Turns, turns_of
from shapleyprio.replay.policies import REFERENCE
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.nodes import confined_share
from shapleyprio.replay.workloads.workload import Workload

SCHEDULE_COLUMNS = (
    *("policy", "job", "copy", "organization", "owner", "release", "start", "processing_time"),
)

BATCHES_AT_ONCE = 100_000
"""Entries of a schedule that are written at once; they are Python's integers then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A policy's schedule and what it is worth.

    Attributes:
        schedule: what the policy decided.
        measures: what that is at the window's end.
        unfairness: Σ|ψ − ψ*| / p_tot* in seconds; None if the fair one is not among the policies.
        drifts: (ψ(u) − ψ*(u)) / p_tot* of each organization, in seconds; None likewise.
        turns: how often what the rule of Ref would not have started was started; None without Ref,
            and where there are too many jobs and coalitions (`turns_of`).
        finish_times: how it compares with each organization alone.
    """

    schedule: Schedule
    measures: Measures
    unfairness: Fraction | None
    drifts: tuple[Fraction, ...] | None
    turns: Turns | None
    finish_times: FinishTimes

    @property
    def gap(self) -> str:
        """How much too early or too late a part of work came on average, in words."""
        return duration(float(self.unfairness or 0))


def results_of(
    workload: Workload, schedules: Sequence[Schedule], reference: str = REFERENCE
) -> tuple[Result, ...]:
    """Measures schedules of a workload, and holds them against the fair one if it is among them.

    Args:
        workload: what was scheduled.
        schedules: of it.
        reference: the policy whose schedule counts as fair.

    Raises:
        ReplayError: the numbers go beyond what is summed exactly.
    """
    measured = [measure(workload, schedule) for schedule in schedules]
    policies = [schedule.policy for schedule in schedules]
    fair = measured[policies.index(reference)] if reference in policies else None
    judged = turns_of(workload, schedules) if fair and reference == REFERENCE else None
    finished = finish_times(workload, schedules)
    return tuple(
        Result(
            schedule=schedule,
            measures=measures,
            unfairness=None if fair is None else unfairness(measures, fair),
            drifts=None if fair is None else drifts(measures, fair),
            turns=None if judged is None else judged[number],
            finish_times=finished[number],
        )
        for number, (schedule, measures) in enumerate(zip(schedules, measured, strict=True))
    )


def jobs_of(workload: Workload) -> list[int]:
    """Counts the jobs of each organization in the window."""
    count = len(workload.organizations)
    return [int(n) for n in np.bincount(workload.organization, minlength=count)]


def as_json(log: Log, workload: Workload, results: Sequence[Result]) -> dict[str, Any]:
    """Returns everything but the schedules themselves, as values that JSON knows.

    Utilities are integers of any size and contributions texts such as ``83/2``, both exact;
    means are floats. The window's start counts from the log's first release.
    """
    jobs = jobs_of(workload)
    return {
        "log": log.source,
        "clusters": [one.cluster for one in log.clusters],
        "window": {
            "start": workload.window.start - int(log.release.min()),
            "length": workload.window.length,
        },
        "organizations": [
            {"name": name, "processors": int(workload.owned[u]), "jobs": jobs[u]}
            for u, name in enumerate(workload.organizations)
        ],
        "horizon": workload.horizon,
        "left_out": dict(workload.left_out),
        "confined": confined_share(log, workload),
        "partitions": None if workload.bays is None else workload.bays.named,
        "policies": [_policy_as_json(workload, result) for result in results],
    }


def _policy_as_json(workload: Workload, result: Result) -> dict[str, Any]:
    schedule, measures, finished = result.schedule, result.measures, result.finish_times
    contributions = schedule.contribution or [None] * len(workload.organizations)
    return {
        "policy": schedule.policy,
        "seed": schedule.seed,
        "seconds": round(schedule.seconds, 6),
        "organizations": [
            {
                "name": name,
                "utility": measures.utilities[u],
                "contribution": None if (phi := contributions[u]) is None else str(phi),
                "parts": measures.parts[u],
                "mean_wait": as_float(measures.mean_waits[u]),
                "rho": as_float(finished.rho[u]),
                "never_alone": finished.never_alone[u],
            }
            for u, name in enumerate(workload.organizations)
        ],
        "p_tot": measures.p_tot,
        "unfairness": as_float(result.unfairness),
        "contested": None if result.turns is None else result.turns.contested,
        "out_of_turn": None if result.turns is None else result.turns.out_of_turn,
        "largest_rho": as_float(finished.largest),
        "utilization": float(measures.utilization),
    }


def as_float(value: Fraction | None) -> float | None:
    """Returns the nearest double, for machines."""
    return None if value is None else float(value)


def write_schedules(file: TextIO, workload: Workload, schedules: Sequence[Schedule]) -> None:
    """Writes one row for each copy that started in the window, in the order of the starts.

    Copies are numbered from 1 within their job, in rigid mode its processors. The owner is empty
    where it is not known. Seconds count from the window's begin.
    """
    file.write(_cells(SCHEDULE_COLUMNS) + "\n")
    for schedule in schedules:
        _write_schedule(file, workload, schedule)


def _write_schedule(file: TextIO, workload: Workload, schedule: Schedule) -> None:
    organizations = [_cells([name]) for name in workload.organizations]
    owners = {UNKNOWN: "", **dict(enumerate(organizations))}
    policy = _cells([schedule.policy])
    started = np.flatnonzero(schedule.start < workload.window.length)
    first = _first_copies(schedule.job[started], schedule.copies[started])
    for begin in range(0, len(started), BATCHES_AT_ONCE):
        some = started[begin : begin + BATCHES_AT_ONCE]
        job = schedule.job[some]
        columns = (
            workload.job[job],
            first[begin : begin + BATCHES_AT_ONCE],
            schedule.copies[some],
            workload.organization[job],
            schedule.owner[some],
            workload.release[job],
            schedule.start[some],
            workload.processing_time[job],
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, copy, copies, u, owner, release, start, seconds in rows:
            before = f"{policy},{number},"
            behind = f",{organizations[u]},{owners[owner]},{release},{start},{seconds}\n"
            file.writelines([f"{before}{c}{behind}" for c in range(copy, copy + copies)])


def _first_copies(job: NDArray[np.int64], copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns each batch's first copy, as a number within its job."""
    order = np.argsort(job, kind="stable")
    before = np.cumsum(copies[order]) - copies[order]
    starts = np.searchsorted(job[order], job[order])
    first = np.empty_like(copies)
    first[order] = before - before[starts] + 1
    return first


def _cells(texts: Sequence[str]) -> str:
    """Returns the cells of CSV, quoted where they must be."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(map(inert_cell, texts))
    return line.getvalue()
