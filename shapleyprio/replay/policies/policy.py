"""The definition of a policy of the replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapleyprio.replay.coalitions.options import DEFAULT_ESTIMATION, Estimation
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.choices import DEFAULT_SEED, Guarantee

if TYPE_CHECKING:
    from shapleyprio.replay.coalitions.estimate import Estimate
    from shapleyprio.replay.engine.schedule import Schedule
    from shapleyprio.replay.workloads.workload import Workload

ORDERINGS = 15
"""Random orderings that rand samples by default, as in the papers' experiments."""


def no_progress(_second: int) -> None:
    """Shows no progress."""


def not_kept(_second: int, _estimate: Estimate) -> None:
    """Keeps no estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a policy is run with.

    Attributes:
        seed: of all random draws.
        orderings: random orderings that rand samples.
        cores: processors that ref, shapley and live may compute on.
        estimation: of contributions by shapley and live.
        guarantee: when a job goes first that fits into what its organization lends in its
            partition; None for never. Those that say what is fair or was, have none.
        progress: called with the second of the window that was reached.
        estimated: called by shapley and live with each estimate, and the second that it is of.
    """

    seed: int = DEFAULT_SEED
    orderings: int = ORDERINGS
    cores: int = 1
    estimation: Estimation = DEFAULT_ESTIMATION
    guarantee: Guarantee | None = None
    progress: ProgressCallback = no_progress
    estimated: Callable[[int, Estimate], None] = not_kept


Scheduler = Callable[["Workload", RunOptions], "Schedule"]
"""Makes the schedule of a workload; raises PolicyError where it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A way to decide which organization is served next.

    Attributes:
        name: as on the command line and in the results.
        decision: which organization is served next, for the help text and the documentation.
        source: the paper, and where in it; empty if it comes from none.
        schedule: makes a schedule; imports what it needs when it is called.
        heeds: the attributes of `Estimation` that it heeds.
        code: of its decision in C (`engine.codes`), if it looks at one schedule alone and, but for
            sums of what was executed, not at how that came about.
    """

    name: str
    decision: str
    source: str = ""
    schedule: Scheduler
    heeds: tuple[str, ...] = ()
    code: int | None = None

    @property
    def uses_history(self) -> bool:
        """Whether it makes use of a workload's history: it does if it predicts."""
        return "predictor" in self.heeds
