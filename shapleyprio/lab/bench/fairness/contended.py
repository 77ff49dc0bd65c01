"""Windows of real logs in which organizations compete, drawn at random: the same for everybody."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from shapleyprio.lab.bench.measure import BenchParameters
from shapleyprio.lab.experiment.windows import seeded, window_at_random
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.measures.measures import Measures, measure, unfairness
from shapleyprio.replay.policies import COMPARED, REFERENCE, Estimation, run_policy
from shapleyprio.replay.workloads.choices import Shares, Wide
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload, with_history, workload_of

Key = TypeVar("Key")

LENGTH = 100_000
"""Seconds of a window."""

WHOLE_LENGTH = 150_000
"""Seconds of a window whose jobs are kept whole; they compete less often."""

CONTENDED = 30
"""Seconds that one of `COMPARED` is away from the fair schedule, at least."""

MOST_DRAWS = 2_000
"""Windows that are drawn of a log; there are logs with little contention."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A real log.

    Attributes:
        name: what it is called here.
        file: its name in the Parallel Workloads Archive.
        processors: of the system; None for what the log says.
    """

    name: str
    file: str
    processors: int | None = None


LOGS = (
    LogFile("LPC", "LPC-EGEE-2004-1.2-cln.swf.gz", 70),
    LogFile("HPC2N", "HPC2N-2002-2.2-cln.swf.gz"),
    LogFile("RICC", "RICC-2010-2.swf.gz"),
    LogFile("METACENTRUM", "METACENTRUM-2009-2.swf.gz", 806),
    LogFile("DAS2", "DAS2-fs1-2003-1.swf.gz", 16),  # on all of its 64 nobody waits
    LogFile("Curie", "CEA-Curie-2011-2.1-cln.swf.gz"),
)


def real_logs(logs: Path, names: Collection[str]) -> Iterator[tuple[LogFile, Log]]:
    """Reads those of `LOGS` that are there, one after the other.

    Args:
        logs: directory with the logs.
        names: only these.
    """
    for log_file in LOGS:
        if log_file.name in names and (logs / log_file.file).exists():
            yield log_file, read_log(str(logs / log_file.file))


@dataclass(frozen=True, slots=True)
class ContendedWindow:
    """A window in which policies differ.

    Attributes:
        workload: with its history.
        fair: measures of the fair schedule.
        unfairness: of each of `COMPARED`, in seconds per part.
    """

    workload: Workload
    fair: Measures
    unfairness: dict[str, float]

    def unfairness_of(self, policy: str, *, estimation: Estimation) -> float:
        """Returns Δψ/p_tot of a policy that estimates contributions, in seconds."""
        schedule = run_policy(self.workload, policy, estimation=estimation)
        return float(unfairness(measure(self.workload, schedule), self.fair))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKind:
    """Which windows are wanted.

    Attributes:
        organizations: to deal users and processors out to.
        windows: how many are wanted.
        fair: the policy that counts as fair.
        whole: whether jobs are kept whole, with easy backfilling and as many processors for each
            organization; else they are cut, and processors are dealt out by Zipf's law.
    """

    organizations: int
    windows: int
    fair: str = REFERENCE
    whole: bool = False


def contended_windows(log: Log, log_file: LogFile, kind: WindowKind) -> Iterator[ContendedWindow]:
    """Draws windows of a log until so many are contended, each with its own deal of users."""
    organizations = kind.organizations
    length = WHOLE_LENGTH if kind.whole else LENGTH
    shares: Shares = "uniform" if kind.whole else "zipf"
    wide: Wide = "rigid" if kind.whole else "expand"
    random = seeded(log_file.name, organizations)
    found = 0
    for number in range(MOST_DRAWS):
        if found == kind.windows:
            return
        dealt = deal(log, organizations, shares=shares, processors=log_file.processors, seed=number)
        window = window_at_random(log, length, dealt, random, wide=wide)
        workload = workload_of(log, dealt, window=window, wide=wide, backfill="easy")
        drawn = _contended(workload, kind.fair)
        if drawn is not None:
            found += 1
            yield replace(drawn, workload=with_history(drawn.workload, log))


def _contended(workload: Workload, fair: str) -> ContendedWindow | None:
    try:
        schedules = {policy: run_policy(workload, policy) for policy in COMPARED}
        fairest = run_policy(workload, fair)
    except PolicyError:
        return None
    against = measure(workload, fairest)
    away = {
        policy: float(unfairness(measure(workload, schedule), against))
        for policy, schedule in schedules.items()
    }
    return ContendedWindow(workload, against, away) if max(away.values()) >= CONTENDED else None


def collected(
    asked: BenchParameters,
    names: Collection[str],
    kinds: Mapping[str, WindowKind],
    found_in: Callable[[ContendedWindow], Iterable[tuple[Key, float]]],
) -> Iterator[tuple[str, Key, list[float]]]:
    """Yields what is found in contended windows, by log, kind and key.

    Args:
        asked: of the benchmark.
        names: of logs; those that are not there are left out.
        kinds: what is said of them behind the log's name -> which windows.
        found_in: a window -> what is found in it, each under a key, some of them often.
    """
    for log_file, log in real_logs(asked.real_logs, names):
        for what, kind in kinds.items():
            name = f"{log_file.name}{what}"
            show = asked.bar(name, kind.windows)
            found: dict[Key, list[float]] = {}
            for number, window in enumerate(contended_windows(log, log_file, kind), start=1):
                for key, value in found_in(window):
                    found.setdefault(key, []).append(value)
                show(number)
            yield from ((name, key, values) for key, values in found.items())
