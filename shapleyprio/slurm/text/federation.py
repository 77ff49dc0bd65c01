"""Reads where jobs of a federation count: Slurm lists a waiting one at each cluster it may run on.

Its number has that of its origin, the cluster that it was submitted to, in the high bits. What is
written to it at one cluster goes to the origin and from there to all others.
"""

from __future__ import annotations

from collections.abc import Iterable

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
        if len(names) != 3 or not job.isdigit():
            continue
        here, origin, listed = names
        viable = listed.split(",")
        counts_at = origin if origin in viable else min(viable)
        if here in viable and here != counts_at:
            elsewhere[int(job)] = counts_at
    return elsewhere
