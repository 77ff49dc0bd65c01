"""Writes an experiment's rows as a tidy table, and the whole of it as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shapleyprio.common.output import inert_cell, whole_binary_file, whole_file
from shapleyprio.lab.experiment.cells import Experiment, ExperimentError, Row
from shapleyprio.lab.experiment.keeping import manifest_of
from shapleyprio.lab.experiment.summary import Line

ENDINGS = (".parquet", ".csv")


def check_writable(file: Path) -> None:
    """Finds out before anything is computed whether rows can be written in that format.

    Raises:
        ExperimentError: the name has no known ending, or its package is missing.
    """
    if file.suffix not in ENDINGS:
        raise ExperimentError(f"{file}: name it .parquet or .csv, as the format is to be")
    if file.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ExperimentError(
            f"{file}: Parquet needs one more package: pip install 'shapleyprio[experiment]'; "
            "or name it .csv"
        )


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """Writes a line for each row, with the rows' keys as columns; the file appears when whole.

    Raises:
        OutputError: it cannot be written.
    """
    import pandas as pd  # takes a third of a second, and most runs write no rows

    frame = pd.DataFrame.from_records(list(rows))
    if file.suffix == ".csv":
        frame = frame.map(lambda value: inert_cell(value) if isinstance(value, str) else value)
        with whole_file(file) as stream:
            frame.to_csv(stream, index=False, lineterminator="\n")
        return
    with whole_binary_file(file) as binary:
        frame.to_parquet(binary, index=False)


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
