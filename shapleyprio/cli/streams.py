"""Standard output and error that cannot take what is written."""

from __future__ import annotations

import errno
import os
import sys

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What a write into a full or broken file ends with."""


def write_in_any_encoding() -> None:
    """Lets letters that the encoding of the terminal lacks be written as their numbers."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_full(error: OSError) -> bool:
    """Returns whether standard output could not be written; other files are named in errors."""
    return error.errno in FULL and error.filename is None


def give_up_output() -> None:
    """Lets what standard output still holds go nowhere, so that the end of Python is silent."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
