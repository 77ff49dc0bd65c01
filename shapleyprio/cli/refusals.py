"""Usage errors that are found before anything is computed."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from shapleyprio.cli.json_output import STDOUT


def refuse(*contradictions: tuple[object, str]) -> None:
    """Raises a usage error for the first contradiction that is true."""
    for wrong, message in contradictions:
        if wrong:
            raise click.UsageError(message)


def workers_without_slurm(dask: str | None, workers: int | None) -> tuple[bool, str]:
    """Returns a contradiction for `refuse`."""
    return workers is not None and dask != "slurm", "--workers goes with --dask slurm"


def is_given(name: str) -> bool:
    """Returns whether the command that is called was given an option.

    Args:
        name: of its parameter.
    """
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def refuse_the_same_file(*files: tuple[str, Path | None]) -> None:
    """Raises a usage error if two files (by option) are the same."""
    options: dict[Path, str] = {}
    for option, file in files:
        if file not in (None, STDOUT):
            other = options.setdefault(file.absolute(), option)
            refuse((other != option, f"{other} and {option} name the same file"))


def refuse_missing_directories(*files: tuple[str, Path | None]) -> None:
    """Raises a usage error for a file (by option) that has no directory to be written in."""
    for option, file in files:
        if file not in (None, STDOUT) and not file.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no directory {file.parent}", param_hint=option)


def refuse_used_directory(option: str, directory: Path | None) -> None:
    """Raises a usage error for a directory that has something in it."""
    if directory is not None and directory.is_dir() and any(directory.iterdir()):
        raise click.UsageError(f"{option}: {directory} is not empty; name a new directory")
