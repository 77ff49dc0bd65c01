"""The parts of an experiment: its parameters, cells that give rows, and tables of these.

numpy is not imported, so that help texts can name them; a paper's package is imported only when its
experiment is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Protocol

from shapleyprio.common.errors import ReplayError
from shapleyprio.replay.policies import COMPARED, LIVE, SAMPLED_REFERENCE, Estimation
from shapleyprio.replay.workloads.choices import (
    DEFAULT_BACKFILL,
    DEFAULT_ESTIMATION,
    DEFAULT_SEED,
    DEFAULT_SHARES,
    DEFAULT_WIDE,
    Backfill,
    Shares,
    Wide,
)

Row = dict[str, str | int | float | None]
"""One line of the tidy results: column to value."""


class ExperimentError(ReplayError):
    """An experiment cannot be made or run as asked; the message says what to change."""


class Cell(Protocol):
    """One unit of work and of resumption: a frozen, picklable dataclass of plain parameters.

    Cells run in other processes, in any order. What a cell needs it reads itself; logs that many
    cells need are kept in a small cache of the process.
    """

    @property
    def name(self) -> str:
        """Unique in its experiment, fit for a file name, the same in every run."""
        ...

    def run(self) -> list[Row]:
        """Does the work; every row of an experiment has the same columns."""
        ...


@dataclass(frozen=True, slots=True)
class ExperimentTable:
    """One table to print.

    Attributes:
        title: stands above it.
        header: of the columns; the first one is aligned to the left, the others to the right.
        lines: text as it is, numbers that are shown with a few digits, None for nothing.
        notes: lines below it.
    """

    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[str | float | None]]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """A share of pooled counts: the sum of one column by that of another.

    Attributes:
        name: heading.
        part, whole: columns of counts; None in a row that has none.
    """

    name: str
    part: str
    whole: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Cells, and the meaning of the rows' columns.

    Attributes:
        name: what it is called.
        description: one line about what it does.
        cells: the work, in the order in which it is best begun (long cells first).
        by: columns whose values make the groups of the summary; the last one is what is compared
            (policy), those before it get a table each.
        value: the column that is summed up, of which low values win; None in a row whose value is
            missing, which is then counted as failed, and why may stand in its columns `problem`
            and `remedy`.
        paired: columns that are alike in rows that compete for a win.
        share: what is summed up beside the value.
        inputs: files that are read, whose checksums are kept with the results.
        parameters: with what the cells were made, those left at their defaults included.
        notes: what to know about substitutes, limits and what is absent; printed last.
        tables: makes tables of an experiment's own from all rows, such as the paper's figures
            beside ours; printed after the summary.
    """

    name: str
    description: str
    cells: Sequence[Cell]
    by: Sequence[str]
    value: str
    paired: Sequence[str]
    share: Share | None = None
    inputs: Sequence[Path] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    tables: Callable[[Sequence[Row]], Sequence[ExperimentTable]] | None = None


@dataclass(frozen=True, slots=True)
class PresetParameters:
    """What a paper's experiment is made with.

    Attributes:
        logs: file name as in the Parallel Workloads Archive -> where the file is. A preset passes
            over those that it does not know; what it misses stands in its notes.
        windows: number of windows, periods or instances of each kind; None: as in the paper.
        seed: of all random draws.
        exhibits: names of the paper's tables, figures or scenarios; empty for all.
    """

    logs: Mapping[str, Path]
    windows: int | None = None
    seed: int = DEFAULT_SEED
    exhibits: Sequence[str] = ()

    def chosen(self, preset: str, exhibits: Sequence[str]) -> tuple[str, ...]:
        """Returns the exhibits that were asked for, in the paper's order.

        Args:
            preset: its name, for the error.
            exhibits: all that the preset has.

        Raises:
            ExperimentError: it has no such exhibit.
        """
        if unknown := sorted(set(self.exhibits) - set(exhibits)):
            raise ExperimentError(
                f"{preset} has no exhibit {unknown[0]!r}; take some of {', '.join(exhibits)}"
            )
        return tuple(exhibit for exhibit in exhibits if exhibit in (self.exhibits or exhibits))


EXPERIMENT_POLICIES = (
    *(SAMPLED_REFERENCE, *COMPARED),
    *("utfairshare", "currfairshare", "roundrobin"),
)
"""Policies that experiments compare with the reference by default: those of SPAA 2013."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellParameters:
    """What all cells of the general experiment have in common.

    Attributes:
        policies: names of `shapleyprio.replay.POLICIES`, or rand-N for rand with N orderings.
        length: of a window, seconds.
        contended: seconds by which directcontr or fairshare is away from ref at least, or else
            the window is redrawn, so that there is something to compare; None for any window.
        processors: how many are dealt out; None for as many as the log says.
        wide: what becomes of jobs of several processors.
        backfill: what may pass a rigid job that does not fit.
        estimation: of contributions by shapley and live.
        seed: of all random draws.
    """

    policies: Sequence[str] = EXPERIMENT_POLICIES
    length: int = 50_000
    contended: int | None = None
    processors: int | None = None
    wide: Wide = DEFAULT_WIDE
    backfill: Backfill = DEFAULT_BACKFILL
    estimation: Estimation = DEFAULT_ESTIMATION
    seed: int = DEFAULT_SEED


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsParameters(CellParameters):
    """How many windows are drawn, and to whom users and processors are dealt out in each.

    Attributes:
        windows: number of windows of each log.
        deals: number of deals of each window.
        organizations: numbers of organizations to deal out to.
        shares: how to deal the processors out.
    """

    windows: int = 100
    deals: int = 1
    organizations: Sequence[int] = (5,)
    shares: Sequence[Shares] = (DEFAULT_SHARES,)


FORECAST_POLICIES = (LIVE, "fairshare")
"""Policies under which starts are forecast by default."""

DEFAULT_WINDOWS = WindowsParameters()


PRESETS: Mapping[str, str] = {
    "skowron-2013": "shapleyprio.lab.papers.skowron:skowron_2013",
    "cloudshare-2019": "shapleyprio.lab.papers.cloudshare:cloudshare_2019",
    "mosp-2007": "shapleyprio.lab.papers.mosp:mosp_2007",
}
"""Name on the command line -> module:function of the preset."""


def preset_experiment(name: str, parameters: PresetParameters) -> Experiment:
    """Makes a paper's experiment; nothing is computed yet.

    Args:
        name: one of `PRESETS`.
        parameters: logs and choices.

    Raises:
        ExperimentError: none of the logs is one of the paper's, or an exhibit is unknown.
    """
    experiment: Experiment = resolve_name(PRESETS[name])(parameters)
    return experiment
