"""Runs the arms of a rehearsal, and goes on from those that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapleyprio.lab.experiment.keeping import KeptResults
from shapleyprio.lab.rehearsal.arms import SiteArm
from shapleyprio.lab.rehearsal.keeping import trace_as_json, trace_of_json
from shapleyprio.lab.trial.running import ArmRun, Conditions, Trace
from shapleyprio.lab.trial.side_by_side import ArmsWatch, run_side_by_side


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where arms are kept.

    Attributes:
        results: the directory.
        inputs: what makes an arm what it is, but for its own settings.
    """

    results: KeptResults
    inputs: Mapping[str, Any]

    def trace(self, arm: SiteArm) -> Trace | None:
        """Returns what was seen of an arm; None if it has not come to its end.

        Raises:
            OutputError: something else is kept under its name.
        """
        kept = self.results.of(arm.name, self._asked(arm))
        file = f"{self.results.directory / arm.name}.json"
        return None if kept is None else trace_of_json(arm, kept, file)

    def keep(self, arm: SiteArm, trace: Trace) -> None:
        """Keeps what was seen of an arm.

        Raises:
            OutputError: it cannot be written.
        """
        self.results.keep(arm.name, self._asked(arm), trace_as_json(trace))

    def _asked(self, arm: SiteArm) -> dict[str, Any]:
        return {**self.inputs, "settings": dict(arm.settings)}


def kept_traces(arms: Sequence[SiteArm], kept: Kept | None) -> dict[str, Trace]:
    """Returns what is kept: name of an arm -> what was seen of it.

    Raises:
        OutputError: something else is kept under an arm's name.
    """
    if kept is None:
        return {}
    found = {arm.name: kept.trace(arm) for arm in arms}
    return {name: trace for name, trace in found.items() if trace is not None}


def run_arms(
    arms: Sequence[SiteArm],
    conditions: Conditions,
    *,
    directory: Path,
    at_once: int,
    kept: Kept | None,
    watch: ArmsWatch,
) -> dict[str, Trace]:
    """Runs arms, and keeps each one as soon as it has come to its end.

    Args:
        arms: in the order in which they begin.
        conditions: what they have in common.
        directory: for the state of their clusters.
        at_once: how many run beside each other at most.
        kept: where to keep them; None for nowhere.
        watch: called now and then.

    Returns:
        name of an arm -> what was seen of it.

    Raises:
        TrialError: an arm could not be run; those that came to their end are kept.
        OutputError: an arm cannot be kept.
    """
    traces: dict[str, Trace] = {}
    by_name = {arm.name: arm for arm in arms}

    def finished(run: ArmRun, trace: Trace) -> None:
        traces[run.name] = trace
        if kept is not None:
            kept.keep(by_name[run.name], trace)

    run_side_by_side(
        [ArmRun(name=arm.name, arm=arm, conditions=conditions) for arm in arms],
        directory=directory,
        at_once=at_once,
        watch=watch,
        finished=finished,
    )
    return traces
