"""The parameters of commands, as they were read from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from shapleyprio.replay.policies import Estimation
from shapleyprio.replay.workloads.choices import Backfill, Doubt, Format, Shares, Wide


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadParameters:
    """Which jobs to take; None where an option was left out.

    Attributes:
        log: files, patterns of such, or the URL of a store.
        log_format, fields, time_zone, clusters, strict: how to read it; a format of None is found
            out.
        organizations: cluster, or ALL_CLUSTERS, -> file with their tables.
        nodes, accounts: likewise, files with what Slurm printed of these.
        allow: what is odd about log and organizations, and right.
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
    nodes: Mapping[str, Path]
    accounts: Mapping[str, Path]
    allow: tuple[Doubt, ...]
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
        command: the command line that repeats the report.
    """

    file: Path | None
    pictures: Path | None
    command: str

    @property
    def wanted(self) -> bool:
        """Whether there is anything to write."""
        return self.file is not None or self.pictures is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleParameters:
    """What replays and audits have in common; None where an option was left out.

    Attributes:
        workload: which jobs.
        guarantee: with which each policy is replayed once more, and which an audit judges.
        orderings: how many random ones are sampled.
        wide, backfill: what becomes of jobs of several processors.
        cores: to compute on.
        json_file, report: what to write.
    """

    workload: WorkloadParameters
    guarantee: str | None
    orderings: int | None
    wide: Wide
    backfill: Backfill
    cores: int
    json_file: Path | None
    report: ReportParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayParameters(ScheduleParameters):
    """Parameters of `shapleyprio replay`; None where an option was left out.

    Attributes:
        policies: in the order given; empty for the usual ones.
        epsilon, confidence: how exact Rand is.
        estimation: of contributions by the policies shapley and live.
        horizon: age in seconds from which a part gains no more worth.
        respect_partitions: whether jobs only get processors of their partitions' nodes.
        schedule_file: what to write besides.
    """

    policies: tuple[str, ...]
    epsilon: float | None
    confidence: float | None
    estimation: Estimation
    horizon: int | None
    respect_partitions: bool
    schedule_file: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditParameters(ScheduleParameters):
    """Parameters of `shapleyprio audit`.

    Attributes:
        period: seconds.
    """

    period: int
