"""The daemon's requests to the worker, and the worker's answers: a line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shapleyprio.common.workers import WorkerMessage
from shapleyprio.store import DriftRow

SMALLER = "shorten drift.window, or lower drift.most_organizations"
"""What makes a replay take less time and memory."""


class DriftResult(StrEnum):
    """What became of a replay."""

    OK = "ok"
    NO_JOBS = "no_jobs"
    TOO_LONG = "too_long"
    TOO_LARGE = "too_large"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRequest(WorkerMessage):
    """What is to be replayed.

    Attributes:
        url: of the store, as SQLAlchemy has it.
        cluster: whose runs.
        organizations: names, in the order of the configuration.
        window: seconds.
        most_organizations: with more of them coalitions are sampled.
        memory_limit: bytes of address space.
        parents: organization -> its parent, of those that have one.
    """

    url: str
    cluster: str
    organizations: tuple[str, ...]
    window: int
    most_organizations: int
    memory_limit: int
    parents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftAnswer(WorkerMessage):
    """What came of it.

    Attributes:
        result: the rows are there if it is OK.
        why: one line for the admin if it is not.
        rows: of every schedule and organization.
        turns: schedule -> contested moments, and how many of them were out of turn; empty where
            decisions were not judged.
    """

    result: DriftResult
    why: str = ""
    rows: tuple[DriftRow, ...] = ()
    turns: Mapping[str, tuple[int, int]] = field(default_factory=dict)
