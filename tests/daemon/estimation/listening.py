"""What stands in for estimates where it matters only which pending jobs they take in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shapleyprio.config import Config
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.fairness.rule import Contributions


class Listening(LiveEstimates):
    """Keeps what each cycle would have estimated from, and estimates nothing."""

    def __init__(self) -> None:
        self.waiting: Sequence[WaitingJob] = ()

    def contributions(
        self,
        config: Config,
        waiting: Callable[[], Sequence[WaitingJob]],
        t: int,
        since: int = 0,
    ) -> Contributions | None:
        self.waiting = waiting()
        return None
