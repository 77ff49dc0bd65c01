"""The strategy-proof utility ψsp (SPAA 2013, Eq. 3) as exact integer moments.

A unit-size part executed in [τ, τ+1) is worth t − τ at time t. The parts of one processor that
works from s to e are therefore worth T(t − s) − T(t − e), with the triangular number
T(n) = n(n+1)/2 for n ≥ 0 and 0 before: an event +1 at s and an event −1 at e. With a horizon H
every part is worth min(t − τ, H) = (t − τ)⁺ − (t − H − τ)⁺, which is the same sum once more,
taken at t − H.

So all that a sum of runs needs is three moments of its events, and its worth at any time after
the last event is a quadratic polynomial in t. Python's integers do not overflow.
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
