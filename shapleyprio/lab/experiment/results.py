"""Writes an experiment's rows as a tidy table, and the whole of it as JSON."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shapleyprio.common.output import inert_cell, whole_file
from shapleyprio.lab.experiment.cells import Experiment, ExperimentError, Row
from shapleyprio.lab.experiment.keeping import manifest_of
from shapleyprio.lab.experiment.summary import Line


def check_writable(file: Path) -> None:
    """Finds out before anything is computed whether rows can be written there.

    Raises:
        ExperimentError: the name does not end as that of CSV.
    """
    if file.suffix != ".csv":
        raise ExperimentError(f"{file}: rows are written as CSV; name it .csv")


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """Writes a line for each row, with the rows' keys as columns; the file appears when whole.

    Raises:
        OutputError: it cannot be written.
    """
    columns = dict.fromkeys(column for row in rows for column in row)
    with whole_file(file) as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            cells = {k: inert_cell(v) if isinstance(v, str) else v for k, v in row.items()}
            writer.writerow(cells)


def as_json(experiment: Experiment, rows: Sequence[Row], lines: Sequence[Line]) -> dict[str, Any]:
    """Returns the whole result of a run.

    Raises:
        ExperimentError: an input has gone since.
    """
    return {
        **manifest_of(experiment),
        "parameters": dict(experiment.parameters),
        "description": experiment.description,
        "value": experiment.value,
        "notes": list(experiment.notes),
        "summary": [asdict(line) for line in lines],
        "tables": [] if experiment.tables is None else list(map(asdict, experiment.tables(rows))),
        "rows": list(rows),
    }
