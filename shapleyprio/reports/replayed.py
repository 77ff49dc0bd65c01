"""A replay as its report sees it: summed up once, for all sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shapleyprio.common.wording import DAY, HOUR, offset_of_zone, zone_name
from shapleyprio.replay.measures.series import Series, even_moments, series_of
from shapleyprio.replay.policies import REFERENCE
from shapleyprio.replay.results import Result
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload
from shapleyprio.reports.html.encodings import TimeAxis, colors_of

MOST_VALUES = 20_000
"""Largest number of values in a chart over time; with them a page stays small and quick."""

FEWEST_STEPS, MOST_STEPS = 40, 240
"""Bounds of the number of moments in a chart over time."""

DAYS = 3 * DAY
"""Windows longer than that are shown in days."""


@dataclass(frozen=True)
class Replayed:
    """A replay, with what its sections share.

    Attributes:
        log: that was read.
        workload: what was taken out of it.
        results: of the policies, in order.
        reference: the policy whose schedule counts as fair.
    """

    log: Log
    workload: Workload
    results: Sequence[Result]
    reference: str = REFERENCE

    @cached_property
    def policies(self) -> list[str]:
        """Names, in order."""
        return [result.schedule.policy for result in self.results]

    @cached_property
    def colors(self) -> dict[str, str]:
        """Colors of the organizations."""
        return colors_of(self.workload.organizations)

    @cached_property
    def initial(self) -> str:
        """The policy that is shown first: what really happened, or the first that is not fair."""
        others = [policy for policy in self.policies if policy != self.reference]
        return "recorded" if "recorded" in others else (others or self.policies)[0]

    @cached_property
    def series(self) -> dict[str, Series]:
        """Series of each policy, at the same moments."""
        lines = 2 * len(self.workload.organizations) * len(self.results)
        steps = max(FEWEST_STEPS, min(MOST_STEPS, MOST_VALUES // lines))
        moments = even_moments(self.workload.window.length, steps)
        return {
            result.schedule.policy: series_of(self.workload, result.schedule, moments)
            for result in self.results
        }

    @cached_property
    def fair(self) -> Result | None:
        """That of the fair schedule."""
        return next(
            (result for result in self.results if result.schedule.policy == self.reference), None
        )

    @cached_property
    def axis(self) -> TimeAxis:
        """Axis of time, in dates where the log's seconds are those since the epoch."""
        if self.log.epoch is not None:
            begin, end = self.shown(0), self.shown(self.workload.window.length)
            zone = zone_name(self.log.epoch + self.workload.window.start)
            return TimeAxis(title=f"time ({zone})", begin=begin, end=end, dates=True)
        unit = "days" if self.unit == DAY else "hours" if self.unit == HOUR else "seconds"
        end = self.shown(self.workload.window.length)
        return TimeAxis(title=f"{unit} from the window's start", begin=0, end=end)

    @cached_property
    def unit(self) -> int:
        """Seconds in the unit of time."""
        length = self.workload.window.length
        return DAY if length > DAYS else HOUR if length > 2 * HOUR else 1

    def shown(self, second: int) -> float:
        """Returns a second of the window as the axis shows it."""
        if self.log.epoch is not None:
            since_1970 = self.log.epoch + self.workload.window.start + second
            # integers are not rounded; browsers draw them as UTC, wherever they are
            return 1000 * (since_1970 + offset_of_zone(since_1970))
        return second / self.unit
