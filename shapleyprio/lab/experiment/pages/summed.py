"""An experiment as its report sees it: its summary and rows by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from shapleyprio.common.wording import HOUR, duration, four_digits
from shapleyprio.lab.experiment.cells import Experiment, Row
from shapleyprio.lab.experiment.results import Line
from shapleyprio.replay.policies.registry import title_of
from shapleyprio.reports.html.encodings import colors_of

IN_SECONDS = "unfairness"
"""The column of rows whose values are seconds; others have no unit."""


@dataclass(frozen=True)
class Summed:
    """An experiment that has run.

    Attributes:
        made: what was run.
        rows: what came out.
        groups: name -> the summary's lines, one for each of those that are compared.
    """

    made: Experiment
    rows: Sequence[Row]
    groups: Mapping[str, Sequence[Line]]

    @cached_property
    def lines(self) -> list[tuple[str, str, Line]]:
        """Every line of the summary, with its group and the name of what is compared."""
        return [
            (group, self.name_of(line), line) for group, of in self.groups.items() for line in of
        ]

    @cached_property
    def compared(self) -> list[str]:
        """What is compared, mostly policies, in order."""
        return list(dict.fromkeys(name for _, name, _ in self.lines))

    @cached_property
    def titles(self) -> dict[str, str]:
        """What is compared -> what it is called; only policies have other titles than names."""
        policies = self.made.by[-1] == "policy"
        return {name: title_of(name) if policies else name for name in self.compared}

    @cached_property
    def colors(self) -> dict[str, str]:
        """Colors of what is compared, by title."""
        return colors_of([*self.titles.values()])

    @cached_property
    def initial(self) -> str:
        """The group that is shown first."""
        return next(iter(self.groups))

    @cached_property
    def choice(self) -> str | None:
        """As `initial`; None if there is but one group."""
        return self.initial if len(self.groups) > 1 else None

    @property
    def in_seconds(self) -> bool:
        """Whether the values are seconds."""
        return self.made.value == IN_SECONDS

    @property
    def unit(self) -> str:
        """What the values are, with their unit."""
        return "too early or too late, hours" if self.in_seconds else self.made.value

    def shown(self, value: float) -> float:
        """Returns a value in its unit."""
        return value / HOUR if self.in_seconds else value

    def worded(self, value: float) -> str:
        """Returns a value for a sentence or a cell."""
        return duration(value) if self.in_seconds else four_digits(value)

    @cached_property
    def values(self) -> Mapping[tuple[str, str], Sequence[float]]:
        """(group, what is compared) -> the values of its rows, from low to high."""
        names = {
            tuple(line.group.values()): (group, self.name_of(line))
            for group, lines in self.groups.items()
            for line in lines
        }
        found = defaultdict(list)
        for row in self.rows:
            value = row[self.made.value]
            if isinstance(value, int | float):
                found[names[tuple(row[column] for column in self.made.by)]].append(value)
        return {name: sorted(values) for name, values in found.items()}

    def title_of(self, line: Line) -> str:
        """Returns what a line's policy is called."""
        return self.titles[self.name_of(line)]

    def name_of(self, line: Line) -> str:
        """Returns what a line is about: the last column of its group."""
        return str(line.group[self.made.by[-1]])
