"""A head node has no laboratory, and everything else works there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shapleyprio
from shapleyprio.cli import COMMANDS, LABORATORY

PACKAGE = Path(shapleyprio.__file__).parent


@pytest.fixture(scope="module")
def head_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, without its laboratory."""
    folder = tmp_path_factory.mktemp("head_node")
    ignored = shutil.ignore_patterns("lab", "__pycache__")
    shutil.copytree(PACKAGE, folder / "shapleyprio", ignore=ignored)
    return folder


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(folder, "from shapleyprio.cli import main; main()", *arguments)


def python(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "100"},
        check=False,
        capture_output=True,
        text=True,
    )


def test_only_commands_that_are_there_are_listed(head_node: Path) -> None:
    words = {line.split()[0] for line in call(head_node, "--help").stdout.splitlines() if line}
    assert words & set(COMMANDS) == set(COMMANDS) - LABORATORY


@pytest.mark.parametrize("name", sorted(LABORATORY))
def test_a_command_that_is_not_there_names_the_package_that_has_it(
    head_node: Path, name: str
) -> None:
    refused = call(head_node, name)
    assert refused.returncode == 2
    assert refused.stderr.endswith(f"Error: {name} needs the package shapleyprio-replay\n")


def test_every_other_command_is_imported_without_it(head_node: Path) -> None:
    calls = [[name, "--help"] for name in sorted(set(COMMANDS) - LABORATORY)]
    program = (
        "from shapleyprio.cli import main\n"
        f"for words in {calls}: main(words, standalone_mode=False)\n"
        "print('all')"
    )
    shown = python(head_node, program)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.endswith("all\n")
