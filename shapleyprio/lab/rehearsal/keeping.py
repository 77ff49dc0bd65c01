"""What was seen of an arm as values that JSON knows, so that a rehearsal can go on later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Any

from shapleyprio.common.errors import OutputError
from shapleyprio.fairness.runs import JobRecord, RunKey
from shapleyprio.lab.trial.arms import Arm
from shapleyprio.lab.trial.running import Trace
from shapleyprio.lab.trial.steering import CycleCounts

_RECORD = tuple(field.name for field in fields(JobRecord))


def trace_as_json(trace: Trace) -> dict[str, Any]:
    """Returns what `trace_of_json` reads; forecasts of starts are not kept."""
    cycles = trace.cycles
    return {
        "slurm_version": trace.slurm_version,
        "begin": trace.begin,
        "submitted": {str(number): list(jobs) for number, jobs in trace.submitted.items()},
        "refused": dict(trace.refused),
        "records": [astuple(record) for record in trace.records],
        "held": [[*key, dict(nodes)] for key, nodes in trace.held.items()],
        "unreadable": trace.unreadable,
        "cycles": None if cycles is None else [dict(cycles.outcomes), *astuple(cycles)[1:]],
        "real_seconds": trace.real_seconds,
    }


def trace_of_json(arm: Arm, kept: Mapping[str, Any], file: str) -> Trace:
    """Returns what was seen of an arm.

    Raises:
        OutputError: it is not there, for the file has been changed.
    """
    try:
        cycles = kept["cycles"]
        return Trace(
            arm=arm,
            slurm_version=kept["slurm_version"],
            begin=kept["begin"],
            submitted={int(number): jobs for number, jobs in kept["submitted"].items()},
            refused=kept["refused"],
            records=[_record(values) for values in kept["records"]],
            held={RunKey(*key): nodes for *key, nodes in kept["held"]},
            unreadable=kept["unreadable"],
            cycles=None if cycles is None else CycleCounts(*cycles),
            start_errors=None,
            real_seconds=kept["real_seconds"],
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise OutputError(f"{file}: is not a kept arm; remove it") from None


def _record(values: list[Any]) -> JobRecord:
    named = dict(zip(_RECORD, values, strict=True))
    return JobRecord(**{**named, "nodes": tuple(named["nodes"])})
