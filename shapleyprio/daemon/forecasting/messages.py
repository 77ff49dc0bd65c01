"""The daemon's requests for forecasts, and the worker's answers: a line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shapleyprio.common.wording import HOUR
from shapleyprio.common.workers import WorkerMessage
from shapleyprio.daemon.estimation.messages import WaitingJob, WorkAnswer
from shapleyprio.fairness.worth import Trajectory
from shapleyprio.slurm.reasons import SharedBy
from shapleyprio.store import ForecastRow

FRESH_SECONDS = HOUR
"""So old a forecast may be to be shown, and what a cycle found, to forecast from."""


@dataclass(frozen=True, slots=True)
class Competitor:
    """An organization as it stands when forecasts are made, NOBODY perhaps.

    Attributes:
        name: its name.
        score: by which it is ranked, now and later; None for NOBODY, whom all others precede.
    """

    name: str
    score: Trajectory | None


class KnownNode(NamedTuple):
    """A node with processors for work.

    Attributes:
        owner: whose it is, an index among the competitors.
        bay: in which it is, an index among the bays.
        processors: how many it has for work.
        busy: how many of them jobs hold.
    """

    owner: int
    bay: int
    processors: int
    busy: int


class Closing(NamedTuple):
    """From when to when all nodes of a partition are reserved, in seconds on one clock."""

    begin: int
    end: int


class MetLimit(NamedTuple):
    """A limit that lets no more of some waiting jobs run at once than run now.

    Attributes:
        jobs: their numbers, the first one first.
        shared_by, name: whose jobs use up what the limit allows: a user in an account, an account,
            or an array by its number.
        by_processors: whether it limits what jobs have, not how many run.
    """

    jobs: tuple[int, ...]
    shared_by: SharedBy
    name: str
    by_processors: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitCost:
    """What a long time limit costs a job that waits.

    Attributes:
        jobs: of its user's, like it, with which it is compared: the last ones that ended.
        limit: seconds that would have been enough for nine of ten of them, in whole minutes.
        sooner: seconds by which it would start sooner with that limit, in the mean of the futures.
    """

    jobs: int
    limit: int
    sooner: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRequest(WorkerMessage):
    """Who competes for what, as a cycle found it.

    Attributes:
        t: second of the cycle.
        rule: that ranked.
        competitors: in the order of the configuration, which decides ties.
        bays: the partitions of each, those in the fewest first.
        nodes: by name.
        waiting: the jobs that wait, in the order in which Slurm considers those of one
            organization; and those that are to begin later.
        overlap: seconds of accounting that every cycle reads again.
        after: waiting job -> those that have to end before it is released, by their numbers.
        met_limits: those that keep waiting jobs back.
        asked: a job that nobody has submitted, behind all others, of which alone a forecast is
            wanted; None for forecasts of those that wait.
        closings: partition -> from when to when it will have no node for jobs, the first one first.
        with_limit: number of a job that waits, of which alone it is wanted what its limit costs.
        parents: organization -> its parent, of those that have one.
    """

    t: int
    rule: str
    competitors: tuple[Competitor, ...]
    bays: tuple[tuple[str, ...], ...]
    nodes: Mapping[str, KnownNode]
    waiting: tuple[WaitingJob, ...]
    overlap: int
    after: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    met_limits: tuple[MetLimit, ...] = ()
    asked: WaitingJob | None = None
    closings: Mapping[str, tuple[Closing, ...]] = field(default_factory=dict)
    with_limit: int | None = None
    parents: Mapping[str, str] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        """Partition -> its processors."""
        found: dict[str, int] = {}
        for node in self.nodes.values():
            for name in self.bays[node.bay]:
                found[name] = found.get(name, 0) + node.processors
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastAnswer(WorkAnswer):
    """What came of it.

    Attributes:
        rows: one for each job of the request, or that for the job that was asked for; those far
            behind in the queues of their organizations are left out where very many wait.
        small_waits: organization -> seconds that a job of one processor and a minute would wait,
            in half of all futures at most, where the most processors are; without those that would
            not start.
        cost: of the limit that was asked for; None if it costs nothing that is worth a word.
    """

    rows: tuple[ForecastRow, ...] = ()
    small_waits: Mapping[str, int] = field(default_factory=dict)
    cost: LimitCost | None = None
