"""Packages that only some commands need, and the extras that bring them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shapleyprio.errors import ReplayError

REPLAY = frozenset({"numpy", "pandas"})

EXTRAS = {
    "replay": REPLAY,
    "experiment": REPLAY | {"pyarrow"},
    "trial": REPLAY | {"psutil"},
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
