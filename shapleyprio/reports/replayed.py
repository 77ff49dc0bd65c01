"""A replay as its report sees it: summed up once, for all sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from shapleyprio.common.wording import offset_of_zone, zone_name
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.policies import REFERENCE
from shapleyprio.replay.results import Result
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload
from shapleyprio.reports.contributions import is_cheap, shapley_over_time
from shapleyprio.reports.html.colors import colors_of
from shapleyprio.reports.html.encodings import TimeAxis
from shapleyprio.reports.series import Series, even_moments, series_of

MOST_VALUES = 20_000
"""Largest number of values in a chart over time; with them a page stays small and quick."""

FEWEST_STEPS, MOST_STEPS = 40, 240
"""Bounds of the number of moments in a chart over time."""

DAYS = 3 * 86_400
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

    def of(self, policy: str) -> Schedule:
        """Returns the schedule of a policy."""
        return self.results[self.policies.index(policy)].schedule

    @cached_property
    def fair(self) -> Result | None:
        """That of the fair schedule."""
        return next(
            (result for result in self.results if result.schedule.policy == self.reference), None
        )

    @cached_property
    def shapley(self) -> Mapping[int, Sequence[Fraction]] | None:
        """Ref's contributions over time; None without Ref, or where they would take too long."""
        if self.fair is None or self.reference != REFERENCE or not is_cheap(self.workload):
            return None
        return shapley_over_time(self.workload, self.fair.schedule.seed)

    @cached_property
    def axis(self) -> TimeAxis:
        """Axis of time, in dates where the log's seconds are those since the epoch."""
        if self.log.epoch is not None:
            begin, end = self.shown(0), self.shown(self.workload.window.length)
            zone = zone_name(self.log.epoch + self.workload.window.start)
            return TimeAxis(title=f"time ({zone})", begin=begin, end=end, dates=True)
        unit = "days" if self.unit == 86_400 else "hours" if self.unit == 3600 else "seconds"
        end = self.shown(self.workload.window.length)
        return TimeAxis(title=f"{unit} from the window's start", begin=0, end=end)

    @cached_property
    def unit(self) -> int:
        """Seconds in the unit of time."""
        length = self.workload.window.length
        return 86_400 if length > DAYS else 3600 if length > 2 * 3600 else 1

    def shown(self, second: int) -> float:
        """Returns a second of the window as the axis shows it."""
        if self.log.epoch is not None:
            since_1970 = self.log.epoch + self.workload.window.start + second
            # integers are not rounded; browsers draw them as UTC, wherever they are
            return 1000 * (since_1970 + offset_of_zone(since_1970))
        return second / self.unit
