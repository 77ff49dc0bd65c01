"""Files that hold a secret: who may read them."""

from __future__ import annotations

from pathlib import Path

OTHERS = 0o007
"""What a file's mode grants to users outside its group."""


def exposure(file: Path) -> str:
    """Returns what is wrong with a secret file that is open to others; empty if nothing is.

    Raises:
        OSError: the file cannot be looked at.
    """
    if file.stat().st_mode & OTHERS:
        return f"is open to every user of this host; chmod o= {file}"
    return ""
