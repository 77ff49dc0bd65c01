"""The daemon's requests to the worker, and the worker's answers: a line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shapleyprio.common.workers import WorkerMessage
from shapleyprio.store import EstimateRow, WaitingWork


class WorkResult(StrEnum):
    """What became of a request for an estimate, or for forecasts."""

    OK = "ok"
    NO_PROCESSORS = "no_processors"
    TOO_LONG = "too_long"
    TOO_LARGE = "too_large"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAnswer(WorkerMessage):
    """What came of a request to a worker.

    Attributes:
        result: what was asked for is there if it is OK.
        why: one line for the admin if it is not.
        cpu_seconds: that it took.
    """

    result: WorkResult
    why: str = ""
    cpu_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A pending job that lacks nothing but its turn; or several tasks like it.

    Attributes:
        job_id: Slurm's own number.
        organization: whose job it is.
        account, user: of the job.
        release: second since which it counts, or from which it will.
        limit: its time limit in seconds, None without one.
        tasks: how many may run at the same time; 1 unless it is a part of an array.
        processors: how many it asks for, all its tasks together.
        partition: in which it waits.
    """

    job_id: int
    organization: str
    account: str
    user: str
    release: int
    limit: int | None
    tasks: int
    processors: int
    partition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest(WorkerMessage):
    """Whose contributions are to be estimated.

    Attributes:
        organizations: names, in the order of the configuration.
        waiting: the jobs that wait.
        overlap: seconds of accounting that every cycle reads again.
        coalitions: to value where there are too many organizations to value all.
        seed: by which these are drawn.
        parents: organization -> its parent, of those that have one.
    """

    organizations: tuple[str, ...]
    waiting: tuple[WaitingJob, ...]
    overlap: int
    coalitions: int
    seed: int
    parents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateAnswer(WorkAnswer):
    """What came of it.

    Attributes:
        rows: one for each organization, in the order asked for.
        waiting: what each user's pending jobs brought into it, the most first.
    """

    rows: tuple[EstimateRow, ...] = ()
    waiting: tuple[WaitingWork, ...] = ()
