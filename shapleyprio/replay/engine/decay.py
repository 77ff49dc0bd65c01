"""The decay of processor time by a half-life."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

LONGEST = 38
"""2 to this are more seconds than a window has."""


def steps_of(half_life: int) -> NDArray[np.float64]:
    """Returns how usage decays within 1, 2, 4, ... seconds.

    The numbers are the nearest doubles, on each machine the same.

    Args:
        half_life: seconds after which processor time counts half.

    Returns:
        [2, steps]: what is left of a processor-second, and what a processor that works meanwhile
        adds, in processor-seconds.

    >>> steps_of(2).round(3)[:, :3].tolist()
    [[0.707, 0.5, 0.25], [0.845, 1.443, 2.164]]
    """
    with localcontext() as context:
        context.prec = 50
        left = [Decimal(2) ** (Decimal(-(2**step)) / half_life) for step in range(LONGEST)]
        mean_life = half_life / Decimal(2).ln()
        gained = [mean_life * (1 - rest) for rest in left]
    return np.array([left, gained], dtype=np.float64)
