"""A command imports what it needs alone, for that is most of what a short one takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shapleyprio.cli import COMMANDS

NUMBERS = {"numpy", "pandas", "distributed"}
STORE = {"sqlalchemy", "pydantic"}


def imported(*words: str) -> set[str]:
    """Which of these packages a command has imported when it ends."""
    program = """if True:
        import sys
        from click.testing import CliRunner
        from shapleyprio.cli import main
        print(CliRunner().invoke(main, sys.argv[1:]).output, file=sys.stderr)
        print(*sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", program, *words], check=True, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    return set(done.stdout.split()) & (NUMBERS | STORE)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_numbers(command: str) -> None:
    assert imported(command, "--help").isdisjoint(NUMBERS)


@pytest.mark.parametrize("command", ["audit", "experiment", "files", "rehearse", "replay"])
def test_work_on_files_starts_without_a_store(command: str) -> None:
    assert imported(command, "--help") == set()


@pytest.mark.parametrize("words", [("status",), ("explain", "33"), ("explain", "-u", "ada")])
def test_who_asks_the_daemon_needs_no_store(words: tuple[str, ...], tmp_path: Path) -> None:
    socket = tmp_path / "socket"
    assert imported(*words, "--url", f"unix:{socket}") == set()
