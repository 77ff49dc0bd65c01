"""Lengths: how long jobs may last, drawn from what is known of their users' past and of others'."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.coalitions.game import Ints
from shapleyprio.replay.coalitions.predictors import DEFAULT_SECONDS, plausible
from shapleyprio.replay.workloads.log import UNKNOWN

Floats = NDArray[np.float64]

PAST = 20
"""Recent jobs of a user from which lengths are drawn, of each kind."""

FADING = 0.9
"""What each of them counts for, compared with the next one."""

ENOUGH = 3
"""Jobs of a kind that are enough not to look at those of a wider kind."""

MOST_RUNNING = 5
"""Jobs of a kind that have not ended but count, those that have run longest."""

OTHERS = 3
"""So many of the last of a user's jobs count as much as all survivors of anybody's together."""

PAST_OF_ANYBODY = 100
"""Recent jobs of anybody from which lengths are drawn, too."""

FEWEST_COMPARED = 10
"""Jobs of a kind that are enough to say how long nine of ten last."""

OWN = 0.58
"""How far a job's own chance may shift it, compared with the chance that is its user's.

At 0 all jobs of a user stand at the same place among lengths; the correlation is 1 / (1 + OWN²).
"""

Kind = tuple[int, ...]


class Lengths:
    """Draws processing times. It learns of jobs in the order in which they ended."""

    def __init__(self) -> None:
        self._past: dict[Kind, deque[int]] = {}

    def learn(self, user: int, limit: int, processors: int, processing_time: int) -> None:
        """Takes in a job that has ended; user and limit are UNKNOWN if they are unknown."""
        for kinds, most in (
            (_kinds(user, limit, processors), PAST),
            (_kinds_of_anybody(limit), PAST_OF_ANYBODY),
        ):
            for kind in kinds:
                self._past.setdefault(kind, deque(maxlen=most)).append(processing_time)

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

        They are those of the user's jobs that lasted longer: with the same limit and processors,
        else with the same limit, else of any; the later they ended, the likelier; and of some of
        anybody's. Jobs that run longer already are taken in as what they are, of a length that is
        not known yet: those that ended alone would be too short. Who submits many jobs submits many
        that last about as long: in one draw the jobs of a user stand at near places among lengths.

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
        running = _running(jobs[:, elapsed > 0])
        drawn = np.empty((times, len(user)), dtype=np.int64)
        for row, same in zip(rows.T.tolist(), of_row, strict=True):
            drawn[:, same] = self._drawn_at(place[:, same], row, running)
        return np.stack([plausible(one, limit, elapsed) for one in drawn])

    def _drawn_at(
        self, place: Floats, job: Sequence[int], running: Mapping[Kind, list[int]]
    ) -> Ints:
        """Returns the processing times at places from 0 to 1 among those that a job may have."""
        user, limit, processors, elapsed = job
        own, weights, unended = self._of_user(_kinds(user, limit, processors), elapsed, running)
        others = self._of_anybody(_kinds_of_anybody(limit), elapsed)
        if not own and not others and not unended:  # as likely as not it lasts as long again
            ratio = 1 / np.maximum(1 - place, 0.1)
            return np.ceil(ratio * max(elapsed, DEFAULT_SECONDS // 2)).astype(np.int64)
        weights += [OTHERS / len(others) for _ in others]
        lengths = np.array(own + others, dtype=np.int64)
        lengths, weight = _with_unended(lengths, np.array(weights), unended)
        order = np.argsort(lengths, kind="stable")
        lengths, weight = lengths[order], weight[order]
        share = np.cumsum(weight) / weight.sum()
        found: Ints = lengths[np.minimum(np.searchsorted(share, place), len(lengths) - 1)]
        return found

    def _of_user(
        self, kinds: Iterable[Kind], elapsed: int, running: Mapping[Kind, list[int]]
    ) -> tuple[list[int], list[float], list[int]]:
        """Returns lengths, what each counts for, and what has elapsed of jobs that have not ended.

        All are longer than what has elapsed, and of the first kind of which there are enough, else
        of the last.
        """
        lengths, weights, unended = list[int](), list[float](), list[int]()
        for kind in kinds:
            past = self._past.get(kind, ())
            of_kind = [(one, FADING ** (len(past) - n)) for n, one in enumerate(past, start=1)]
            lengths = [one for one, _ in of_kind if one > elapsed]
            weights = [weight for one, weight in of_kind if one > elapsed]
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
    if not unended:
        return lengths, weight
    lengths, weight = np.append(lengths, 2 * unended[-1]), np.append(weight, 0.0)
    for seconds in unended:
        longer = lengths > seconds
        known = weight[longer].sum()
        if known > 0:
            weight[longer] *= 1 + 1 / known
        else:
            weight[-1] += 1
    return lengths, weight


def _kinds(user: int, limit: int, processors: int) -> tuple[Kind, ...]:
    """Returns of which kinds of a user's jobs one is, the narrowest first."""
    if user == UNKNOWN:
        return ()
    return (user, limit, processors), (user, limit), (user,)


def _kinds_of_anybody(limit: int) -> tuple[Kind, ...]:
    return (UNKNOWN, limit), (UNKNOWN,)


def _running(jobs: Ints) -> Mapping[Kind, list[int]]:
    """Returns what has elapsed of running jobs, by kind, of those that have run longest."""
    found: dict[Kind, list[int]] = {}
    for user, limit, processors, elapsed in jobs.T.tolist():
        for kind in _kinds(user, limit, processors):
            found.setdefault(kind, []).append(elapsed)
    return {kind: sorted(elapsed)[-MOST_RUNNING:] for kind, elapsed in found.items()}
