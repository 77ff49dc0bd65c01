"""Real logs, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

TRACES = Path(__file__).parents[3] / "shared" / "traces"


def trace(name: str) -> Path:
    """The file of a real log; skips the test where it is absent."""
    file = TRACES / name
    if not file.exists():
        pytest.skip(f"{file} is not here")
    return file
