"""Lists cut to what one command takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

MOST_ARGUMENT_CHARACTERS = 100_000  # Linux takes 128 KiB in one argument


def batches(
    items: Iterable[Item], size: int, characters: int = MOST_ARGUMENT_CHARACTERS
) -> Iterator[list[Item]]:
    """Cuts items into lists of at most so many, and so many characters when joined by commas."""
    batch: list[Item] = []
    length = 0
    for item in items:
        width = len(str(item)) + 1
        if batch and (len(batch) == size or length + width > characters):
            yield batch
            batch, length = [], 0
        batch.append(item)
        length += width
    if batch:
        yield batch
