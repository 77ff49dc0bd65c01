"""Errors that are found before anything is computed: usage, and packages that are not there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource

from shapleyprio.cli.options.json_output import STDOUT
from shapleyprio.common.errors import ReplayError


def refuse(*contradictions: tuple[object, str]) -> None:
    """Raises a usage error for the first contradiction that is true."""
    for wrong, message in contradictions:
        if wrong:
            raise click.UsageError(message)


def is_given(name: str) -> bool:
    """Returns whether the command that is called was given an option.

    Args:
        name: of its parameter.
    """
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def refuse_the_same_file(
    *written: tuple[str, Path | None], read: Iterable[tuple[str, Path | None]] = ()
) -> None:
    """Raises a usage error if a file (by option) that is written is another one, too."""
    options = {os.path.realpath(file): option for option, file in read if file is not None}
    for option, file in written:
        if file not in (None, STDOUT):
            other = options.setdefault(os.path.realpath(file), option)
            refuse((other != option, f"{other} and {option} name the same file"))


def refuse_missing_directories(*files: tuple[str, Path | None]) -> None:
    """Raises a usage error for a file (by option) that has no directory to be written in."""
    for option, file in files:
        if file not in (None, STDOUT) and not file.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no directory {file.parent}", param_hint=option)


EXTRAS = {
    "replay": frozenset({"numpy"}),
    "trial": frozenset({"numpy", "psutil"}),
    "report": frozenset({"jinja2", "markupsafe", "vl_convert"}),
}
"""Extra of the package -> what it brings."""


@contextmanager
def packages_needed(what: str, extra: str | None = None) -> Iterator[None]:
    """Says how to install the packages without which a command or an option cannot work.

    Args:
        what: the command or option.
        extra: that brings them; None if it has the command's name.

    Raises:
        ReplayError: one of them is missing.
    """
    extra = extra or what
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS[extra]:
            raise
        raise ReplayError(
            f"{what} needs more packages: install the package shapleyprio-replay, "
            f"or pip install 'shapleyprio[{extra}]'"
        ) from None
