"""What work is worth, exactly: at any time, and how that goes on until something happens.

The strategy-proof utility ψsp (SPAA 2013, Eq. 3): a unit-size part executed in [τ, τ+1) is worth
t − τ at time t. The parts of one processor that works from s to e are therefore worth
T(t − s) − T(t − e), with the triangular number T(n) = n(n+1)/2 for n ≥ 0 and 0 before: an event +1
at s and an event −1 at e. With a horizon H every part is worth min(t − τ, H) =
(t − τ)⁺ − (t − H − τ)⁺, which is the same sum once more, taken at t − H.

So all that a sum of runs needs is three moments of its events, and its worth at any time after
the last event is a quadratic polynomial in t, a trajectory. Python's integers do not overflow.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Moments:
    """Σw, Σwτ and Σwτ² over events of w processors at second τ (w < 0 where they stop).

    >>> moments = Moments()
    >>> moments.add(0, 1)   # a processor starts at 0 ...
    >>> moments.add(3, -1)  # ... and stops at 3
    >>> moments.worth(13)   # parts of age 13, 12 and 11
    36
    """

    processors: int = 0
    first: int = 0
    second: int = 0

    def add(self, second: int, processors: int) -> None:
        """Takes in an event: processors start (or, negative, stop) working at that second."""
        self.processors += processors
        weighted = processors * second
        self.first += weighted
        self.second += weighted * second

    def stopped(self, second: int) -> Moments:
        """Returns the same with all processors stopping at that second; no event may be later."""
        same = Moments(self.processors, self.first, self.second)
        same.add(second, -self.processors)
        return same

    def worth(self, t: int) -> int:
        """Returns all parts' worth at t, Σ w·T(t − τ), in part-seconds; no event may be after t."""
        doubled = self.processors * t * (t + 1) - self.first * (2 * t + 1) + self.second
        return doubled // 2

    def parts(self, t: int) -> int:
        """Returns the unit-size parts completed by t, Σ w·(t − τ); no event may be after t."""
        return self.processors * t - self.first


def worth(begin: int, end: int | None, t: int, *, horizon: int | None = None) -> int:
    """Returns the worth at t of one processor working from begin to end (Eq. 3 of SPAA 2013).

    Args:
        begin: second of the first part.
        end: second after the last one; None while it runs.
        t: when; parts after t do not count.
        horizon: age in seconds beyond which a part gains nothing more; None for never.

    >>> worth(0, 3, 13)
    36
    >>> worth(0, 3, 13, horizon=10)
    30
    """
    total = _triangular(t - begin) - (0 if end is None else _triangular(t - end))
    if horizon is not None:
        total -= worth(begin, end, t - horizon)
    return total


def _triangular(n: int) -> int:
    return n * (n + 1) // 2 if n > 0 else 0


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A value from a time t on, for as long as nothing starts or ends.

    Attributes:
        value: at t, times the denominator, and so are the next two.
        rate: gain of the first second without the acceleration's part.
        acceleration: by how much the gain of a second exceeds that of the second before.
        denominator: above 0.

    >>> [Trajectory(value=5, rate=0, acceleration=-1).after(seconds) for seconds in range(4)]
    [5, 4, 2, -1]
    """

    value: int
    rate: int
    acceleration: int
    denominator: int = 1

    def after(self, seconds: int) -> int:
        """Returns the value so many seconds after t, rounded down.

        >>> Trajectory(value=7, rate=1, acceleration=0, denominator=2).after(3)
        5
        """
        return self._after(seconds) // self.denominator

    def later(self, seconds: int) -> Trajectory:
        """Returns the same from a later time on.

        >>> path = Trajectory(value=5, rate=2, acceleration=3)
        >>> path.later(4).after(6) == path.after(10)
        True
        """
        rate = self.rate + seconds * self.acceleration
        return Trajectory(self._after(seconds), rate, self.acceleration, self.denominator)

    def standing_still(self) -> Trajectory:
        """Returns the same value, and that it stays so."""
        return Trajectory(self.value, 0, 0, self.denominator)

    def __add__(self, other: Trajectory) -> Trajectory:
        """Adds exactly.

        >>> Trajectory(1, 0, 0, 2) + Trajectory(3, 1, 0)
        Trajectory(value=7, rate=2, acceleration=0, denominator=2)
        """
        common = self.denominator * other.denominator
        if self.denominator == other.denominator:
            common = self.denominator
        ours, theirs = common // self.denominator, common // other.denominator
        return Trajectory(
            self.value * ours + other.value * theirs,
            self.rate * ours + other.rate * theirs,
            self.acceleration * ours + other.acceleration * theirs,
            common,
        )

    def __neg__(self) -> Trajectory:
        """Negates exactly."""
        return Trajectory(-self.value, -self.rate, -self.acceleration, self.denominator)

    def __sub__(self, other: Trajectory) -> Trajectory:
        """Subtracts exactly."""
        return self + -other

    def _after(self, seconds: int) -> int:
        gained = seconds * self.rate + seconds * (seconds + 1) // 2 * self.acceleration
        return self.value + gained


NOTHING = Trajectory(0, 0, 0)
