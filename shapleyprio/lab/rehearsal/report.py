"""The answer of a rehearsal for machines: JSON, and the waits of jobs as CSV."""

from __future__ import annotations

import csv
from dataclasses import asdict
from importlib.metadata import version
from typing import Any, TextIO

from shapleyprio.common.output import inert_cell
from shapleyprio.lab.rehearsal.answer import GROUPS, Answer, RehearsedRun, WaitRow
from shapleyprio.lab.rehearsal.jobs import Days
from shapleyprio.replay.results import as_float

JOB_COLUMNS = ("job", "organization", "account", "user", "partition", "qos", "processors")


def answer_as_json(answer: Answer, days: Days, *, speed: int) -> dict[str, Any]:
    """Returns everything but single jobs as values that JSON knows; times are seconds."""
    site, workload = answer.jobs.plan.site, answer.jobs.plan.workload
    return {
        "versions": {
            "shapleyprio": version("shapleyprio"),
            "slurm": next((run.trace.slurm_version for run in answer.runs if run.trace), None),
        },
        "site": {
            "nodes": len(site.conf.nodes),
            "processors": sum(node.processors for node in site.conf.nodes.values()),
            "partitions": list(site.conf.partitions),
            "left_out": dict(answer.jobs.plan.left_out),
        },
        "days": {"begin": days.begin, "since": days.since, "until": days.until},
        "speed": speed,
        "jobs": answer.all_jobs.jobs,
        "left_out": dict(workload.left_out),
        "other_partition": answer.jobs.other_partition,
        "trust": answer.trust,
        "runs": [_run_as_json(answer, run) for run in answer.runs],
        "waits": {
            group: [_row_as_json(answer, row) for row in answer.rows(group)] for group in GROUPS
        },
    }


def _run_as_json(answer: Answer, run: RehearsedRun) -> dict[str, Any]:
    result, trace, delays = run.result, run.trace, run.delays
    organizations = answer.jobs.plan.workload.organizations
    return {
        "run": run.name,
        "settings": None if trace is None else dict(trace.arm.settings),
        "mean_wait": float(run.waits.mean()),
        "utilization": as_float(result.measures.utilization),
        "unfairness": as_float(result.unfairness),
        "drifts": None
        if result.drifts is None
        else dict(zip(organizations, map(float, result.drifts), strict=True)),
        "contested": None if result.turns is None else result.turns.contested,
        "out_of_turn": None if result.turns is None else result.turns.out_of_turn,
        "delays": None if delays is None else asdict(delays),
        "faults": list(run.faults),
        "real_seconds": None if trace is None else round(trace.real_seconds, 1),
    }


def _row_as_json(answer: Answer, row: WaitRow) -> dict[str, Any]:
    names = [run.name for run in answer.runs]
    return {
        "name": row.name,
        "jobs": row.jobs,
        "mean_wait": dict(zip(names, row.means, strict=True)),
        "each": dict(zip(names, row.each, strict=True)),
    }


def write_waits(file: TextIO, answer: Answer) -> None:
    """Writes a row for each job that counts: what it is, its release, and its wait in each arm.

    Seconds; the release since the epoch. A job that has not started has its wait so far, and of
    several runs of an arm the mean counts.
    """
    jobs = answer.jobs
    workload = jobs.plan.workload
    table = csv.writer(file, lineterminator="\n")
    table.writerow([*JOB_COLUMNS, "release", *(f"wait {run.name}" for run in answer.runs)])
    columns = [run.waits.astype(int).tolist() for run in answer.runs]
    for row, job in enumerate(jobs.counted.nonzero()[0].tolist()):
        named = jobs.plan.jobs[job]
        names = (workload.organizations[int(workload.organization[job])], *named[:4])
        table.writerow(
            [
                int(workload.job[job]),
                *map(inert_cell, names),
                int(workload.processors[job]),
                int(workload.release[job]) + workload.window.start,
                *(column[row] for column in columns),
            ]
        )
