"""The instances of `mosp-2007`, and a cell for each: it is scheduled by every algorithm.

The paper proves and does not measure, so it has no workloads to repeat: the batches and what is
taken from logs are ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np

from shapleyprio.lab.experiment.cells import Row
from shapleyprio.lab.experiment.logs import log_of
from shapleyprio.lab.experiment.windows import seed_from, seeded, window_at_random
from shapleyprio.lab.papers.mosp.algorithms import ALGORITHMS, local, verdict
from shapleyprio.lab.papers.mosp.model import BatchJob, BatchSchedule, Instance, MospError
from shapleyprio.replay.workloads.dealing import deal, processor_shares
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Consortium, Window


@dataclass(frozen=True, slots=True)
class Figure:
    """An instance that shows what a figure of the paper shows; the figure itself has no numbers.

    Attributes:
        instance: ours, the smallest we know.
        optimum: the smallest makespan, seconds.
        cooperative: the smallest one with nobody worse off than alone, seconds.
        claim: what it shows.
    """

    instance: Instance
    optimum: int
    cooperative: int
    claim: str


def _of(organizations: int, processors: int, *jobs: tuple[int, int, int]) -> Instance:
    return Instance(organizations, processors, tuple(BatchJob(*job) for job in jobs))


FIGURES: Mapping[str, Figure] = {
    "figure 1": Figure(
        _of(4, 2, *[(0, 2, 1)] * 4), 1, 1, "all jobs are one organization's: alone, n times as long"
    ),
    "figure 2": Figure(
        _of(2, 3, (0, 3, 1), (0, 1, 2), (1, 3, 1), (1, 1, 2)), 2, 2, "both gain by matching jobs"
    ),
    "figure 3": Figure(
        _of(2, 2, (0, 1, 1), (0, 1, 1), (1, 1, 2), (1, 1, 2), (1, 1, 2)),
        2,
        3,
        "that nobody be worse off costs 3/2",
    ),
}


COUNTEREXAMPLES: Mapping[str, Instance] = {
    # Jobs of 6 s block all clusters but two. Those the second organization's wider jobs take
    # first, so the first one's last job starts at 5 s instead of at 4 s.
    "cut at 3·LB": _of(
        *(10, 80),
        *[(0, 79, 1)] * 5,
        *[(1, 80, 1)] * 6,
        *((owner, 2, 6) for owner in range(2, 10)),
    ),
    # High jobs follow the jobs of 7 s and leave gaps of 7 s, too short for the first
    # organization's low job of 8 s, which so starts at 8 s instead of at 7 s.
    "backfilling": _of(
        *(7, 40),
        *[(0, 40, 1)] * 7,
        (0, 1, 8),
        *[(1, 40, 1)] * 16,
        *((owner, 1, 7) for owner in range(2, 7)),
    ),
}
"""Instances on which the paper's words, taken literally, do not keep its promises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """How random instances of a kind are drawn; all draws are uniform and independent.

    Attributes:
        organizations: n.
        jobs: how many of all organizations together.
        zipf: an organization's jobs are in proportion to 1/rank (rounded as the replay deals
            processors) instead of evenly.
        owners: only the first so many organizations have jobs; None: all.
        low: q is drawn from 1 to half a cluster instead of to a whole one.
        thin_and_long: this many jobs need one processor, and are `LONG` times as long as drawn.
    """

    organizations: int = 5
    jobs: int = 200
    zipf: bool = True
    owners: int | None = None
    low: bool = False
    thin_and_long: int = 0


CLUSTER_PROCESSORS = 64
LONGEST = 1_000
"""Seconds: p is drawn from 1 to this."""
LONG = 50

BATCHES: Mapping[str, Batch] = {
    "even": Batch(zipf=False),
    "zipf": Batch(),
    "one owner": Batch(owners=1),
    "low": Batch(low=True),
    "thin and long": Batch(thin_and_long=5),
    "two": Batch(organizations=2, jobs=80),
    "twenty": Batch(organizations=20, jobs=800),
}
"""Kind of random instance -> how it is drawn."""


def random_instance(batch: Batch, random: Random) -> Instance:
    """Draws an instance of a kind."""
    owners = batch.owners or batch.organizations
    shares = processor_shares(
        owners, shares="zipf" if batch.zipf else "uniform", processors=batch.jobs
    )
    owner = [index for index, count in enumerate(shares) for _ in range(count)]
    widest = CLUSTER_PROCESSORS // 2 if batch.low else CLUSTER_PROCESSORS
    jobs = [BatchJob(u, _up_to(widest, random), _up_to(LONGEST, random)) for u in owner]
    for _ in range(batch.thin_and_long):
        index = _up_to(len(jobs), random) - 1
        jobs[index] = BatchJob(owner[index], 1, LONG * _up_to(LONGEST, random))
    return Instance(batch.organizations, CLUSTER_PROCESSORS, tuple(jobs))


def _up_to(most: int, random: Random) -> int:
    # random() is the one draw that Python promises never to change
    return 1 + int(random.random() * most)


def instance_of(
    log: Log, consortium: Consortium, window: Window, processors: int
) -> tuple[Instance, int]:
    """Takes the jobs released in a window as a batch, all at once.

    Args:
        log: all jobs.
        consortium: whose they are; its processors are not looked at.
        window: the stretch to take.
        processors: of each organization's cluster.

    Returns:
        The instance, and how many jobs of organizations are left out as too wide for a cluster.

    Raises:
        MospError: no job is left.
    """
    inside = window.includes(log.release)
    inside &= consortium.organization != UNKNOWN
    fits = log.processors <= processors
    taken = np.flatnonzero(inside & fits)
    if len(taken) == 0:
        raise MospError(
            f"{log.source}: no job released from second {window.start} on for {window.length} s "
            f"fits on a cluster of {processors} processors; choose another seed"
        )
    columns = (
        column[taken].tolist()
        for column in (consortium.organization, log.processors, log.processing_time)
    )
    jobs = tuple(BatchJob(*job) for job in zip(*columns, strict=True))
    return Instance(len(consortium.organizations), processors, jobs), int((inside & ~fits).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCell:
    """The instance of one of the paper's figures, or a counterexample.

    Attributes:
        workload: "figures" or "counterexamples".
        example: which of `FIGURES` or `COUNTEREXAMPLES`.
    """

    workload: str
    example: str

    @property
    def name(self) -> str:
        """What it is and its name, fit for a file."""
        return re.sub(r"\W+", "-", f"{self.workload}-{self.example}")

    def run(self) -> list[Row]:
        """Returns a row for each algorithm."""
        if self.workload == "figures":
            return rows_of(FIGURES[self.example].instance, self.workload, self.example)
        return rows_of(COUNTEREXAMPLES[self.example], self.workload, self.example)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCell:
    """A random instance.

    Attributes:
        kind: which of `BATCHES`.
        seed: of the experiment.
        number: of the instance among its kind; with seed and kind it sets all draws.
    """

    kind: str
    seed: int
    number: int

    @property
    def name(self) -> str:
        """Unique in an experiment with one seed."""
        return f"batch-{self.kind.replace(' ', '-')}-{self.number}"

    def run(self) -> list[Row]:
        """Returns a row for each algorithm."""
        random = seeded(self.seed, self.name)
        return rows_of(random_instance(BATCHES[self.kind], random), self.kind, str(self.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCell:
    """The jobs released in a window of a log, as a batch; users dealt out to organizations.

    Attributes:
        source: the log's file.
        log: what it is called in the results.
        system_processors: of the logged system; every organization's cluster has an equal part,
            rounded down.
        organizations: n.
        length: of the window, seconds.
        seed: of the experiment.
        number: of the window; with seed and log it sets where it is and whose each user is.
    """

    source: str
    log: str
    system_processors: int
    organizations: int
    length: int
    seed: int
    number: int

    @property
    def name(self) -> str:
        """Unique in an experiment with one seed."""
        return f"{self.log}-{self.length}s-{self.organizations}-{self.number}"

    def run(self) -> list[Row]:
        """Returns a row for each algorithm.

        Raises:
            ReplayError: the log cannot be read, or has no such window.
        """
        random = seeded(self.seed, self.name)
        log = log_of(self.source)
        consortium = deal(
            log,
            self.organizations,
            shares="uniform",
            processors=self.system_processors,
            seed=seed_from(random),
        )
        window = window_at_random(log, self.length, consortium, random)
        cluster = self.system_processors // self.organizations
        instance, too_wide = instance_of(log, consortium, window, cluster)
        return rows_of(instance, self.log, str(self.number), too_wide)


def rows_of(instance: Instance, workload: str, name: str, too_wide: int = 0) -> list[Row]:
    """Returns a row for each algorithm, with what the paper promises and whether it is kept.

    Args:
        instance: what to schedule.
        workload: where it comes from.
        name: which of that workload's instances it is.
        too_wide: how many jobs it misses, as no cluster is large enough.
    """
    alone = local(instance)
    facts: Row = {
        "workload": workload,
        "instance": name,
        "organizations": instance.organizations,
        "processors": instance.processors,
        "jobs": len(instance.jobs),
        "high_jobs": sum(instance.is_high(job) for job in instance.jobs),
        "too_wide": too_wide,
        "work": instance.work,
        "longest": instance.longest,
    }
    return [
        facts | _outcome(algorithm, make(alone), alone) for algorithm, make in ALGORITHMS.items()
    ]


def _outcome(algorithm: str, schedule: BatchSchedule, alone: BatchSchedule) -> Row:
    judged = verdict(algorithm, schedule, alone)
    return {
        "algorithm": algorithm,
        "makespan": schedule.makespan,
        "ratio": float(judged.ratio),
        "worst_to_alone": float(judged.worst_to_alone),
        "worse_off": judged.worse_off,
        "promised_ratio": judged.promised_ratio,
        "promised_alone": int(judged.promised_alone),
        "breaks_ratio": int(judged.breaks_ratio),
        "breaks_alone": int(judged.breaks_alone),
    }
