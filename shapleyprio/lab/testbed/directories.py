"""Directories for the state of private clusters."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shapleyprio.common.errors import OutputError


@contextmanager
def state_directory(wanted: Path | None) -> Iterator[Path]:
    """Yields a directory for the whole state of private clusters.

    Args:
        wanted: a new or empty directory, which stays; None for one that is deleted at the end.

    Raises:
        OutputError: there is something in the wanted one, or it cannot be made.
    """
    if wanted is None:
        # a short path, for it holds UNIX sockets
        with tempfile.TemporaryDirectory(prefix="shapleyprio-", ignore_cleanup_errors=True) as made:
            yield Path(made).resolve()
        return
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{wanted} cannot be created ({error.strerror}); name another") from None
    if any(wanted.iterdir()):
        raise OutputError(f"{wanted} is not empty; name a new directory")
    yield wanted.resolve()
