"""The parameters of the laboratory's commands, as they were read from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from shapleyprio.cli.options.parameters import ReportParameters, WorkloadParameters
from shapleyprio.lab.experiment.cells import WindowsParameters
from shapleyprio.replay.workloads.choices import Wide


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialParameters:
    """Parameters of `shapleyprio trial`; None where an option was left out.

    Attributes:
        workload: which jobs.
        wide: what becomes of jobs of several processors.
        arms: names, in the order given; empty for the usual ones.
        speed: cluster seconds per real second.
        poll_interval: seconds from one of the daemon's cycles to the next.
        new_jobs_interval: seconds from one of its new-job polls to the next; None for never.
        side_by_side: how many arms run at once.
        directory: for configurations, logs and databases.
        json_file: what to write.
        jobs: whether to write a row for each job, too.
    """

    workload: WorkloadParameters
    wide: Wide
    arms: tuple[str, ...]
    speed: int
    poll_interval: int
    new_jobs_interval: int | None
    side_by_side: int
    directory: Path | None
    json_file: Path | None
    jobs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTrial:
    """A trial of a list.

    Attributes:
        name: of its file of results.
        keys: in the list, as they were written.
        parameters: what the keys ask for.
    """

    name: str
    keys: Mapping[str, Any]
    parameters: TrialParameters


@dataclass(frozen=True, slots=True)
class TrialRun:
    """A run of a trial of a list.

    Attributes:
        trial: which.
        number: counts up from 1.
    """

    trial: ListedTrial
    number: int

    @property
    def part(self) -> str:
        """Name of its results."""
        return self.trial.name if self.number == 1 else f"{self.trial.name}.{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsParameters:
    """Parameters of `shapleyprio trials`; None where an option was left out.

    Attributes:
        trials: in the order of the list.
        repeat: how many runs of each trial.
        keep: directory for the results of finished trials.
        side_by_side: how many arms run at once.
        directory: for configurations, logs and databases.
        json_file: what to write.
    """

    trials: tuple[ListedTrial, ...]
    repeat: int
    keep: Path
    side_by_side: int
    directory: Path | None
    json_file: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearseParameters:
    """Parameters of `shapleyprio rehearse`; None or empty where an option was left out.

    Attributes:
        log: files of sacct.
        time_zone: of the times in them, and of `since`.
        slurm_conf, associations, qos: files of the site.
        organizations: file with their tables.
        since: from when on jobs count.
        days: for how long.
        warm_up: seconds before that.
        max_nodes: on which to play.
        arms: names, in the order given; empty for the usual ones.
        repeat: how often to run each arm.
        changes: settings of further arms, each as it was written.
        speed: cluster seconds per real second.
        side_by_side: how many arms run at once.
        keep: directory for finished arms.
        directory: for configurations, logs and databases.
        json_file, waits_file, report: what to write.
    """

    log: tuple[str, ...]
    time_zone: str
    slurm_conf: Path
    associations: Path | None
    qos: Path | None
    organizations: Path
    since: datetime | None
    days: float
    warm_up: int
    max_nodes: int
    arms: tuple[str, ...]
    changes: tuple[str, ...]
    repeat: int
    speed: int
    side_by_side: int
    keep: Path | None
    directory: Path | None
    json_file: Path | None
    waits_file: Path | None
    report: ReportParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentParameters:
    """Parameters of `shapleyprio experiment`; None or empty where an option was left out.

    Attributes:
        logs: files, directories (for a preset) or URLs of stores.
        preset: a paper's experiment.
        exhibits: which of the paper's tables, figures or scenarios.
        windows: how many of each log; a preset may have more kinds.
        forecasts: at how many releases of each window starts are forecast; None for no forecasts.
        seed: of all random draws.
        general: parameters of the general experiment; a preset has its own.
        cores: to compute on.
        keep: directory for finished cells.
        results_file, json_file, report: what to write.
    """

    logs: tuple[str, ...]
    preset: str | None
    exhibits: tuple[str, ...]
    windows: int | None
    forecasts: int | None
    seed: int
    general: WindowsParameters
    cores: int
    keep: Path | None
    results_file: Path | None
    json_file: Path | None
    report: ReportParameters
