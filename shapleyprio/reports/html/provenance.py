"""All that it takes to make a result again: which file, which program."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("shapleyprio", "numpy", "vl-convert-python")


def checksum(source: str) -> str:
    """Returns the SHA-256 of a file, or why there is none."""
    file = Path(source)
    if not file.is_file():
        return "none: a store, whose contents change"
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def versions() -> str:
    """Returns the versions of this program and of the libraries that compute and draw."""
    found = [f"{package} {version(package)}" for package in PACKAGES]
    return ", ".join([*found, f"Python {platform.python_version()}"])
