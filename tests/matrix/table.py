"""The table in the README that shows what was tested on which release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.matrix.roots import ROOT
from tests.matrix.stages import Done
from tests.matrix.suites import SUITES

README = ROOT / "README.md"
BEGIN = "<!-- written by ./run matrix --write-table -->"
END = "<!-- end -->"
_TABLE = re.compile(rf"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)


def table(results: Mapping[str, list[Done]]) -> str:
    """The table in Markdown.

    Args:
        results: release -> what its stages found, all of them.
    """
    lines = [
        "| Slurm | Debian | Python | package installed, upgraded, removed | tests on this Slurm"
        " | demo | trial |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for suite in SUITES:
        found = {done.stage: done.found for done in results[suite.release]}
        slurm, python, _ = found["versions"].split(", ")
        passed = re.search(r"[0-9]+ passed", found["tests"])
        assert passed is not None
        lines.append(
            f"| {slurm} | {suite.debian}, {suite.name} | {python} | yes | {passed[0]} | yes | yes |"
        )
    return "\n".join(lines)


def write(results: Mapping[str, list[Done]], readme: Path = README) -> None:
    """Replaces the table in the README."""
    text = readme.read_text()
    assert _TABLE.search(text), f"{readme} has no place for the table"
    readme.write_text(_TABLE.sub(lambda _: f"{BEGIN}\n{table(results)}\n{END}", text))
