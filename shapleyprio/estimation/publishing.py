"""The door through which what became of estimates is published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shapleyprio.store import EstimateRow


class EstimatePublisher(Protocol):
    """Publishes what became of estimates, as the daemon's metrics do."""

    def publish_estimate(self, rows: Sequence[EstimateRow], seconds: float) -> None:
        """Publishes an estimate.

        Args:
            rows: one for each organization.
            seconds: that it took.
        """

    def publish_estimate_failure(self, result: str) -> None:
        """Counts an estimate that failed.

        Args:
            result: the word of an `EstimateResult` other than ``ok``.
        """

    def withdraw(self) -> None:
        """Shows the last estimate no more."""
