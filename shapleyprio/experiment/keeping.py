"""Keeps the rows of finished cells in a directory, so that an experiment can go on later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shapleyprio.experiment.cells import Cell, Experiment, ExperimentError, Row
from shapleyprio.experiment.logs import checksum
from shapleyprio.output import whole_file

MANIFEST = "experiment.json"
CELLS = "cells"


@dataclass(frozen=True, slots=True)
class ResultCache:
    """A directory with a manifest and a whole file for each finished cell.

    Attributes:
        directory: where it is.
    """

    directory: Path

    @classmethod
    def of(cls, directory: Path, experiment: Experiment) -> ResultCache:
        """Opens the directory, or begins it.

        Raises:
            ExperimentError: something else is kept there.
            ReplayError: it cannot be written.
        """
        wanted = manifest_of(experiment)
        file = directory / MANIFEST
        if file.exists():
            _refuse_differences(directory, _read(file), wanted)
        elif directory.is_dir() and any(directory.iterdir()):
            raise ExperimentError(
                f"{directory}: has no {MANIFEST} and is not empty; name a new directory"
            )
        try:
            (directory / CELLS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExperimentError(
                f"{directory}: cannot be made ({error.strerror}); name another directory"
            ) from None
        _write(file, wanted)
        return cls(directory)

    def rows_of(self, cells: Sequence[Cell]) -> dict[int, list[Row]]:
        """Returns the rows of the finished cells, by the cells' index.

        Raises:
            ExperimentError: a cell of that name was run with other parameters.
        """
        finished = {}
        for index, cell in enumerate(cells):
            file = self._file(cell)
            if not file.exists():
                continue
            content = _read(file)
            if content["parameters"] != _digest(cell):
                raise ExperimentError(
                    f"{file}: was run with other parameters (another seed, other policies, or a "
                    "log elsewhere); give the same ones, or name a new directory"
                )
            finished[index] = content["rows"]
        return finished

    def keep(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Keeps a cell that is finished.

        Raises:
            ReplayError: it cannot be written.
        """
        _write(self._file(cell), {"parameters": _digest(cell), "rows": rows})

    def _file(self, cell: Cell) -> Path:
        return self.directory / CELLS / f"{cell.name}.json"


def manifest_of(experiment: Experiment) -> dict[str, Any]:
    """Returns an experiment's name, this package's version, and the checksums of the inputs.

    Raises:
        ExperimentError: an input cannot be read.
    """
    return {
        "experiment": experiment.name,
        "version": version("shapleyprio"),
        "inputs": {file.name: checksum(file) for file in experiment.inputs},
    }


def _refuse_differences(directory: Path, kept: dict[str, Any], wanted: dict[str, Any]) -> None:
    for key in ("experiment", "version"):
        if kept[key] != wanted[key]:
            raise ExperimentError(
                f"{directory}: keeps cells of {key} {kept[key]}, not {wanted[key]}; "
                "name a new directory"
            )
    for name in kept["inputs"].keys() & wanted["inputs"].keys():
        if kept["inputs"][name] != wanted["inputs"][name]:
            raise ExperimentError(
                f"{directory}: keeps cells of another {name}, its checksum has changed since; "
                "name a new directory"
            )
    wanted["inputs"] = kept["inputs"] | wanted["inputs"]


def _digest(cell: Cell) -> str:
    """Returns a checksum of all parameters: cells are dataclasses, whose text has every field."""
    return hashlib.sha256(repr(cell).encode()).hexdigest()


def _read(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{file}: cannot be read ({error}); remove it to go on") from None
    return content


def _write(file: Path, content: dict[str, Any]) -> None:
    with whole_file(file) as stream:
        json.dump(content, stream, indent=1)
