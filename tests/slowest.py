"""A plugin for pytest that writes the slowest tests into a file."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

SHOWN = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slowest-file", type=Path, help=f"write the {SHOWN} slowest tests into this file"
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
    slowest = sorted(seconds.items(), key=lambda test: -test[1])[:SHOWN]
    lines = [f"{duration:8.1f} s  {name}\n" for name, duration in slowest]
    total = f"{sum(seconds.values()):8.1f} s  all {len(seconds):,} tests, one after the other\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join([*lines, total]), encoding="utf-8")
