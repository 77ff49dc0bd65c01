"""The experiments of Skowron & Rzadca (SPAA 2013, section 7), beside the paper's own figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from shapleyprio.lab.experiment.cells import (
    Experiment,
    ExperimentError,
    ExperimentTable,
    PresetParameters,
    Row,
)
from shapleyprio.lab.experiment.windows import WindowCell
from shapleyprio.replay.workloads.choices import Shares

Published = Mapping[str, Mapping[str, tuple[float, float]]]
"""Workload -> policy -> mean and standard deviation of Δψ/p_tot, in seconds."""


@dataclass(frozen=True, slots=True)
class SkowronLog:
    """A log of the Parallel Workloads Archive.

    Attributes:
        log: what it is called here.
        file: its name in the archive.
        processors: of the system: the paper's, or for a substitute the archive's.
        substitute: whether the paper does not use it.
    """

    log: str
    file: str
    processors: int
    substitute: bool = False


SOURCES = (
    SkowronLog("LPC", "LPC-EGEE-2004-1.2-cln.swf.gz", 70),
    SkowronLog("RICC", "RICC-2010-2.swf.gz", 8192),
    SkowronLog("METACENTRUM", "METACENTRUM-2009-2.swf.gz", 806, substitute=True),
    SkowronLog("HPC2N", "HPC2N-2002-2.2-cln.swf.gz", 240, substitute=True),
)

ELSEWHERE = ("PIK-IPLEX", "SHARCNET-Whale")
"""The paper's other two workloads, which are not supported here."""

SHORT = "table-1"
LONG = "table-2"
MANY = "figure-10"

WINDOW_SECONDS = {SHORT: 50_000, LONG: 500_000, MANY: 50_000}
"""Fig. 10 does not say; windows as in Table 1 keep many organizations affordable."""

_TABLE_1: Published = {
    "LPC": {
        "roundrobin": (238, 353),
        "rand-15": (8, 21),
        "directcontr": (5, 11),
        "fairshare": (16, 25),
        "utfairshare": (16, 25),
        "currfairshare": (87, 106),
    },
    "RICC": {
        "roundrobin": (2839, 357),
        "rand-15": (162, 187),
        "directcontr": (537, 303),
        "fairshare": (626, 309),
        "utfairshare": (515, 284),
        "currfairshare": (1231, 243),
    },
}

_TABLE_2: Published = {
    "LPC": {
        "roundrobin": (4511, 6257),
        "rand-15": (562, 1670),
        "directcontr": (410, 1083),
        "fairshare": (575, 1404),
        "utfairshare": (888, 2101),
        "currfairshare": (1082, 2091),
    },
    "RICC": {
        "roundrobin": (10850, 13773),
        "rand-15": (771, 1479),
        "directcontr": (1808, 3397),
        "fairshare": (2746, 4070),
        "utfairshare": (4963, 6080),
        "currfairshare": (5387, 9083),
    },
}

PUBLISHED: Mapping[str, Published] = {SHORT: _TABLE_1, LONG: _TABLE_2, MANY: {}}
"""Exhibit -> its figures; Fig. 10 is a drawing without figures."""


TITLES = {SHORT: "Table 1", LONG: "Table 2", MANY: "Fig. 10"}


def tables(rows: Sequence[Row]) -> list[ExperimentTable]:
    """Makes a table for each log of Tables 1 and 2, and one for Fig. 10, as far as rows allow."""
    made = []
    for exhibit in (SHORT, LONG):
        for source in SOURCES:
            of_log = [row for row in rows if (row["exhibit"], row["log"]) == (exhibit, source.log)]
            if of_log:
                made.append(_side_by_side(exhibit, source, of_log))
    many = [row for row in rows if row["exhibit"] == MANY]
    return [*made, _by_organizations(many)] if many else made


def _side_by_side(exhibit: str, source: SkowronLog, rows: Sequence[Row]) -> ExperimentTable:
    paper = PUBLISHED[exhibit].get(source.log, {})
    label = f"{source.log} (a substitute, not in the paper)" if source.substitute else source.log
    return ExperimentTable(
        title=f"{TITLES[exhibit]}, {label}: windows of {WINDOW_SECONDS[exhibit]:,} s",
        header=[
            "policy",
            *("ours, zipf", "st. dev.", "ours, uniform", "st. dev.", "paper", "st. dev."),
        ],
        lines=[
            [
                policy,
                *_mean_and_deviation(rows, policy=policy, shares="zipf"),
                *_mean_and_deviation(rows, policy=policy, shares="uniform"),
                *paper.get(policy, (None, None)),
            ]
            for policy in _policies_in(rows)
        ],
    )


def _by_organizations(rows: Sequence[Row]) -> ExperimentTable:
    counts = sorted({int(row["organizations"] or 0) for row in rows})
    return ExperimentTable(
        title=f"{TITLES[MANY]}, LPC: mean by number of organizations, windows of "
        f"{WINDOW_SECONDS[MANY]:,} s, zipf",
        header=["policy", *map(str, counts)],
        lines=[
            [
                policy,
                *(_mean_and_deviation(rows, policy=policy, organizations=k)[0] for k in counts),
            ]
            for policy in _policies_in(rows)
        ],
    )


def _policies_in(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["policy"]) for row in rows))


def _mean_and_deviation(
    rows: Sequence[Row], **wanted: str | int
) -> tuple[float | None, float | None]:
    values = [
        float(row["unfairness"])
        for row in rows
        if row["unfairness"] is not None and wanted.items() <= row.items()
    ]
    return fmean(values) if values else None, stdev(values) if len(values) > 1 else None


NAME = "skowron-2013"

POLICIES = (
    *("roundrobin", "rand-15", "rand-75", "directcontr"),
    *("fairshare", "utfairshare", "currfairshare"),
)
WINDOWS = 100
ORGANIZATIONS = 5
MANY_ORGANIZATIONS = range(12, 1, -1)
"""Numbers of organizations in Fig. 10, the longest runs first."""

ALL_SHARES: tuple[Shares, ...] = ("zipf", "uniform")
EXHIBITS = (SHORT, LONG, MANY)


@dataclass(frozen=True, slots=True)
class SkowronCell:
    """A window of one of the paper's exhibits.

    Attributes:
        exhibit: table-1, table-2 or figure-10.
        window: what to run.
    """

    exhibit: str
    window: WindowCell

    @property
    def name(self) -> str:
        """Unique in the experiment."""
        return f"{self.exhibit}-{self.window.name}"

    def run(self) -> list[Row]:
        """Returns the window's rows, with the exhibit."""
        return [{"exhibit": self.exhibit, **row} for row in self.window.run()]


def skowron_2013(parameters: PresetParameters) -> Experiment:
    """Makes Tables 1 and 2 and Fig. 10: Δψ/p_tot of seven policies against `ref`.

    Users are dealt out to 5 organizations and jobs of q processors become q copies, as in section
    7.2; the paper does not say whether its tables have Zipf's or equal shares of the processors,
    so both are run. Fig. 10 is LPC with 2 to 12 organizations and Zipf's shares.

    Args:
        parameters: exhibits are table-1, table-2 and figure-10; windows counts those of each log,
            shares and number of organizations, None: 100.

    Raises:
        ExperimentError: an exhibit is unknown, or no log for it is at hand.
    """
    chosen = parameters.chosen(NAME, EXHIBITS)
    logs = parameters.logs
    at_hand = [source for source in SOURCES if source.file in logs]
    count = WINDOWS if parameters.windows is None else parameters.windows
    cells = [
        SkowronCell(exhibit, cell)
        for exhibit in reversed(chosen)
        for cell in _cells(exhibit, at_hand, logs, count, parameters.seed)
    ]
    if not cells:
        wanted = ", ".join(source.file for source in SOURCES)
        raise ExperimentError(
            f"none of {NAME}'s logs is at hand (figure-10 needs LPC); give {wanted}, or the "
            "directory they are in"
        )
    used = {cell.window.log for cell in cells}
    return Experiment(
        name=NAME,
        description="Δψ/p_tot against ref (Skowron & Rzadca, SPAA 2013, section 7), in seconds",
        cells=cells,
        by=("exhibit", "log", "shares", "organizations", "policy"),
        value="unfairness",
        paired=("exhibit", "log", "shares", "organizations", "window", "deal"),
        inputs=[logs[source.file] for source in at_hand if source.log in used],
        notes=list(_notes(at_hand, used)),
        tables=tables,
    )


def _cells(
    exhibit: str, sources: Sequence[SkowronLog], logs: Mapping[str, Path], windows: int, seed: int
) -> Iterator[WindowCell]:
    many = exhibit == MANY
    for organizations in MANY_ORGANIZATIONS if many else (ORGANIZATIONS,):
        for source in sources:
            if many and source.log != "LPC":
                continue
            for shares in ALL_SHARES[:1] if many else ALL_SHARES:
                for window in range(windows):
                    yield WindowCell(
                        source=str(logs[source.file]),
                        log=source.log,
                        length=WINDOW_SECONDS[exhibit],
                        organizations=organizations,
                        shares=shares,
                        processors=source.processors,
                        wide="expand",
                        policies=POLICIES,
                        seed=seed,
                        window=window,
                    )


def _notes(at_hand: Sequence[SkowronLog], used: set[str]) -> Iterator[str]:
    """Yields what is not as in the paper."""
    absent = [source.log for source in SOURCES if source not in at_hand and not source.substitute]
    yield f"absent of the paper's workloads: {', '.join((*absent, *ELSEWHERE))}"
    substitutes = [source.log for source in at_hand if source.substitute and source.log in used]
    if substitutes:
        yield f"substitutes, not in the paper: {', '.join(substitutes)}"
    yield (
        "the paper says neither which windows it drew, nor how users were dealt out, nor which "
        "shares its tables have: orders and magnitudes compare, figures do not"
    )
