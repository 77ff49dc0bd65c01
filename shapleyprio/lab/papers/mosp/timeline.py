"""The number of processors taken of one cluster, from 0 on for ever."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Timeline:
    """A step function: processors taken, which changes where jobs start or end."""

    def __init__(self, processors: int) -> None:
        """Makes an empty cluster of that many processors."""
        self._processors = processors
        self._moments = [0]
        self._taken = [0]  # from the moment of the same index until the next
        self._last_start = 0
        self._crowded_for = 1  # so many processors are not free
        self._crowded_until = 0  # before this moment

    @property
    def moments(self) -> tuple[int, ...]:
        """The moments at which it changes, and 0; in order."""
        return tuple(self._moments)

    def free(self, t: int) -> int:
        """Returns how many processors are free from t on, if only for a second."""
        return self._processors - self._taken[bisect_right(self._moments, t) - 1]

    def free_until(self, t: int, processors: int) -> int | None:
        """Returns until when that many, which are free at t, stay free; None: for ever."""
        if t >= self._last_start:  # nothing starts any more, so it only gets emptier
            return None
        most = self._processors - processors
        for at in range(bisect_right(self._moments, t), len(self._moments)):
            if self._taken[at] > most:
                return self._moments[at]
        return None

    def earliest(
        self, processors: int, processing_time: int, before: int | None = None
    ) -> int | None:
        """Finds the first moment from which that many are free for so long, None: not before it."""
        most = self._processors - processors
        at = self._first_room(processors)
        start = self._moments[at]
        while at < len(self._moments) and self._moments[at] - start < processing_time:
            if self._taken[at] > most:
                start = self._moments[at + 1]  # the last step is empty, so there is a next one
            if before is not None and start >= before:
                return None
            at += 1
        return start

    def _first_room(self, processors: int) -> int:
        """Finds the first step with that many free.

        It is only ever found later, as nothing is given back, so for as many processors or more
        than last time the search goes on from there.
        """
        if processors < self._crowded_for:
            self._crowded_until = 0
        at = bisect_left(self._moments, self._crowded_until)
        while self._taken[at] > self._processors - processors:
            at += 1
        self._crowded_for, self._crowded_until = processors, self._moments[at]
        return at

    def take(self, start: int, processing_time: int, processors: int) -> None:
        """Reserves processors, which must be free, for [start, start + processing_time)."""
        begin, end = self._step(start), self._step(start + processing_time)
        for at in range(begin, end):
            self._taken[at] += processors
        self._last_start = max(self._last_start, start)

    def _step(self, moment: int) -> int:
        """Returns the index of the step that begins at this moment, which is made if need be."""
        at = bisect_left(self._moments, moment)
        if at == len(self._moments) or self._moments[at] != moment:
            self._moments.insert(at, moment)
            self._taken.insert(at, self._taken[at - 1])
        return at
