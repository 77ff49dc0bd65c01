"""The parameters of commands, as they were read from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from shapleyprio.experiment.parameters import WindowsParameters
from shapleyprio.replay.choices import Backfill, Format, Placement, Shares, Wide
from shapleyprio.replay.policies import Estimation

SLURM_WORKERS = 8
"""Jobs that `--dask slurm` starts unless another number is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadParameters:
    """Which jobs to take; None where an option was left out.

    Attributes:
        log: files, patterns of such, or the URL of a store.
        log_format, fields, time_zone, clusters, strict: how to read it; a format of None is found
            out.
        organizations: cluster, or ALL_CLUSTERS, -> file with their tables.
        deal_users, processor_shares, processors: how to deal users and processors out instead.
        seed: of all random draws.
        window: seconds from the log's first release, and length.
        since, until: releases that are read.
    """

    log: tuple[str, ...]
    log_format: Format | None
    fields: str | None
    time_zone: str | None
    clusters: tuple[str, ...]
    strict: bool
    organizations: Mapping[str, Path]
    deal_users: int | None
    processor_shares: Shares | None
    processors: int | None
    seed: int
    window: tuple[int, int] | None
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportParameters:
    """Which report to write; None where an option was left out.

    Attributes:
        file: of the page.
        pictures: directory of the charts.
        command: the command line that makes the report anew.
    """

    file: Path | None
    pictures: Path | None
    command: str

    @property
    def wanted(self) -> bool:
        """Whether there is anything to write."""
        return self.file is not None or self.pictures is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayParameters:
    """Parameters of `shapleyprio replay`; None where an option was left out.

    Attributes:
        workload: which jobs.
        policies: in the order given; empty for the usual ones.
        orderings, epsilon, confidence: how exact Rand is.
        estimation: of contributions by the policies shapley and live.
        wide, backfill: what becomes of jobs of several processors.
        placement: which free processors a job gets.
        horizon: age in seconds from which a part gains no more worth.
        respect_partitions: whether jobs only get processors of their partitions' nodes.
        cores: to compute on.
        dask: address of a scheduler for ref, or "slurm".
        workers: jobs of Slurm to start.
        json_file, schedule_file, report: what to write.
    """

    workload: WorkloadParameters
    policies: tuple[str, ...]
    orderings: int | None
    epsilon: float | None
    confidence: float | None
    estimation: Estimation
    wide: Wide
    backfill: Backfill
    placement: Placement
    horizon: int | None
    respect_partitions: bool
    cores: int
    dask: str | None
    workers: int | None
    json_file: Path | None
    schedule_file: Path | None
    report: ReportParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditParameters:
    """Parameters of `shapleyprio audit`; None where an option was left out.

    Attributes:
        workload: which jobs.
        period: seconds.
        orderings: random orderings from which to sample coalitions.
        wide, backfill: what becomes of jobs of several processors.
        cores: to compute on.
        json_file, report: what to write.
    """

    workload: WorkloadParameters
    period: int
    orderings: int | None
    wide: Wide
    backfill: Backfill
    cores: int
    json_file: Path | None
    report: ReportParameters


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
class ExperimentParameters:
    """Parameters of `shapleyprio experiment`; None or empty where an option was left out.

    Attributes:
        logs: files, directories (for a preset) or URLs of stores.
        preset: a paper's experiment.
        exhibits: which of the paper's tables, figures or scenarios.
        windows: how many of each log; a preset may have more kinds.
        seed: of all random draws.
        general: parameters of the general experiment; a preset has its own.
        cores: to compute on.
        dask: address of a scheduler, or "slurm".
        workers: jobs of Slurm to start.
        keep: directory for finished cells.
        results_file, json_file, report: what to write.
    """

    logs: tuple[str, ...]
    preset: str | None
    exhibits: tuple[str, ...]
    windows: int | None
    seed: int
    general: WindowsParameters
    cores: int
    dask: str | None
    workers: int | None
    keep: Path | None
    results_file: Path | None
    json_file: Path | None
    report: ReportParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchParameters:
    """Parameters of `shapleyprio bench`.

    Attributes:
        part: which benchmarks.
        records: how many to ingest.
        logs: directory with real logs; None to do without.
        most_organizations: how many there are in replays at most.
        pending: how many jobs wait in the real Slurm.
        channels: by which to write into it; empty for all.
        adapters: to measure beside each other, instead of all else.
        poll_intervals: seconds of the daemon from cycle to cycle.
    """

    part: str
    records: int
    logs: Path | None
    most_organizations: int
    pending: int
    channels: tuple[str, ...]
    adapters: tuple[str, ...]
    poll_intervals: tuple[int, ...]
