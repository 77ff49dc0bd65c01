"""A plugin for pytest that writes the slowest tests, and files of tests, into a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

SHOWN = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slowest-file",
        type=Path,
        help=f"write the {SHOWN} slowest tests, and files, into this file",
    )


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    file: Path | None = config.getoption("--slowest-file")
    if file is None:
        return
    seconds: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid] += report.duration
    by_file: dict[str, float] = defaultdict(float)
    for name, duration in seconds.items():
        by_file[name.partition("::")[0]] += duration
    total = f"{sum(seconds.values()):8.1f} s  all {len(seconds):,} tests, one after the other\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{_slowest(seconds)}\n{_slowest(by_file)}\n{total}", encoding="utf-8")


def _slowest(seconds: Mapping[str, float]) -> str:
    """Returns the lines of those that took most of all these seconds."""
    slowest = sorted(seconds.items(), key=lambda one: -one[1])[:SHOWN]
    return "".join(f"{duration:8.1f} s  {name}\n" for name, duration in slowest)
