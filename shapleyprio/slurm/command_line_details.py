"""Reads through scontrol what accounting does not say of a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.slurm.commands import SlurmCommands
from shapleyprio.slurm.port import SlurmRefusedError
from shapleyprio.slurm.text_details import can_be_counted, processors_held

ONE_JOB = ("show", "job", "-d", "-o")


class CommandLineDetails:
    """How many processors jobs hold on each of their nodes.

    Args:
        commands: runs scontrol.
        weight: what counts as a processor: a TRES name such as ``cpu`` or ``gres/gpu``.
        weight_of: partition -> what does so there, if it is something else.
    """

    def __init__(self, commands: SlurmCommands, weight: str, weight_of: Mapping[str, str]) -> None:
        self._commands = commands
        self._weight = weight
        self._weight_of = weight_of

    def processors_of(self, runs: Iterable[Run]) -> Mapping[RunKey, Mapping[str, int]]:
        """Returns run -> node -> processors, as far as Slurm knows and says it clearly.

        Every job is asked for alone: its name, its comment and so on stand in the answer as its
        user has written them, and must not pass for those of another's job.
        """
        found: dict[RunKey, Mapping[str, int]] = {}
        for run in runs:
            weight = self._weight_of.get(run.partition, self._weight)
            if not can_be_counted(weight):
                continue
            try:
                shown = self._commands.read("scontrol", *ONE_JOB, _name_of(run))
            except SlurmRefusedError:  # Slurm has forgotten it
                continue
            held = processors_held(shown, weight, run.key.start)
            if held is not None:
                found[run.key] = held
        return found


def _name_of(run: Run) -> str:
    """Names a task by its array: the number of one may be that of all, too."""
    array, underscore, task = run.label.partition("_")
    plain = underscore and array.isdecimal() and task.isdecimal()
    return run.label if plain else str(run.key.job_id)
