"""The remote procedure calls (RPCs) that Slurm's daemons had to answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median_low

from shapleyprio.lab.testbed.cluster import PrivateSlurm

STATISTICS = {"slurmctld": ("sdiag",), "slurmdbd": ("sacctmgr", "show", "stats")}
"""Daemon -> the command that prints its statistics."""

_BY_TYPE = re.compile(
    r"^Remote Procedure Call statistics by message type\n((?:\t.*\n)*)", re.MULTILINE
)
_COUNT = re.compile(r"^\t(\w+)\s+\(\s*\d+\)\s+count:(\d+)", re.MULTILINE)

Calls = Mapping[str, Counter[str]]
"""Daemon -> type of message -> how many."""


def calls_by_type(statistics: str) -> Counter[str]:
    r"""Counts the messages of each type in a daemon's statistics.

    >>> calls_by_type(
    ...     "Remote Procedure Call statistics by message type\n"
    ...     "\tREQUEST_PING                            ( 1008) count:2      ave_time:416\n"
    ...     "\nRemote Procedure Call statistics by user\n"
    ...     "\troot            (       0) count:23     ave_time:398\n"
    ... )
    Counter({'REQUEST_PING': 2})
    """
    section = _BY_TYPE.search(statistics)
    counts = _COUNT.findall(section[1]) if section else []
    return Counter({message: int(count) for message, count in counts})


class Counting:
    """Counts what is asked of the daemons of a cluster.

    Args:
        cluster: on which nothing happens while this is made.
    """

    def __init__(self, cluster: PrivateSlurm) -> None:
        self._cluster = cluster
        first, second, third = (self._read() for _ in range(3))
        # what is there each time is the cost of reading the statistics
        self._own = {
            daemon: (second[daemon] - first[daemon]) & (third[daemon] - second[daemon])
            for daemon in STATISTICS
        }

    def during(self, action: Callable[[], object]) -> Calls:
        """Returns the calls from an action's beginning to its end, whoever made them."""
        before = self._read()
        action()
        after = self._read()
        return {daemon: after[daemon] - before[daemon] - self._own[daemon] for daemon in STATISTICS}

    def _read(self) -> Calls:
        return {
            daemon: calls_by_type(self._cluster.run(*command))
            for daemon, command in STATISTICS.items()
        }


def usual(runs: Sequence[Counter[str]]) -> Counter[str]:
    """Returns the median of each type, so that what nodes report now and then does not count.

    >>> usual([Counter(ping=2), Counter(ping=2, registration=1), Counter(ping=3)])
    Counter({'ping': 2})
    """
    types = {message: None for run in runs for message in run}
    medians = {message: median_low(run[message] for run in runs) for message in types}
    return +Counter(medians)
