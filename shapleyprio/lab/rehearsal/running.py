"""Runs the arms of a rehearsal, keeps what was seen, and goes on from those that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from shapleyprio.common.errors import OutputError
from shapleyprio.fairness.runs import JobRecord, RunKey
from shapleyprio.lab.experiment.keeping import KeptResults
from shapleyprio.lab.rehearsal.arms import SiteArm
from shapleyprio.lab.trial.arms import Arm
from shapleyprio.lab.trial.running import ArmRun, ArmsWatch, Conditions, Trace, run_side_by_side
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


def trace_of_json(arm: Arm, kept: Mapping[str, Any], file: Path) -> Trace:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where arms are kept.

    Attributes:
        results: the directory.
        inputs: what makes an arm what it is, but for its own settings.
    """

    results: KeptResults
    inputs: Mapping[str, Any]

    def traces(self, runs: Mapping[str, SiteArm]) -> dict[str, Trace]:
        """Returns what is kept: name of a run -> what was seen of it.

        Raises:
            OutputError: something else is kept under a run's name.
        """
        found = self.results.finished({name: self._asked(arm) for name, arm in runs.items()})
        return {
            name: trace_of_json(runs[name], kept, self.results.file(name))
            for name, kept in found.items()
        }

    def keep(self, name: str, trace: Trace, arm: SiteArm) -> None:
        """Keeps what was seen of a run of an arm.

        Raises:
            OutputError: it cannot be written.
        """
        self.results.keep(name, self._asked(arm), trace_as_json(trace))

    def _asked(self, arm: SiteArm) -> dict[str, Any]:
        return {**self.inputs, "settings": dict(arm.settings)}


def named_runs(arms: Sequence[SiteArm], repeat: int) -> dict[str, SiteArm]:
    """Returns the name of each run of arms -> its arm; all arms are run once, then again."""
    return {
        arm.name if number == 1 else f"{arm.name}.{number}": arm
        for number in range(1, repeat + 1)
        for arm in arms
    }


def run_arms(
    runs: Mapping[str, SiteArm],
    conditions: Conditions,
    *,
    directory: Path,
    at_once: int,
    kept: Kept | None,
    watch: ArmsWatch,
) -> dict[str, Trace]:
    """Runs arms, and keeps each one as soon as it has come to its end.

    Args:
        runs: name -> arm, in the order in which they begin.
        conditions: what they have in common.
        directory: for the state of their clusters.
        at_once: how many run beside each other at most.
        kept: where to keep them; None for nowhere.
        watch: called now and then.

    Returns:
        name of a run -> what was seen of it.

    Raises:
        SlurmError: an arm could not be run; those that came to their end are kept.
        OutputError: an arm cannot be kept.
    """
    traces: dict[str, Trace] = {}

    def finished(run: ArmRun, trace: Trace) -> None:
        traces[run.name] = trace
        if kept is not None:
            kept.keep(run.name, trace, runs[run.name])

    run_side_by_side(
        [ArmRun(name=name, arm=arm, conditions=conditions) for name, arm in runs.items()],
        directory=directory,
        at_once=at_once,
        watch=watch,
        finished=finished,
    )
    return traces
