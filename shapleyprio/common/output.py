"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from shapleyprio.common.errors import OutputError
from shapleyprio.common.wording import visible

_FORMULA_BEGINS = (*"=+-@", *"\uff1d\uff0b\uff0d\uff20")
"""What has a spreadsheet take a cell for a formula; the last four are wide forms of the first."""


def write_json(file: Path, content: object) -> None:
    """Writes a file of JSON.

    Raises:
        OutputError: it cannot be written.
    """
    with whole_file(file) as stream:
        json.dump(content, stream, indent=2, ensure_ascii=False)
        stream.write("\n")


def inert_cell(text: str) -> str:
    r"""Returns text for a cell of CSV that no spreadsheet takes for a formula (OWASP).

    An apostrophe goes before what might be one. What people would not see is written out, so that
    no cell ends its line. Numbers do not go through here.

    >>> inert_cell("=HYPERLINK(1)"), inert_cell("a=b"), inert_cell("\t=1")
    ("'=HYPERLINK(1)", 'a=b', '\\t=1')
    """
    shown = visible(text)
    return f"'{shown}" if shown.startswith(_FORMULA_BEGINS) else shown


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
