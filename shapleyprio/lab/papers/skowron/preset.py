"""The experiments of Skowron & Rzadca (SPAA 2013, section 7) as cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.lab.experiment.cells import Experiment, ExperimentError, PresetParameters, Row
from shapleyprio.lab.experiment.windows import WindowCell
from shapleyprio.lab.papers.skowron.published import (
    ELSEWHERE,
    LONG,
    MANY,
    SHORT,
    SOURCES,
    WINDOW_SECONDS,
    SkowronLog,
)
from shapleyprio.lab.papers.skowron.tables import tables
from shapleyprio.replay.workloads.choices import Shares

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
