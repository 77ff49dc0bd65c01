"""The numbers of the workload's jobs that records of Slurm's accounting are about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ClusterShell.RangeSet import RangeSet

from shapleyprio.fairness.runs import JobRecord

Submitted = Mapping[int, Sequence[int]]
"""Slurm's number of a job, or of an array -> indices into the workload, one for each task."""

_LABEL = re.compile(r"(\d+)(?:_(?:(\d+)|\[([\d,-]+)\]))?")


def records_by_job(
    records: Sequence[JobRecord], submitted: Submitted
) -> Iterator[tuple[int, JobRecord]]:
    """Pairs the workload's jobs with their records; a waiting array's one record is all its tasks'.

    Records of what was not submitted are passed over.

    Args:
        records: with labels as users know them: ``33``, ``33_4``, ``33_[5-9]``.
        submitted: what was submitted.

    Yields:
        index of a job, and a record of it.
    """
    for record in records:
        match = _LABEL.fullmatch(record.label)
        if match is None or (jobs := submitted.get(int(match[1]))) is None:
            continue
        if match[3] is not None:
            tasks = [int(task) for task in RangeSet(match[3])]
        else:
            tasks = [0 if match[2] is None else int(match[2])]
        yield from ((jobs[task], record) for task in tasks if task < len(jobs))
