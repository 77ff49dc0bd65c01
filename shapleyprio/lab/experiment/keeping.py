"""Keeps the rows of finished cells in a directory, so that an experiment can go on later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shapleyprio.common.errors import OutputError
from shapleyprio.common.output import write_json
from shapleyprio.lab.experiment.cells import Cell, Experiment, ExperimentError, Row
from shapleyprio.lab.experiment.logs import checksum

MANIFEST = "experiment.json"
CELLS = "cells"


@dataclass(frozen=True, slots=True)
class KeptResults:
    """A directory with a whole file for each finished part.

    Attributes:
        directory: where it is.
        asked_as: key of the files under which stands what was asked for.
    """

    directory: Path
    asked_as: str

    def make(self) -> None:
        """Makes the directory, unless it is there.

        Raises:
            OutputError: it cannot be made.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"{self.directory}: cannot be created ({error.strerror}); name another directory"
            ) from None

    def finished(self, parts: Mapping[str, object]) -> dict[str, dict[str, Any]]:
        """Returns what is kept of parts, those left out that have not been finished.

        Args:
            parts: name, the same whenever it is asked for -> what it is to be the result of, as
                JSON has it.

        Raises:
            OutputError: one is the result of something else, or cannot be read.
        """
        found = {}
        for part, asked in parts.items():
            file = self.file(part)
            if not file.exists():
                continue
            found[part] = _read(file)
            if found[part].get(self.asked_as) != asked:
                raise OutputError(
                    f"{file}: was run with other parameters than are asked for now; give the same "
                    "ones, remove the file, or name a new directory"
                )
        return found

    def keep(self, part: str, asked: object, result: Mapping[str, Any]) -> dict[str, Any]:
        """Keeps a part that is finished, and returns what is kept of it from now on.

        Raises:
            OutputError: it cannot be written.
        """
        content = {self.asked_as: asked, **result}
        write_json(self.file(part), content)
        return content

    def file(self, part: str) -> Path:
        """Returns the file of a part."""
        return self.directory / f"{part}.json"


@dataclass(frozen=True, slots=True)
class ResultCache:
    """A directory with a manifest and the rows of each finished cell.

    Attributes:
        cells: the rows.
    """

    cells: KeptResults

    @classmethod
    def of(cls, directory: Path, experiment: Experiment) -> ResultCache:
        """Opens the directory, or begins it.

        Raises:
            ExperimentError: something else is kept there.
            OutputError: it cannot be read or written.
        """
        wanted = manifest_of(experiment)
        file = directory / MANIFEST
        if file.exists():
            _refuse_differences(directory, _read(file), wanted)
        elif directory.is_dir() and any(directory.iterdir()):
            raise ExperimentError(
                f"{directory}: has no {MANIFEST} and is not empty; name a new directory"
            )
        cells = KeptResults(directory / CELLS, asked_as="parameters")
        cells.make()
        write_json(file, wanted)
        return cls(cells)

    def rows_of(self, cells: Sequence[Cell]) -> dict[int, list[Row]]:
        """Returns the rows of the finished cells, by the cells' index.

        Raises:
            OutputError: a cell of that name was run with other parameters, or cannot be read.
        """
        indices = {cell.name: index for index, cell in enumerate(cells)}
        found = {}
        for name, content in self.cells.finished({c.name: _digest(c) for c in cells}).items():
            rows = content.get("rows")
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise OutputError(f"{self.cells.file(name)}: holds no rows; remove it to go on")
            found[indices[name]] = rows
        return found

    def keep(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Keeps a cell that is finished.

        Raises:
            OutputError: it cannot be written.
        """
        self.cells.keep(cell.name, _digest(cell), {"rows": rows})


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
    """Reads the object in a file.

    Raises:
        OutputError: there is none.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise OutputError(f"{file}: cannot be read ({error}); remove it to go on") from None
    if not isinstance(content, dict):
        raise OutputError(f"{file}: is not a JSON object; remove it to go on")
    return content
