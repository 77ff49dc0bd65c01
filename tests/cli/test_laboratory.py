"""A head node has no laboratory, and everything else works there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
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


PROGRAM = """
import json, sys
from click.testing import CliRunner
from shapleyprio.cli import main

done = [CliRunner().invoke(main, words) for words in json.load(sys.stdin)]
json.dump([[one.exit_code, one.stdout, one.stderr] for one in done], sys.stdout)
"""


def call(folder: Path, *calls: Sequence[str]) -> list[tuple[int, str, str]]:
    """What each call of the command line there ends with and prints, all in one process."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "100"},
        input=json.dumps(calls),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return [(code, output, errors) for code, output, errors in json.loads(done.stdout)]


def test_only_commands_that_are_there_are_listed_and_each_is_imported_without_it(
    head_node: Path,
) -> None:
    there = sorted(set(COMMANDS) - LABORATORY)
    (code, listed, errors), *shown = call(
        head_node, ["--help"], *([name, "--help"] for name in there)
    )
    assert (code, errors) == (0, "")
    words = {line.split()[0] for line in listed.splitlines() if line}
    assert words & set(COMMANDS) == set(there)
    assert [(code, errors) for code, _, errors in shown] == [(0, "")] * len(there)


def test_a_command_that_is_not_there_names_the_package_that_has_it(head_node: Path) -> None:
    names = sorted(LABORATORY)
    for name, (code, _, errors) in zip(
        names, call(head_node, *([name] for name in names)), strict=True
    ):
        assert code == 2
        assert errors.endswith(f"Error: {name} needs the package shapleyprio-replay\n")
