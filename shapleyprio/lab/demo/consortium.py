"""The organizations of the demo: their configuration, and the work that they submit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random

CLUSTER = "demo"
CPUS_PER_NODE = 4
POLL_SECONDS = 60
NEW_JOBS_SECONDS = 5
COMMAND_TIMEOUT_SECONDS = 30
LEASE_SECONDS = 10

DRIFT_SECONDS = 300
"""Seconds between two replays; a few real ones, so that people see the drift change."""

DRIFT_LIMIT_SECONDS = 120
"""Real seconds for a replay."""

ESTIMATE_LIMIT_SECONDS = 120
"""Real seconds for an estimate of contributions."""


@dataclass(frozen=True, slots=True)
class DemoMember:
    """An organization of the demo; its account and its partition have its name.

    Attributes:
        name: with a first letter that no other has.
        nodes: what it owns.
        color: distinct from the others' for color-blind eyes too (Okabe and Ito).
        habit: how it uses the cluster.
    """

    name: str
    nodes: tuple[str, ...]
    color: str
    habit: str

    @property
    def letter(self) -> str:
        """Stands for one of its jobs."""
        return self.name[0].upper()


MEMBERS = (
    DemoMember("astronomy", ("a1", "a2"), "#e69f00", "floods the queue from the start"),
    DemoMember("biology", ("b1", "b2"), "#56b4e9", "submits steadily, more than it owns"),
    DemoMember("climate", ("c1", "c2"), "#00b383", "lends its nodes, asks late and little"),
)
PROCESSORS = sum(CPUS_PER_NODE * len(member.nodes) for member in MEMBERS)


def write_configuration(directory: Path, *, speed: int, address: str | None = None) -> Path:
    """Writes shapleyprio.toml into the directory, where the store will be too.

    Args:
        directory: of the demo's state.
        speed: of the cluster's clock, on which the daemon's time limits run as well.
        address: where the daemon serves its page and metrics, and then live drift among them.
    """
    file = directory.resolve() / "shapleyprio.toml"
    organizations = (
        f'\n[[organization]]\nname = "{member.name}"\n'
        f'accounts = ["{member.name}"]\npartitions = ["{member.name}"]\n'
        for member in MEMBERS
    )
    file.write_text(
        f'[slurm]\ncluster = "{CLUSTER}"\ntimeout = "{COMMAND_TIMEOUT_SECONDS * speed}s"\n'
        f'\n[service]\npoll_interval = "{POLL_SECONDS}s"\n'
        f'new_jobs_interval = "{NEW_JOBS_SECONDS * speed}s"\n'
        f'lease = "{LEASE_SECONDS * speed}s"\n'
        f'\n[store]\nurl = "sqlite:///{file.with_name("shapleyprio.db")}"\n'
        f'\n[metrics]\naddress = "{address or "off"}"\n'
        f'\n[drift]\ninterval = "{f"{DRIFT_SECONDS}s" if address else "off"}"\n'
        f'time_limit = "{DRIFT_LIMIT_SECONDS * speed}s"\n'
        f'\n[estimation]\ntime_limit = "{ESTIMATE_LIMIT_SECONDS * speed}s"\n'
        f"{''.join(organizations)}",
        encoding="utf-8",
    )
    return file


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
