"""How many examples hypothesis tries of what is dearer, or cheaper, than usual."""

from __future__ import annotations

from hypothesis import settings


def examples(of_hundred: int) -> int:
    """Returns how many to try where a usual test would try a hundred, by the profile in force."""
    return max(2, settings().max_examples * of_hundred // 100)
