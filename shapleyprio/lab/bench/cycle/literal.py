"""The ledger by its definition, from all jobs that were executed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Done(NamedTuple):
    """A job that was executed: whose, on which node, on how many processors, and its seconds."""

    account: str
    node: str
    processors: int
    begin: int
    end: int


def literal_ledger(
    jobs: Iterable[Done], holders: Mapping[int, Mapping[str, str]], t: int, horizon: int
) -> dict[str, tuple[int, int]]:
    """Returns organization -> its contribution and utility at t.

    Args:
        jobs: all there were.
        holders: second -> who holds which account and node from then on; what somebody holds first
            was always so.
        t: seconds since the epoch.
        horizon: seconds.
    """
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def worth(age: int) -> int:
        """Returns the worth of a part of each second up to an age."""
        young = min(age, horizon)
        return young * (young + 1) // 2 + (age - young) * horizon

    changes = [*holders, t]
    for job in jobs:
        for (since, held), until in zip(holders.items(), changes[1:], strict=True):
            begin, end = max(job.begin, since), min(job.end, until)
            if begin < end and job.account in held:
                parts = job.processors * (worth(t - begin) - worth(t - end))
                found[held[job.account]][1] += parts
                if job.node in held:
                    found[held[job.node]][0] += parts
    return {name: (contribution, utility) for name, (contribution, utility) in found.items()}
