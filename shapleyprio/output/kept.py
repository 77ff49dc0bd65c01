"""Keeps the results of finished parts in a directory, so that long work can go on later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapleyprio.errors import OutputError
from shapleyprio.output.whole import whole_file


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
                f"{self.directory}: cannot be made ({error.strerror}); name another directory"
            ) from None

    def of(self, part: str, asked: object) -> dict[str, Any] | None:
        """Returns what is kept of a part; None if it has not been finished.

        Args:
            part: its name, the same whenever it is asked for.
            asked: what it is to be the result of, as JSON has it.

        Raises:
            OutputError: it is the result of something else, or cannot be read.
        """
        file = self._file(part)
        if not file.exists():
            return None
        content = read_json(file)
        if content.get(self.asked_as) != asked:
            raise OutputError(
                f"{file}: was run with other parameters than are asked for now; give the same "
                "ones, remove the file, or name a new directory"
            )
        return content

    def keep(self, part: str, asked: object, result: Mapping[str, Any]) -> dict[str, Any]:
        """Keeps a part that is finished, and returns what `of` returns from now on.

        Raises:
            OutputError: it cannot be written.
        """
        content = {self.asked_as: asked, **result}
        write_json(self._file(part), content)
        return content

    def _file(self, part: str) -> Path:
        return self.directory / f"{part}.json"


def read_json(file: Path) -> dict[str, Any]:
    """Reads the object in a file.

    Raises:
        OutputError: there is none.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise OutputError(f"{file}: cannot be read ({error}); remove it to go on") from None
    if not isinstance(content, dict):
        raise OutputError(f"{file}: is no object in JSON; remove it to go on")
    return content


def write_json(file: Path, content: object) -> None:
    """Writes a file of JSON.

    Raises:
        OutputError: it cannot be written.
    """
    with whole_file(file) as stream:
        json.dump(content, stream, indent=2, ensure_ascii=False)
        stream.write("\n")
