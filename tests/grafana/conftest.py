"""Prometheus' own tool, which knows what Prometheus accepts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Promtool = Callable[..., subprocess.CompletedProcess[str]]
"""Runs promtool with arguments and, as `stdin`, a text."""


@pytest.fixture
def promtool() -> Promtool:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")

    def run(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [found, *arguments], input=stdin, capture_output=True, text=True, check=False
        )

    return run
