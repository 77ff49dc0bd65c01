"""A command imports what it needs alone, for that is most of what a short one takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from shapleyprio.cli import COMMANDS
from shapleyprio.common.workers import PYTHON

NUMBERS = {"numpy", "pandas"}
STORE = {"sqlalchemy", "pydantic"}


def imported(commands: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Which of these packages have been imported when each command ends, one after the other."""
    program = """if True:
        import json, sys
        from click.testing import CliRunner
        from shapleyprio.cli import main
        for words in json.loads(sys.argv[1]):
            print(CliRunner().invoke(main, words).output, file=sys.stderr)
            print(*sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(list(commands.values()))],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    return {
        name: set(line.split()) & (NUMBERS | STORE)
        for name, line in zip(commands, lines, strict=True)
    }


def imported_for_help(commands: Iterable[str]) -> dict[str, set[str]]:
    return imported({command: [command, "--help"] for command in commands})


def test_help_needs_no_numbers() -> None:
    found = imported_for_help(COMMANDS)
    assert [name for name, some in found.items() if some & NUMBERS] == []


def test_work_on_files_starts_without_a_store() -> None:
    commands = ("audit", "experiment", "files", "rehearse", "replay")
    assert imported_for_help(commands) == {command: set() for command in commands}


def test_what_a_command_imports_is_never_searched_for_garbage() -> None:
    program = """if True:
        import gc
        from shapleyprio.__main__ import main
        try:
            main()
        except SystemExit:
            print(gc.isenabled(), gc.get_freeze_count())
    """
    done = subprocess.run(
        [*PYTHON, "-c", program, "files", "list"], check=True, capture_output=True, text=True
    )
    enabled, frozen = done.stdout.splitlines()[-1].split()
    assert enabled == "True"
    assert int(frozen) > 10_000


@pytest.mark.parametrize("words", [("status",), ("explain", "33"), ("explain", "-u", "ada")])
def test_who_asks_the_daemon_needs_no_store(words: tuple[str, ...], tmp_path: Path) -> None:
    socket = tmp_path / "socket"
    assert imported({"it": [*words, "--url", f"unix:{socket}"]}) == {"it": set()}
