"""Arrivals: jobs that may be released soon, as the last weeks' were at that hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shapleyprio.common.wording import DAY
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.workloads.log import UNKNOWN

WEEK = 7 * DAY
MOST_WEEKS = 4
"""So many weeks ago the stretch may be that a future takes its arrivals from."""

LONGEST = MOST_WEEKS * 7
"""Days of arrivals at most: later ones would be taken from what is still to come."""

FURTHEST_SECONDS = LONGEST * DAY
"""What comes later than all futures are played is all alike."""


class Columns(NamedTuple):
    """Jobs; `position` orders those that are released at one second.

    A processing time is UNKNOWN if the job had not ended. A partition is an index into those of
    `Bays`, 0 without bays.
    """

    release: Ints
    organization: Ints
    processors: Ints
    limit: Ints
    user: Ints
    processing_time: Ints
    position: Ints
    partition: Ints

    def at(self, jobs: Ints) -> Columns:
        """Returns some of them, by indices."""
        return Columns(*(column[jobs] for column in self))


@dataclass(frozen=True, slots=True)
class ReleasedJobs:
    """What was released until now.

    Attributes:
        jobs: in order of release, none later than now.
        first: second from which on all are known.
    """

    jobs: Columns
    first: int

    def arrivals(
        self, t: int, days: int, predictor: Survivors, random: np.random.Generator
    ) -> Columns:
        """Draws what is released after t.

        Each day from t on is one of the same hours: one to four weeks before, or, if so much is
        not known, as many days before. More days begin with the same arrivals as fewer do.

        Args:
            t: now, in the same seconds as the releases.
            days: how many to draw.
            predictor: of processing times of jobs that have not ended yet.
            random: to draw with.
        """
        drawn = [self._day(t, day, predictor, random) for day in range(days)]
        found = Columns(*(np.concatenate(columns) for columns in zip(*drawn, strict=True)))
        return found.at(np.argsort(found.release, kind="stable"))

    def _day(self, t: int, day: int, predictor: Survivors, random: np.random.Generator) -> Columns:
        begin, chance = t + day * DAY, random.random()
        known = [s for s in shifts(day) if begin - s[0] >= self.first]
        weeks = [s for s in known if s[1]] or known
        if not weeks:
            return self.jobs.at(np.zeros(0, dtype=np.int64))
        shift = weeks[int(chance * len(weeks))][0]
        first, last = np.searchsorted(
            self.jobs.release, [begin - shift + 1, begin - shift + DAY + 1]
        )
        found = self.jobs.at(np.arange(first, last))
        lengths, unknown = found.processing_time, found.processing_time == UNKNOWN
        if unknown.any():
            asked = (found.user[unknown], found.limit[unknown], found.processors[unknown])
            lengths[unknown] = predictor.draw(*asked, 0 * asked[0], 1, random)[0]
        return found._replace(release=found.release + shift, processing_time=lengths)


def shifts(day: int) -> list[tuple[int, bool]]:
    """Returns how many seconds before a day from now on a stretch may lie, and if that is weeks.

    None reaches into what is still to come.
    """
    weeks = [w * WEEK for w in range(1, MOST_WEEKS + 1) if w * 7 > day]
    days = [d * DAY for d in range(day + 1, day + 7)]
    return [(shift, True) for shift in weeks] + [(shift, False) for shift in days]
