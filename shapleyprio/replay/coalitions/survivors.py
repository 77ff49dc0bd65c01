"""How long jobs may last, by those of their users and of others that lasted longer so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.coalitions.game import Ints
from shapleyprio.replay.workloads.log import UNKNOWN

Floats = NDArray[np.float64]

DEFAULT_SECONDS = 3600
"""Expected of a job of which nothing is known."""

PAST = 20
"""Recent jobs of a user that count, of each kind."""

FADED = tuple(0.9**later for later in range(PAST))
"""What each of them counts for, the last one first."""

ENOUGH = 3
"""Jobs of a kind that are enough not to look at those of a wider kind."""

MOST_RUNNING = 5
"""Jobs of a kind that have not ended but count, those that have run longest."""

OTHERS = 3
"""So many of the last of a user's jobs count as much as all survivors of anybody's together."""

PAST_OF_ANYBODY = 100
"""Recent jobs of anybody that count, too."""

FEWEST_COMPARED = 10
"""Jobs of a kind that are enough to say how long nine of ten last."""

OWN = 0.58
"""How far a job's own chance may shift it, compared with the chance that is its user's.

At 0 all jobs of a user stand at the same place among lengths; the correlation is 1 / (1 + OWN²).
"""

Kind = tuple[int, ...]


class Survivors:
    """Those of past jobs that lasted longer than a job has so far, and how likely it is as long.

    They are of the job's user: with the same limit and processors, else with the same limit, else
    any; the later they ended, the likelier; and some of anybody's. Jobs that run longer already are
    taken in as what they are, of a length that is not known yet: those that ended alone would be
    too short. It learns of jobs in the order in which they ended.
    """

    def __init__(self) -> None:
        self._past: dict[Kind, deque[int]] = {}

    def learn(self, user: int, limit: int, processors: int, processing_time: int) -> None:
        """Takes in a job that has ended, see `Predictor`; one of no length says nothing."""
        if processing_time <= 0:
            return
        for kinds, most in (
            (_kinds(user, limit, processors), PAST),
            (_kinds_of_anybody(limit), PAST_OF_ANYBODY),
        ):
            for kind in kinds:
                self._past.setdefault(kind, deque(maxlen=most)).append(processing_time)

    def predict(self, user: Ints, limit: Ints, processors: Ints, elapsed: Ints) -> Ints:
        """Predicts processing times by their means, see `Predictor`.

        A length beyond the limit counts as the limit: then the job is ended.
        """
        running = _running(user, limit, processors, elapsed)
        jobs = list(
            zip(*(column.tolist() for column in (user, limit, processors, elapsed)), strict=True)
        )
        of_job = {job: self._mean(job, running) for job in set(jobs)}  # many wait alike
        expected = np.array([of_job[job] for job in jobs], dtype=np.int64)
        return plausible(expected, limit, elapsed)

    def nine_of_ten(self, user: int, limit: int, processors: int) -> tuple[int, int]:
        """Returns how long nine of ten of a user's last jobs lasted at most that are like one.

        Args:
            user: of that one, UNKNOWN where not known.
            limit: that it asks for.
            processors: that it wants.

        Returns:
            how many jobs were looked at, 0 if too few are known, and seconds.
        """
        for kind in _kinds(user, limit, processors):
            lengths = sorted(self._past.get(kind, ()))
            if len(lengths) >= FEWEST_COMPARED:
                return len(lengths), lengths[-(-9 * len(lengths) // 10) - 1]
        return 0, 0

    def draw(
        self,
        user: Ints,
        limit: Ints,
        processors: Ints,
        elapsed: Ints,
        times: int,
        random: np.random.Generator,
    ) -> Ints:
        """Draws processing times, each longer than what has elapsed.

        Who submits many jobs submits many that last about as long: in one draw the jobs of a user
        stand at near places among lengths.

        Args:
            user: int64[n], code of each unfinished job's user, UNKNOWN where not known.
            limit: int64[n], requested processing time, UNKNOWN where not known.
            processors: int64[n], that each has or wants.
            elapsed: int64[n], seconds each has run; 0 if it has not started.
            times: how many draws of all of them.
            random: to draw with.

        Returns:
            int64[times, jobs], seconds; at most the limit, unless that has passed.
        """
        if len(user) == 0:
            return np.empty((times, 0), dtype=np.int64)
        place = _places(user, times, random)
        jobs = np.stack((user, limit, processors, elapsed))
        rows, alike = np.unique(jobs, axis=1, return_inverse=True)
        alike = alike.reshape(-1)
        order = np.argsort(alike, kind="stable")
        of_row = np.split(order, np.cumsum(np.bincount(alike))[:-1])
        running = _running(user, limit, processors, elapsed)
        drawn = np.empty((times, len(user)), dtype=np.int64)
        for row, same in zip(rows.T.tolist(), of_row, strict=True):
            drawn[:, same] = self._drawn_at(place[:, same], row, running)
        return np.stack([plausible(one, limit, elapsed) for one in drawn])

    def _mean(self, job: Sequence[int], running: Mapping[Kind, list[int]]) -> int:
        """Returns the mean of what a job may last, at most its limit; UNKNOWN if none is known."""
        lengths, weights = self._possible(job, running)
        if len(lengths) == 0:
            return UNKNOWN
        _, limit, _, elapsed = job
        if elapsed < limit:
            lengths = np.minimum(lengths, limit)
        return round(float(lengths @ weights / weights.sum()))

    def _drawn_at(
        self, place: Floats, job: Sequence[int], running: Mapping[Kind, list[int]]
    ) -> Ints:
        """Returns the processing times at places from 0 to 1 among those that a job may have."""
        lengths, weights = self._possible(job, running)
        if len(lengths) == 0:  # as likely as not it lasts as long again
            ratio = 1 / np.maximum(1 - place, 0.1)
            return np.ceil(ratio * max(job[-1], DEFAULT_SECONDS // 2)).astype(np.int64)
        order = np.argsort(lengths, kind="stable")
        lengths, weights = lengths[order], weights[order]
        share = np.cumsum(weights) / weights.sum()
        found: Ints = lengths[np.minimum(np.searchsorted(share, place), len(lengths) - 1)]
        return found

    def _possible(
        self, job: Sequence[int], running: Mapping[Kind, list[int]]
    ) -> tuple[Ints, Floats]:
        """Returns how long a job may last, and what each of these lengths counts for."""
        user, limit, processors, elapsed = job
        own, weights, unended = self._of_user(_kinds(user, limit, processors), elapsed, running)
        others = self._of_anybody(_kinds_of_anybody(limit), elapsed)
        weights += [OTHERS / max(len(others), 1)] * len(others)
        lengths, counts = np.array(own + others, dtype=np.int64), np.array(weights)
        return _with_unended(lengths, counts, unended) if unended else (lengths, counts)

    def _of_user(
        self, kinds: Iterable[Kind], elapsed: int, running: Mapping[Kind, list[int]]
    ) -> tuple[list[int], list[float], list[int]]:
        """Returns lengths, what each counts for, and what has elapsed of jobs that have not ended.

        All are longer than what has elapsed, and of the first kind of which there are enough, else
        of the last.
        """
        lengths, weights, unended = list[int](), list[float](), list[int]()
        for kind in kinds:
            latest = zip(reversed(self._past.get(kind, ())), FADED, strict=False)
            longer = [(one, weight) for one, weight in latest if one > elapsed]
            lengths, weights = [one for one, _ in longer], [weight for _, weight in longer]
            unended = [one for one in running.get(kind, ()) if one > elapsed]
            if len(lengths) + len(unended) >= ENOUGH:
                break
        return lengths, weights, unended

    def _of_anybody(self, kinds: Iterable[Kind], elapsed: int) -> list[int]:
        """Returns which are longer, of the first kind with enough of them, else of the last."""
        longer: list[int] = []
        for kind in kinds:
            longer = [one for one in self._past.get(kind, ()) if one > elapsed]
            if len(longer) >= ENOUGH:
                break
        return longer


def _places(user: Ints, times: int, random: np.random.Generator) -> Floats:
    """Returns the place of each job among lengths in each draw, evenly from 0 to 1."""
    _, whose = np.unique(user, return_inverse=True)
    of_user = random.random((times, whose.max() + 1))[:, whose.reshape(-1)]
    both = of_user + OWN * random.random((times, len(user)))
    low, high = (np.maximum(OWN - end, 0) ** 2 for end in (both, 1 + OWN - both))
    place: Floats = both - OWN / 2 + (low - high) / (2 * OWN)
    return place


def _with_unended(lengths: Ints, weight: Floats, unended: Sequence[int]) -> tuple[Ints, Floats]:
    """Lets jobs that have not ended count for as much as the last one that has.

    Each may last as long as any that lasted longer; if none has, twice as long as the longest (the
    estimate of Kaplan and Meier, as far as there are longer ones).

    Args:
        lengths: of jobs that have ended.
        weight: of each.
        unended: what has elapsed, ascending.
    """
    longer = lengths > np.array(unended)[:, np.newaxis]
    known = longer @ weight
    share = np.divide(1, known, out=np.zeros(len(unended)), where=known > 0)
    twice, unknown = 2 * unended[-1], np.count_nonzero(known == 0)
    return np.append(lengths, twice), np.append(weight * (1 + share @ longer), unknown)


def _kinds(user: int, limit: int, processors: int) -> tuple[Kind, ...]:
    """Returns of which kinds of a user's jobs one is, the narrowest first."""
    if user == UNKNOWN:
        return ()
    return (user, limit, processors), (user, limit), (user,)


def _kinds_of_anybody(limit: int) -> tuple[Kind, ...]:
    return (UNKNOWN, limit), (UNKNOWN,)


def _running(user: Ints, limit: Ints, processors: Ints, elapsed: Ints) -> Mapping[Kind, list[int]]:
    """Returns what has elapsed of running jobs, by kind, of those that have run longest."""
    found: dict[Kind, list[int]] = {}
    for place in np.flatnonzero(elapsed > 0).tolist():
        for kind in _kinds(int(user[place]), int(limit[place]), int(processors[place])):
            found.setdefault(kind, []).append(int(elapsed[place]))
    return {kind: sorted(of_kind)[-MOST_RUNNING:] for kind, of_kind in found.items()}


def plausible(expected: Ints, limit: Ints, elapsed: Ints) -> Ints:
    """Returns more than has elapsed; the limit, or an hour, where nothing is known."""
    fallback = np.where(limit == UNKNOWN, np.maximum(2 * elapsed, DEFAULT_SECONDS), limit)
    found = np.where(expected == UNKNOWN, fallback, expected)
    going_on = np.where(found <= elapsed, 2 * elapsed + 1, found)
    return np.where(elapsed < limit, np.minimum(going_on, limit), going_on)
