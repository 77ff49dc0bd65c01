"""Attacks on the host through a daemon that has been taken over."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "systemd" / "shapleyprio.service"
MOST_EXPOSURE = 1.6


def test_use_the_host_from_within_the_daemon(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed (Debian's package systemd)")
    file = tmp_path / UNIT.name
    file.write_text(UNIT.read_text().replace("ExecStart=shapleyprio", "ExecStart=/bin/true"))
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(file)]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    (level,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", shown)
    assert float(level) <= MOST_EXPOSURE
    assert re.search(r"IPAddressDeny= +Service defines IP address allow list", shown)


def test_take_the_memory_and_the_processes_of_the_host() -> None:
    settings = dict(re.findall(r"^(MemoryMax|TasksMax)=(\w+)$", UNIT.read_text(), re.MULTILINE))
    assert settings == {"MemoryMax": "14G", "TasksMax": "512"}
