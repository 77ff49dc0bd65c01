"""The preset `cloudshare-2019`: its logs, periods and settings, and the paper's Table 1 again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shapleyprio.common.wording import DAY, percent
from shapleyprio.lab.experiment.cells import (
    Experiment,
    ExperimentError,
    ExperimentTable,
    PresetParameters,
    Row,
)
from shapleyprio.lab.papers.cloudshare.brokers import ALGORITHMS
from shapleyprio.lab.papers.cloudshare.cell import SCENARIOS, PeriodCell, processors_of

PAPER: Mapping[str, Mapping[int, int]] = {
    "orig-direct": {1: 3051, 2: 3095, 3: 2110},
    "rel-direct": {1: 3840, 2: 3793, 3: 2420},
    "simpl-direct": {1: 4061, 2: 3955, 3: 2415},
    "fairshare": {1: 3108, 2: 3436, 3: 1621},
    "roundrobin": {1: 1302, 2: 917, 3: 871},
}
"""Algorithm -> scenario -> total score in the paper's Table 1."""


def score_tables(rows: Sequence[Row]) -> list[ExperimentTable]:
    """Returns the scores of all logs beside the paper's."""
    scenarios = sorted({_count_in(row, "scenario") for row in rows})
    lines = []
    for algorithm in ALGORITHMS:
        line = [algorithm]
        for scenario in scenarios:
            ours = {name: _score_of(rows, name, scenario) for name in ALGORITHMS}
            theirs = {name: PAPER[name][scenario] for name in ALGORITHMS}
            line += [_with_share(ours, algorithm), _with_share(theirs, algorithm)]
        lines.append(line)
    table = ExperimentTable(
        title="Total scores: how many times a policy is more fair than another one",
        header=(
            "policy",
            *(text for number in scenarios for text in (f"scenario {number}", "paper")),
        ),
        lines=lines,
        notes=(
            "in brackets: the part of all points of the scenario",
            *(_undecided(rows, scenario) for scenario in scenarios),
        ),
    )
    return [table]


def _undecided(rows: Sequence[Row], scenario: int) -> str:
    """Says how many pairs of policies were equally fair, mostly where nobody had to wait."""
    mine = [row for row in rows if row["scenario"] == scenario]
    pairs = sum(_count_in(row, "rivals") for row in mine) // 2
    equal = pairs - sum(_count_in(row, "points") for row in mine)
    return f"scenario {scenario}: {equal:,} of {pairs:,} pairs of policies were equally fair"


def _score_of(rows: Sequence[Row], algorithm: str, scenario: int) -> int:
    return sum(
        _count_in(row, "points")
        for row in rows
        if row["policy"] == algorithm and row["scenario"] == scenario
    )


def _with_share(scores: Mapping[str, int], algorithm: str) -> str:
    share = scores[algorithm] / max(sum(scores.values()), 1)
    return f"{scores[algorithm]:,} ({percent(share, digits=0)})"


def _count_in(row: Row, column: str) -> int:
    return int(row[column] or 0)


NAME = "cloudshare-2019"

PERIODS = 20
"""Number of periods of each log, as in section 5.1."""

DIVISORS = (1, 2, 4, 8)
"""The processors of each log's system are divided by each of these."""

DEALS = 5
"""How often users are dealt out, for each period and number of processors."""

LONG_RUNNING = 30 * DAY
"""Seconds that the clock has run before a period begins, for ψ′ alone."""


@dataclass(frozen=True, slots=True)
class CloudshareLog:
    """A log of the experiment.

    Attributes:
        name: in the results.
        processors: of its system.
        stands_for: the log of the paper in whose place it is taken; empty if it is one itself.
    """

    name: str
    processors: int
    stands_for: str = ""


SOURCES: Mapping[str, CloudshareLog] = {
    "METACENTRUM-2009-2.swf.gz": CloudshareLog("MetaCentrum", 806),
    "HPC2N-2002-2.2-cln.swf.gz": CloudshareLog("HPC2N", 240),
    "LPC-EGEE-2004-1.2-cln.swf.gz": CloudshareLog("LPC EGEE", 70),
    "DAS2-fs1-2003-1.swf.gz": CloudshareLog("DAS2 fs1", 64, stands_for="DAS2 fs0"),
}
"""File name in the archive -> log; those with the most work come first."""

EXHIBITS: Mapping[str, int] = {f"scenario-{number}": number for number in SCENARIOS}


def cloudshare_2019(
    parameters: PresetParameters,
    *,
    divisors: Sequence[int] = DIVISORS,
    deals: int = DEALS,
    clock: int = LONG_RUNNING,
) -> Experiment:
    """Makes CloudShare's section 5 (CCGrid 2019): five algorithms in three scenarios, scored.

    The paper leaves open how many processors there are, and how often users are dealt out. Its
    scores of scenario 1 add up to 15,362; five algorithms have at most 10 points to share, so its
    80 periods were each compared in at least 20 settings. Here these are 4 numbers of processors
    by 5 deals of users.

    Args:
        parameters: exhibits are scenario-1, scenario-2 and scenario-3; windows counts the periods
            of each log, None: the paper's 20.
        divisors: numbers by which each system's processors are divided.
        deals: of users, for each period and number of processors.
        clock: what the clock shows when a period begins, in seconds. ψ′ (Eq. 3) adds two points
            in time, T and the release, so unlike ψ and ψ″ it depends on where the clock begins,
            which the paper does not say. It wants ψ′ for systems that have run for long (section
            3.2.2); the longer they have, the nearer ψ′ comes to ψ″.

    Raises:
        ExperimentError: none of the logs is one of the paper's, or there is no such scenario.
    """
    chosen = parameters.chosen(NAME, list(EXHIBITS))
    found = {SOURCES[file]: path for file, path in parameters.logs.items() if file in SOURCES}
    if not found:
        raise ExperimentError(f"none of the logs of {NAME} is here; it takes {', '.join(SOURCES)}")
    scenarios = sorted(EXHIBITS[exhibit] for exhibit in chosen)
    periods = PERIODS if parameters.windows is None else parameters.windows
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
            seed=parameters.seed,
        )
        for source in SOURCES.values()
        if source in found
        for scenario in scenarios
        for period in range(periods)
    ]
    return Experiment(
        name=NAME,
        description=(
            f"Σ|wait − fair wait| per unit of work in {periods} periods of 24 hours, in seconds"
        ),
        cells=cells,
        by=("scenario", "policy"),
        value="unfairness",
        paired=("log", "scenario", "period", "processors", "deal"),
        inputs=tuple(found.values()),
        notes=_notes(list(found)),
        tables=score_tables,
    )


def _notes(found: Sequence[CloudshareLog]) -> tuple[str, ...]:
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
        "not name its own",
    )
