"""The tasks of an array, in Slurm's notation."""

from __future__ import annotations

from collections.abc import Iterable


def task_list(tasks: Iterable[int]) -> str:
    """Returns rising numbers of tasks as Slurm writes them.

    >>> task_list([0, 1, 2, 5, 7, 8])
    '0-2,5,7-8'
    """
    ranges: list[list[int]] = []
    for task in tasks:
        if ranges and task == ranges[-1][1] + 1:
            ranges[-1][1] = task
        else:
            ranges.append([task, task])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in ranges)
