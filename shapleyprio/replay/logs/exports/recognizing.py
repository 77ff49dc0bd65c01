"""Tells an export from other files by its first bytes, without the packages that read it."""

from __future__ import annotations

import zlib
from pathlib import Path

MANIFEST = "manifest.json"
"""The first file of an export."""

RECORD = 512
"""Bytes; a tar consists of records of this size."""

_GZIP = b"\x1f\x8b"
_MAGIC = slice(257, 262)
_NAME = slice(0, 100)


def is_export(source: str) -> bool:
    """Returns whether a file looks like an export, as far as it can be read."""
    try:
        if not Path(source).is_file():
            return False
        with Path(source).open("rb") as file:
            head = file.read(2 * RECORD)
        if head.startswith(_GZIP):
            head = zlib.decompressobj(wbits=31).decompress(head, RECORD)
    except (OSError, ValueError, zlib.error):
        return False
    return name_in(head) == MANIFEST


def name_in(head: bytes) -> str:
    """Returns the name in the head of a file of a tar; nothing if it is no such head."""
    if head[_MAGIC] != b"ustar":
        return ""
    return head[_NAME].partition(b"\0")[0].decode("ascii", "replace")
