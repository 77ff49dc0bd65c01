"""The preset `cloudshare-2019`: which logs, periods, settings and scenarios make it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.experiment.cells import Experiment, ExperimentError
from shapleyprio.experiment.cloudshare.brokers import ALGORITHMS
from shapleyprio.experiment.cloudshare.cell import DAY, PeriodCell, processors_of
from shapleyprio.experiment.cloudshare.scenarios import SCENARIOS
from shapleyprio.experiment.cloudshare.tables import score_tables

PERIODS = 20
"""Of each log, as in section 5.1."""

DIVISORS = (1, 2, 4, 8)
"""The processors of each log's system are divided by each of these."""

DEALS = 5
"""Of users, for each period and number of processors."""

LONG_RUNNING = 30 * DAY
"""Seconds that the clock has run before a period begins, for ψ′ alone."""


@dataclass(frozen=True, slots=True)
class Source:
    """A log of the experiment.

    Attributes:
        name: in the results.
        processors: of its system.
        stands_for: the log of the paper in whose place it is taken; empty if it is one itself.
    """

    name: str
    processors: int
    stands_for: str = ""


SOURCES: Mapping[str, Source] = {
    "METACENTRUM-2009-2.swf.gz": Source("MetaCentrum", 806),
    "HPC2N-2002-2.2-cln.swf.gz": Source("HPC2N", 240),
    "LPC-EGEE-2004-1.2-cln.swf.gz": Source("LPC EGEE", 70),
    "DAS2-fs1-2003-1.swf.gz": Source("DAS2 fs1", 64, stands_for="DAS2 fs0"),
}
"""File name in the archive -> log; those with the most work come first."""

EXHIBITS: Mapping[str, int] = {f"scenario-{number}": number for number in SCENARIOS}


def cloudshare_2019(
    logs: Mapping[str, Path],
    *,
    windows: int | None = None,
    seed: int = 0,
    exhibits: Sequence[str] = (),
    divisors: Sequence[int] = DIVISORS,
    deals: int = DEALS,
    clock: int = LONG_RUNNING,
) -> Experiment:
    """CloudShare (CCGrid 2019), section 5: five algorithms in three scenarios, scored by fairness.

    The paper leaves open how many processors there are, and how often users are dealt out. Its
    scores of scenario 1 add up to 15,362; five algorithms have at most 10 points to share, so its
    80 periods were each compared in at least 20 settings. Here these are 4 numbers of processors
    by 5 deals of users.

    Args:
        logs: file name as in the Parallel Workloads Archive -> where the file is.
        windows: periods of each log; None for the paper's 20.
        seed: of all random draws.
        exhibits: of scenario-1, scenario-2 and scenario-3; empty for all.
        divisors: numbers by which each system's processors are divided.
        deals: of users, for each period and number of processors.
        clock: what the clock shows when a period begins, in seconds. ψ′ (Eq. 3) adds two points
            in time, T and the release, so unlike ψ and ψ″ it depends on where the clock begins,
            which the paper does not tell. It wants ψ′ for systems that have run for long (section
            3.2.2); the longer they have, the nearer ψ′ comes to ψ″.

    Raises:
        ExperimentError: none of the logs is one of the paper's, or there is no such scenario.
    """
    found = {SOURCES[file]: path for file, path in logs.items() if file in SOURCES}
    if not found:
        raise ExperimentError(
            f"none of the logs of cloudshare-2019 is here; it takes {', '.join(SOURCES)}"
        )
    if unknown := sorted(set(exhibits) - set(EXHIBITS)):
        raise ExperimentError(
            f"cloudshare-2019 has no exhibit {unknown[0]!r}; take one of {', '.join(EXHIBITS)}"
        )
    scenarios = sorted({EXHIBITS[exhibit] for exhibit in exhibits or EXHIBITS})
    periods = PERIODS if windows is None else windows
    cells = [
        PeriodCell(
            source=str(found[source]),
            log=source.name,
            scenario=scenario,
            period=period,
            processors=tuple(
                dict.fromkeys(processors_of(source.processors, divisor) for divisor in divisors)
            ),
            deals=deals,
            clock=clock,
            seed=seed,
        )
        for source in SOURCES.values()
        if source in found
        for scenario in scenarios
        for period in range(periods)
    ]
    return Experiment(
        name="cloudshare-2019",
        description=(
            f"Σ|wait − fair wait| per unit of work in {periods} periods of 24 hours, in seconds"
        ),
        cells=cells,
        by=("scenario", "policy"),
        value="unfairness",
        better="low",
        paired=("log", "scenario", "period", "processors", "deal"),
        inputs=tuple(found.values()),
        notes=_notes(list(found)),
        tables=score_tables,
    )


def _notes(found: Sequence[Source]) -> tuple[str, ...]:
    substitutes = (
        f"{source.name} stands for {source.stands_for}, which is another site's log"
        for source in found
        if source.stands_for
    )
    absent = (
        f"{source.stands_for or source.name} is missing: {file} is not among the logs"
        for file, source in SOURCES.items()
        if source not in found
    )
    return (
        *substitutes,
        *absent,
        f"each setting is simulated in all 31 coalitions under each of {len(ALGORITHMS)} policies",
        "numbers of processors, deals, local users and the clock of ψ′ are ours: the paper does "
        "not tell its own",
    )
