"""What is estimated, forecast and replayed beside the cycles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from shapleyprio.fairness.worth import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """An organization's estimated contribution, and what it rests on.

    Attributes:
        t: second for which it was estimated, since the epoch.
        organization: to which it belongs.
        begin: first second of which the coalitions were simulated.
        value, rate, acceleration, denominator: of φ in part-seconds at t and later, see
            `Trajectory`.
        error: standard error of φ in part-seconds; 0 if all coalitions were valued.
        utility: ψ of its jobs, of their parts from the begin on.
        alone: v({u}), what its jobs would be worth on its processors alone.
        without: v(N∖u), what the others' jobs would be worth on the others' processors.
        parts: of its jobs from the begin on.
        coalitions: how many were valued.
    """

    t: int
    organization: str
    begin: int
    value: int
    rate: int
    acceleration: int
    denominator: int
    error: int
    utility: int
    alone: int
    without: int
    parts: int
    coalitions: int

    @property
    def contribution(self) -> Trajectory:
        """φ in part-seconds, at t and later."""
        return Trajectory(self.value, self.rate, self.acceleration, self.denominator)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingWork:
    """The waiting work that a user's jobs of one account bring into the newest estimate.

    Attributes:
        organization: whose account it is.
        account, user: of the jobs.
        jobs: how many, tasks of arrays each.
        processor_seconds: their processors times the seconds that they are expected to last.
    """

    organization: str
    account: str
    user: str
    jobs: int
    processor_seconds: int


LATER = 2**62
"""Second of a forecast: later than any future was played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRow:
    """When a waiting job will start, as was forecast; seconds since the epoch, LATER perhaps.

    Attributes:
        job_id: Slurm's own number, that of the array for a part of one.
        t: second at which it was forecast.
        organization: whose job it is.
        median: half of the futures had started it by then.
        early, late: the interval that was told.
        drawn_early, drawn_late: that of the futures, before it was widened by what was observed.
        within_hour: in so many of 100 futures it starts within an hour from t on.
        waits_for: ``turn``, ``processors``, ``time`` (at which it is to begin), ``dependency``, or
            ``reservation``.
    """

    job_id: int
    t: int
    organization: str
    median: int
    early: int
    late: int
    drawn_early: int
    drawn_late: int
    within_hour: int
    waits_for: str

    def not_before(self, t: int) -> Self:
        """Returns the same of a job that has not started by then."""
        return replace(
            self, median=max(self.median, t), early=max(self.early, t), late=max(self.late, t)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldForecast(ForecastRow):
    """A forecast that is judged when its job starts.

    Attributes:
        start: when it did, since the epoch; None if it has not yet.
    """

    start: int | None

    @property
    def held(self) -> bool:
        """Whether the job started in the interval that was told."""
        return self.start is not None and self.early <= self.start <= self.late


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRow:
    """What a schedule of a replayed window gave an organization, beside what was fair.

    Attributes:
        t: end of the window, in seconds since the epoch.
        organization: that has the utility.
        schedule: ``recorded``, ``directcontr``, ``fairshare``, or ``alone`` for what it would
            have had alone, with its own jobs and processors.
        begin: of the window.
        reference: what counts as fair: ``ref``, or ``rand`` where coalitions were sampled.
        utility: its ψ in the schedule at t, in part-seconds; v({u}) if alone.
        fair: its ψ in the reference's schedule.
        parts: that all organizations' jobs completed in the reference's schedule.
    """

    t: int
    organization: str
    schedule: str
    begin: int
    reference: str
    utility: int
    fair: int
    parts: int

    @property
    def drift(self) -> Fraction:
        """(ψ − ψ*) / p_tot: seconds by which the parts of all came too early because of it."""
        return Fraction(self.utility - self.fair, self.parts)
