"""The requests to the worker that holds pyslurm, and its answers: a line of JSON each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shapleyprio.common.workers import WorkerMessage


class Question(StrEnum):
    """What the worker can be asked for."""

    CLUSTER = "cluster"
    CONTROLLER = "controller"
    WRITE = "write"


class Outcome(StrEnum):
    """What became of a request.

    ``failed``: Slurm did not do it; ``unusable``: pyslurm does not fit this host or this cluster.
    """

    OK = "ok"
    FAILED = "failed"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class PyslurmRequest(WorkerMessage):
    """A question, or priorities to write.

    Attributes:
        question: which.
        attribute: to write, as pyslurm calls it.
        values: number of a job -> its new value.
        until: second of the monotonic clock after which no other one is written.
    """

    question: Question
    attribute: str = ""
    values: Mapping[str, int] = field(default_factory=dict)
    until: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class PyslurmAnswer(WorkerMessage):
    """What came of it.

    Attributes:
        outcome: in a word.
        numbers: of the controller, by the names that `Controller` has for them.
        name: of the cluster.
        refused: number of a job -> why Slurm would not change it.
        why: it failed or pyslurm is unusable: one line.
    """

    outcome: Outcome = Outcome.OK
    numbers: Mapping[str, int] = field(default_factory=dict)
    name: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
