"""What an experiment is made of: independent cells that give rows, and how rows become a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from shapleyprio.errors import ReplayError

Row = dict[str, str | int | float | None]
"""One line of the tidy results: column to value."""


class ExperimentError(ReplayError):
    """An experiment cannot be made or run as asked; the message says what to change."""


class Cell(Protocol):
    """One unit of work and of resumption: a frozen, picklable dataclass of plain parameters.

    Cells run in other processes and on other machines, in any order. What a cell needs it reads
    itself; logs that many cells need are kept in a small cache of the process.
    """

    @property
    def name(self) -> str:
        """Unique in its experiment, fit for a file name, the same in every run."""
        ...

    def run(self) -> list[Row]:
        """Do the work; every row of an experiment has the same columns."""
        ...


@dataclass(frozen=True, slots=True)
class Table:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Cells, and which of the rows' columns tell what.

    Attributes:
        name: what it is called.
        description: one line that tells what it does.
        cells: the work, in the order in which it is best begun (long cells first).
        by: columns whose values make the groups of the summary; the last one is what is compared
            (policy), those before it get a table each.
        value: the column that is summed up; None in a row whose value could not be had, which is
            then counted as failed, and why may stand in its column `problem`.
        better: whether low or high values win.
        paired: columns that are alike in rows that compete for a win.
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
    better: Literal["low", "high"] = "low"
    paired: Sequence[str]
    inputs: Sequence[Path] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    tables: Callable[[Sequence[Row]], Sequence[Table]] | None = None


class Preset(Protocol):
    """Makes an experiment of a paper."""

    def __call__(
        self,
        logs: Mapping[str, Path],
        *,
        windows: int | None = None,
        seed: int = 0,
        exhibits: Sequence[str] = (),
    ) -> Experiment:
        """Makes the experiment; nothing is computed yet.

        Args:
            logs: file name as in the Parallel Workloads Archive -> where the file is. What the
                preset does not know is passed over; what it misses stands in its notes.
            windows: how many windows, periods or instances of each kind; None: as in the paper.
            seed: of all random draws.
            exhibits: which of the paper's tables, figures or scenarios; empty for all.

        Raises:
            ExperimentError: none of the logs at hand is one of the paper's, or an exhibit is
                unknown.
        """
        ...
