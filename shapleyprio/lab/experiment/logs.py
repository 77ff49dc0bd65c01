"""Logs that cells need, read once by each process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from shapleyprio.lab.experiment.cells import ExperimentError
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.workloads.log import Log

LOGS_AT_ONCE = 2
"""Cells come log by log, so more would only take memory."""


@lru_cache(maxsize=LOGS_AT_ONCE)
def log_of(source: str) -> Log:
    """Reads a log, or remembers it.

    Raises:
        LogError: it cannot be read.
    """
    return read_log(source)


def logs_among(paths: Iterable[Path]) -> Mapping[str, Path]:
    """Maps file names to paths, for given files and for files directly in given directories.

    Raises:
        ExperimentError: a path does not exist.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise ExperimentError(f"{path}: does not exist; name logs, or a directory with logs")
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        found |= {file.name: file.resolve() for file in files if file.is_file()}
    return found


def checksum(file: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal digits.

    Raises:
        ExperimentError: it cannot be read.
    """
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ExperimentError(f"{file}: cannot be read: {error.strerror}") from None
