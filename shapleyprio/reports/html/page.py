"""The parts of a report, whatever it is about, and which file and program it is from."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shapleyprio.common.errors import ReplayError

Cell = str | int | float | None

Data = Mapping[str, Sequence[Cell]]
"""Data of a chart: field -> its values, all of the same length."""


class ReportError(ReplayError):
    """A report cannot be made or written; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows for reading; numbers are written out for eyes, None as a dash.

    Attributes:
        headings: of the columns.
        rows: cells, as many in each as there are headings.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    @property
    def numeric(self) -> frozenset[int]:
        """Indices of the columns that hold numbers."""
        return frozenset(
            index
            for row in self.rows
            for index, value in enumerate(row)
            if isinstance(value, int | float)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart and its data.

    Attributes:
        name: in lower case with hyphens, once on its page: the name of its picture.
        spec: in Vega-Lite, without data, width and configuration.
        data: what it shows.
    """

    name: str
    spec: Mapping[str, Any]
    data: Data

    def has(self, signal: str) -> bool:
        """Returns whether the chart follows a signal of the page ("choice", "hidden", "begin")."""
        return any(parameter["name"] == signal for parameter in self.spec.get("params", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A question and its answer.

    Attributes:
        title: of a few words.
        note: how to read the chart, in one to three sentences.
        chart: None where a table says it all.
        table: what is behind the chart.
    """

    title: str
    note: str
    chart: Chart | None
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the reader can choose between for all charts that have a `choice`.

    Attributes:
        label: what is chosen, such as "policy".
        options: to choose from, with what each is called on the page.
        initial: what is shown at first.
    """

    label: str
    options: Mapping[str, str]
    initial: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What the first page says around the verdict and the first section's picture.

    Attributes:
        about: whose cluster and which time it is about, a line each.
        reading: how to read the figures, and what their words mean.
        advice: what to do, a sentence or two each.
        caveats: what the figures do not say, likewise.
        before: the figures of the period before beside these; None if not requested.
    """

    about: Sequence[str]
    reading: str
    advice: Sequence[str]
    caveats: Sequence[str]
    before: Section | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report.

    Attributes:
        title: what it is about.
        verdict: the outcome in one sentence.
        sections: in the order of reading. With a front, the first one is on the first page, and
            nothing that the reader can choose changes it.
        parameters: name -> value: all that it takes to reproduce the report.
        organizations: name -> color; the reader can switch each off in all charts.
        choice: what the reader can choose between; None for nothing.
        command: that repeats the report.
        front: the rest of the first page.
    """

    title: str
    verdict: str
    sections: Sequence[Section]
    parameters: Mapping[str, str]
    organizations: Mapping[str, str] = field(default_factory=dict)
    choice: Choice | None = None
    command: str | None = None
    front: Front | None = None


def columns_of(fields: Sequence[str], rows: Iterable[Sequence[Cell]]) -> dict[str, list[Cell]]:
    """Makes the data of a chart from rows.

    >>> columns_of(("policy", "value"), [("ref", 0), ("fcfs", 40)])
    {'policy': ['ref', 'fcfs'], 'value': [0, 40]}
    """
    columns: dict[str, list[Cell]] = {field: [] for field in fields}
    for row in rows:
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return columns


PACKAGES = ("shapleyprio", "numpy", "vl-convert-python")


def checksum(source: str) -> str:
    """Returns the SHA-256 of a file, or why there is none."""
    file = Path(source)
    if not file.is_file():
        return "none: a store, whose contents change"
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def versions() -> str:
    """Returns the versions of this program and of the libraries that compute and draw."""
    found = [f"{package} {version(package)}" for package in PACKAGES]
    return ", ".join([*found, f"Python {platform.python_version()}"])
