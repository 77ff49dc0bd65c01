"""The contended workload: three accounts that together ask for more than there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from shapleyprio.lab.demo.consortium import MEMBERS, PROCESSORS

SHORTEST_SECONDS, LONGEST_SECONDS = 180, 900
MOST_PROCESSORS = 2
MEAN_WORK = (SHORTEST_SECONDS + LONGEST_SECONDS) / 2 * (1 + MOST_PROCESSORS) / 2
"""CPU seconds of an average job."""

SMALLEST_FLOOD = 40
"""Jobs; more than the cluster can run at once, so that the shortest demo has a queue."""


@dataclass(frozen=True, slots=True, order=True)
class Submission:
    """One job.

    Attributes:
        second: when it is submitted, from the start.
        account: by whom.
        processors: how many CPUs it asks for.
        seconds: how long it will run.
    """

    second: int
    account: str
    processors: int
    seconds: int


def workload(seed: int, duration: int) -> list[Submission]:
    """Returns all submissions of a demo, the first first; the same for the same seed.

    Args:
        seed: of the jobs' sizes and times.
        duration: seconds of the cluster's clock.
    """
    random = Random(seed)  # noqa: S311 - not a secret
    flooding, steady, lending = (member.name for member in MEMBERS)
    jobs = [
        *_burst(random, flooding, second=0, jobs=max(SMALLEST_FLOOD, _jobs(0.3, duration))),
        *_burst(random, flooding, second=duration // 3, jobs=_jobs(0.1, duration)),
        *_burst(random, flooding, second=duration * 2 // 3, jobs=_jobs(0.1, duration)),
        *_stream(random, steady, 0, duration, jobs=_jobs(0.7, duration)),
        *_burst(random, lending, second=duration * 2 // 5, jobs=_jobs(0.03, duration)),
        *_stream(random, lending, duration // 2, duration, jobs=_jobs(0.08, duration)),
    ]
    return sorted(jobs)


def rounds(seed: int, duration: int) -> Iterator[Submission]:
    """Yields demos without end, one after another, with pauses that work the queue off.

    Args:
        seed: of the first one.
        duration: seconds of each, on the cluster's clock.
    """
    for number in count():
        begin = number * duration * 4 // 3
        for job in workload(seed + number, duration):
            yield replace(job, second=begin + job.second)


def _jobs(share: float, duration: int) -> int:
    """Returns how many average jobs take this share of what the cluster can do in that time."""
    return max(1, round(share * PROCESSORS * duration / MEAN_WORK))


def _burst(random: Random, account: str, *, second: int, jobs: int) -> Iterator[Submission]:
    """Yields jobs submitted by a script, two a second."""
    for number in range(jobs):
        yield _job(random, account, second + number // 2)


def _stream(
    random: Random, account: str, begin: int, end: int, *, jobs: int
) -> Iterator[Submission]:
    """Yields jobs submitted by people, at any time."""
    for _ in range(jobs):
        yield _job(random, account, random.randrange(begin, end))


def _job(random: Random, account: str, second: int) -> Submission:
    return Submission(
        second=second,
        account=account,
        processors=random.randint(1, MOST_PROCESSORS),
        seconds=random.randint(SHORTEST_SECONDS, LONGEST_SECONDS),
    )
