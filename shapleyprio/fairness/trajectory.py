"""Worth as a polynomial in time: its value now, and how it goes on until something happens."""

from __future__ import annotations

from dataclasses import dataclass


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
