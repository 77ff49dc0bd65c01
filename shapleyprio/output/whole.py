"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from shapleyprio.errors import OutputError


def whole_file(path: Path) -> AbstractContextManager[TextIO]:
    """Opens a file for writing text that appears when it is complete, or not at all.

    A file that is there keeps its permissions. What is no regular file, such as a pipe, is
    written as it comes.

    Raises:
        OutputError: it cannot be written.
    """
    return _whole(path, "w", encoding="utf-8", newline="")


def whole_binary_file(path: Path) -> AbstractContextManager[BinaryIO]:
    """Opens a file for writing bytes; the rest is as for `whole_file`.

    Raises:
        OutputError: it cannot be written.
    """
    return _whole(path, "wb")


@contextmanager
def _whole(
    path: Path, mode: str, encoding: str | None = None, newline: str | None = None
) -> Iterator[Any]:
    target = path.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    in_place = target.exists() and not target.is_file()
    try:
        with (target if in_place else partial).open(
            mode, encoding=encoding, newline=newline
        ) as file:
            if not in_place and target.exists():
                shutil.copymode(target, partial)
            yield file
            file.flush()
            if not in_place:
                os.fsync(file.fileno())
        if not in_place:
            partial.replace(target)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); name another file"
        ) from None
    finally:
        with suppress(OSError):
            partial.unlink()
