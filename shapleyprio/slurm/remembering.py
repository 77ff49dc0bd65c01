"""What is remembered of Slurm's answers: in a cycle for all pools, and from cycle to cycle.

Only what is asked of the whole cluster is shared by its pools. What a pool asks about jobs of its
own it asks Slurm itself, and what it writes as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol, TypeVar

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.layout import Layout, Node
from shapleyprio.slurm.port import Controller, Malformed, PendingQueue, StartedJob

FORGOTTEN_FROM = 1.02
"""There are so many times those that are brought when the others are forgotten."""

Key = TypeVar("Key")
Value = TypeVar("Value")


def forget_others(known: dict[Key, Value], brought: Sequence[object]) -> None:
    """Forgets what the last answer did not bring, if it is much.

    Args:
        known: what is remembered; changed in place, since a copy would take as much memory
            once more.
        brought: the very same objects that the last answer brought.
    """
    if len(known) > FORGOTTEN_FROM * len(brought):
        kept = set(map(id, brought))
        for gone in [key for key, value in known.items() if id(value) not in kept]:
            del known[gone]


Answer = TypeVar("Answer")

LONGEST_SECONDS = 30.0
"""What was read longer ago is reread for the next pool, whatever kept the one before."""


class Source(Protocol):
    """Answers what a cycle asks of a whole cluster; `Slurm` says what each question means."""

    def controller(self) -> Controller:
        """Asks for the controller's state before anything else is read."""

    def layout(self) -> Layout:
        """Reads nodes, partitions, accounts, QOS and priority settings."""

    def nodes(self) -> Mapping[str, Node]:
        """Reads the nodes as they are now."""

    def pending(self) -> PendingQueue:
        """Reads the jobs that wait."""

    def started(self) -> Sequence[StartedJob]:
        """Reads the jobs that have started and not ended."""

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Yields accounting records of jobs that existed at some time in [since, until]."""


@dataclass(frozen=True, slots=True)
class _Window:
    """What accounting has answered, as a whole."""

    since: int
    until: int
    records: list[JobRecord | Malformed]


class SharedReading:
    """A cluster at one moment: each question is put to Slurm once, and answered to all pools.

    What fails is not remembered: the next pool asks again, so a pool that fails on an answer
    does not stop the others.

    Args:
        slurm: the cluster.
        clock: seconds on a monotonic clock.
    """

    def __init__(self, slurm: Source, clock: Callable[[], float] = monotonic) -> None:
        self._slurm = slurm
        self._clock = clock
        self._begun = clock()
        self._answers: dict[str, Any] = {}
        self._window: _Window | None = None

    @property
    def is_old(self) -> bool:
        """Whether a pool should not go by it any more."""
        return self._clock() - self._begun > LONGEST_SECONDS

    def controller(self) -> Controller:
        """Returns the controller's state as it was before anything else was read."""
        return self._once("controller", self._slurm.controller)

    def layout(self) -> Layout:
        """Reads nodes, partitions, accounts, QOS and priority settings."""
        return self._once("layout", self._slurm.layout)

    def nodes(self) -> Mapping[str, Node]:
        """Reads the nodes."""
        return self._once("nodes", self._slurm.nodes)

    def pending(self) -> PendingQueue:
        """Reads the jobs that wait."""
        return self._once("pending", self._slurm.pending)

    def started(self) -> Sequence[StartedJob]:
        """Reads the jobs that have started and not ended."""
        return self._once("started", self._slurm.started)

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Yields accounting records; those of a window that has been read whole are not read again.

        Each pool has a watermark of its own, so one that is behind asks for more than the others.
        """
        known = self._window
        if known is None or until != known.until or since < known.since:
            return self._read(since, until)
        if since == known.since:
            return iter(known.records)
        return (record for record in known.records if _existed(record, since))

    def _read(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        found = []
        for record in self._slurm.records(since, until):
            found.append(record)
            yield record
        self._window = _Window(since, until, found)

    def _once(self, name: str, ask: Callable[[], Answer]) -> Answer:
        if name not in self._answers:
            self._answers[name] = ask()
        found: Answer = self._answers[name]
        return found


def _existed(record: JobRecord | Malformed, since: int) -> bool:
    return isinstance(record, Malformed) or record.end is None or record.end >= since
