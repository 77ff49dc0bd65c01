"""Reads what squeue lists of jobs beside those that wait: started ones, and what jobs depend on."""

from __future__ import annotations

import re

from shapleyprio.slurm.port import StartedJob
from shapleyprio.slurm.text.queue import target_of
from shapleyprio.slurm.text.values import LARGEST_ID, UnreadableError, known_moment, whole

STARTED_FIELDS = ("JobID", "ArrayJobID", "JobArrayID", "SubmitTime", "Account")
"""Fields that squeue prints of jobs that have started: the account can be any text of a user."""

DEPENDENT_FIELDS = ("JobID", "Dependency")
"""Fields that squeue prints of jobs that depend on others."""

_UNFULFILLED = re.compile(r"after(?:ok|any):([0-9]+)(?:_\*)?\(unfulfilled\)", re.ASCII)


def started_line(line: str, delimiter: str) -> StartedJob | None:
    """Reads one line of ``squeue -h`` in the format of `STARTED_FIELDS`; None if it cannot be."""
    if line.count(delimiter) != len(STARTED_FIELDS) or not line.endswith(delimiter):
        return None
    number, array, label, submit, account, _ = line.split(delimiter)
    try:
        return StartedJob(
            job_id=whole("job id", number, 1, LARGEST_ID),
            array_job_id=whole("array's id", array, 1, LARGEST_ID),
            label=target_of(label),
            account=account,
            submit=known_moment("submit time", submit),
        )
    except UnreadableError:
        return None


def dependent_line(line: str, delimiter: str) -> tuple[int, tuple[int, ...]] | None:
    """Reads one line of ``squeue -h`` in the format of `DEPENDENT_FIELDS`.

    Returns:
        the job, and others or arrays all of which have to end; None if the line cannot be read, or
        if the job waits for anything else of others.

    >>> dependent_line("9!afterok:7(unfulfilled),afterany:8_*(unfulfilled)!", "!")
    (9, (7, 8))
    >>> dependent_line("9!afterok:7(unfulfilled)?afterok:8(unfulfilled)!", "!")
    """
    number, *rest = line.split(delimiter)
    found = [_UNFULFILLED.fullmatch(one) for one in rest[0].split(",")] if rest else []
    if rest[1:] != [""] or not (number.isascii() and number.isdecimal()):
        return None
    others = tuple(int(match[1]) for match in found if match is not None)
    return (int(number), others) if others and len(others) == len(found) else None
