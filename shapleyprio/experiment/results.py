"""Writes an experiment's rows as a tidy table, and the whole of it as JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from shapleyprio.experiment.cells import Experiment, ExperimentError, Row
from shapleyprio.experiment.keeping import manifest_of
from shapleyprio.experiment.summary import Line
from shapleyprio.replay.results import whole_file

ENDINGS = (".parquet", ".csv")


def check_writable(file: Path) -> None:
    """Finds out before anything is computed whether rows can be written in that format.

    Raises:
        ExperimentError: the name tells no format, or its package is missing.
    """
    if file.suffix not in ENDINGS:
        raise ExperimentError(f"{file}: name it .parquet or .csv, which tells the format")
    if file.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ExperimentError(
            f"{file}: Parquet needs one more package: pip install 'shapleyprio[experiment]'; "
            "or name it .csv"
        )


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """Writes a line for each row, with the rows' keys as columns; the file appears when whole.

    Raises:
        ReplayError: it cannot be written.
    """
    frame = pd.DataFrame.from_records(list(rows))
    if file.suffix == ".csv":
        with whole_file(file) as stream:
            frame.to_csv(stream, index=False, lineterminator="\n")
        return
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        frame.to_parquet(partial, index=False)
        partial.replace(file)
    except OSError as error:
        raise ExperimentError(
            f"{file}: cannot be written ({error.strerror}); name another file"
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def as_json(experiment: Experiment, rows: Sequence[Row], lines: Sequence[Line]) -> dict[str, Any]:
    """Everything that a run tells.

    Raises:
        ExperimentError: an input has gone since.
    """
    return {
        **manifest_of(experiment),
        "parameters": dict(experiment.parameters),
        "description": experiment.description,
        "value": experiment.value,
        "better": experiment.better,
        "notes": list(experiment.notes),
        "summary": [asdict(line) for line in lines],
        "rows": list(rows),
    }
