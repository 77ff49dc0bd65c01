"""The cells of `mosp-2007`: one instance each, under every algorithm."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from shapleyprio.lab.experiment.cells import Row
from shapleyprio.lab.experiment.logs import log_of
from shapleyprio.lab.experiment.windows import window_at_random
from shapleyprio.lab.papers.mosp.algorithms import ALGORITHMS, local
from shapleyprio.lab.papers.mosp.guarantees import verdict
from shapleyprio.lab.papers.mosp.instances import (
    BATCHES,
    COUNTEREXAMPLES,
    FIGURES,
    instance_of,
    random_instance,
)
from shapleyprio.lab.papers.mosp.model import BatchSchedule, Instance
from shapleyprio.replay.workloads.dealing import deal


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
        random = Random(f"{self.seed}/{self.name}")  # noqa: S311  # an experiment, no secret
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
        random = Random(f"{self.seed}/{self.name}")  # noqa: S311  # an experiment, no secret
        log = log_of(self.source)
        consortium = deal(
            log,
            self.organizations,
            shares="uniform",
            processors=self.system_processors,
            seed=int(random.random() * 2**53),
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
