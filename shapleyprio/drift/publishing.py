"""The door through which the live drift publishes the result of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from shapleyprio.store import DriftRow


class DriftPublisher(Protocol):
    """Publishes the results of replays, as the daemon's metrics do."""

    def of(self, ledger: str) -> DriftPublisher:
        """Returns what publishes the results of one ledger of the cluster."""

    def publish_drifts(
        self, rows: Sequence[DriftRow], turns: Mapping[str, tuple[int, int]], seconds: float
    ) -> None:
        """Publishes the results of a successful replay.

        Args:
            rows: one for each schedule and organization, at least one.
            turns: schedule -> contested moments, and how many of them were out of turn.
            seconds: duration of the replay.
        """

    def publish_drift_failure(self, result: str) -> None:
        """Withdraws the rows published before, and counts a replay without rows.

        Args:
            result: the word of a `DriftResult` other than ``ok``.
        """
