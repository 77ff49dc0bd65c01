"""Reads what squeue lists beside pending jobs' records: started ones, dependencies, federations.

Slurm lists a waiting job of a federation at each cluster it may run on. Its number has that of its
origin, the cluster that it was submitted to, in the high bits. What is written to it at one cluster
goes to the origin and from there to all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

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


FIRST_FEDERATED = 1 << 26
"""Jobs that are no federation's have smaller numbers."""

SIBLING_FIELDS = "JobID:21,Cluster:256,Origin:256,SiblingsViable:4096"
"""Fields that squeue prints of a pending job, none of which can hold a user's text."""


def counted_elsewhere(lines: Iterable[str]) -> dict[int, str]:
    """Returns the jobs that count at another cluster than the one that lists them, and which.

    A job counts at its origin, or where it may not run there, at the first of the clusters that it
    may run on.

    Args:
        lines: of ``squeue -h -O`` with `SIBLING_FIELDS`.

    >>> counted_elsewhere(["67108867 c2 c1 c1,c2", "67108868 c2 c1 c2,c3", "9 c2 NA NA"])
    {67108867: 'c1'}
    """
    elsewhere = {}
    for line in lines:
        job, *names = line.split()
        if len(names) != 3 or not job.isdecimal():
            continue
        here, origin, listed = names
        viable = listed.split(",")
        counts_at = origin if origin in viable else min(viable)
        if here in viable and here != counts_at:
            elsewhere[int(job)] = counts_at
    return elsewhere
