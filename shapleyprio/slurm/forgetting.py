"""What is remembered of earlier answers, and forgotten when no answer brings it any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

FORGOTTEN_FROM = 1.02
"""There are so many times those that are brought when the others are forgotten."""

Key = TypeVar("Key")
Value = TypeVar("Value")


def forget_others(known: dict[Key, Value], brought: Sequence[object]) -> None:
    """Forgets what the last answer did not bring, if it is much.

    Args:
        known: what is remembered; changed in place, since a copy would take as much memory
            once more.
        brought: the very same objects that the last answer brought.
    """
    if len(known) > FORGOTTEN_FROM * len(brought):
        kept = set(map(id, brought))
        for gone in [key for key, value in known.items() if id(value) not in kept]:
            del known[gone]
