"""The experiments of Skowron & Rzadca (SPAA 2013, section 7) as cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.experiment.cells import Experiment, ExperimentError, Row
from shapleyprio.experiment.skowron.published import (
    ELSEWHERE,
    LONG,
    MANY,
    SHORT,
    SOURCES,
    WINDOW_SECONDS,
    Source,
)
from shapleyprio.experiment.skowron.tables import tables
from shapleyprio.experiment.windows import WindowCell
from shapleyprio.replay.deal import Shares

POLICIES = (
    *("roundrobin", "rand-15", "rand-75", "directcontr"),
    *("fairshare", "utfairshare", "currfairshare"),
)
WINDOWS = 100
ORGANIZATIONS = 5
MANY_ORGANIZATIONS = range(12, 1, -1)
"""Of Fig. 10, the longest first."""

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
        """The window's rows, with the exhibit."""
        return [{"exhibit": self.exhibit, **row} for row in self.window.run()]


def skowron_2013(
    logs: Mapping[str, Path],
    *,
    windows: int | None = None,
    seed: int = 0,
    exhibits: Sequence[str] = (),
) -> Experiment:
    """Tables 1 and 2 and Fig. 10: Δψ/p_tot of seven policies against `ref`.

    Users are dealt out to 5 organizations and jobs of q processors become q copies, as in section
    7.2; the paper does not tell whether its tables have Zipf's or equal shares of the processors,
    so both are run. Fig. 10 is LPC with 2 to 12 organizations and Zipf's shares.

    Args:
        logs: file name in the Parallel Workloads Archive -> where the file is.
        windows: of each log, shares and number of organizations; None for 100.
        seed: of all random draws.
        exhibits: table-1, table-2, figure-10; empty for all.

    Raises:
        ExperimentError: an exhibit is unknown, or no log for it is at hand.
    """
    unknown = [exhibit for exhibit in exhibits if exhibit not in EXHIBITS]
    if unknown:
        raise ExperimentError(
            f"skowron-2013 has no exhibit {unknown[0]!r}; take of {', '.join(EXHIBITS)}"
        )
    at_hand = [source for source in SOURCES if source.file in logs]
    count = WINDOWS if windows is None else windows
    cells = [
        SkowronCell(exhibit, cell)
        for exhibit in reversed(EXHIBITS)
        if exhibit in (exhibits or EXHIBITS)
        for cell in _cells(exhibit, at_hand, logs, count, seed)
    ]
    if not cells:
        wanted = ", ".join(source.file for source in SOURCES)
        raise ExperimentError(
            f"none of skowron-2013's logs is at hand (figure-10 needs LPC); give {wanted}, or the "
            "directory they are in"
        )
    used = {cell.window.log for cell in cells}
    return Experiment(
        name="skowron-2013",
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
    exhibit: str, sources: Sequence[Source], logs: Mapping[str, Path], windows: int, seed: int
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
                        policies=POLICIES,
                        seed=seed,
                        window=window,
                    )


def _notes(at_hand: Sequence[Source], used: set[str]) -> Iterator[str]:
    """What is not as in the paper."""
    absent = [source.log for source in SOURCES if source not in at_hand and not source.substitute]
    yield f"absent of the paper's workloads: {', '.join((*absent, *ELSEWHERE))}"
    substitutes = [source.log for source in at_hand if source.substitute and source.log in used]
    if substitutes:
        yield f"substitutes, not in the paper: {', '.join(substitutes)}"
    yield (
        "the paper tells neither which windows it drew, nor how users were dealt out, nor which "
        "shares its tables have: orders and magnitudes compare, figures do not"
    )
