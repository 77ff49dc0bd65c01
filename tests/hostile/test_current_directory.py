"""Attacks by code that lies where root or the daemon is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shapleyprio.common.workers import PYTHON
from shapleyprio.daemon.drift import live as drift
from shapleyprio.daemon.estimation import worker as estimation
from shapleyprio.slurm.command_line.commands import ALARMED
from shapleyprio.slurm.pyslurm import adapter as pyslurm

IMPORTED = ("click", "json", "numpy", "pydantic", "pyslurm", "selectors", "sqlalchemy", "structlog")
"""By one of the programs below."""

ANOTHER = ["unshare", "--user"]
"""Runs a command as somebody who is not root, whoever runs the tests."""

ROOT = [*ANOTHER, "--map-root-user"]

SECONDS = 120


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A directory with modules that leave a file when anybody imports them."""
    for name in IMPORTED:
        stolen = str(tmp_path / f"stolen by {name}")
        (tmp_path / f"{name}.py").write_text(f"open({stolen!r}, 'w').close()\n")
    return tmp_path


def imports_none(trapped: Path, words: list[str], *, given: str = "") -> None:
    subprocess.run(
        words,
        cwd=trapped,
        env={**os.environ, "PYTHONPATH": str(trapped), "SHAPLEYPRIO_STORE_URL": "sqlite://"},
        input=given,
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert [file.name for file in trapped.iterdir() if file.name.startswith("stolen")] == []


@pytest.mark.parametrize(
    "words",
    [
        [*estimation.WORKER, "cluster", str(2**32), "0"],
        [*drift.WORKER],
        [*pyslurm.WORKER, "0"],
        [*ALARMED, "0", "true"],
    ],
    ids=lambda words: " ".join(words[2:4]),
)
def test_have_a_child_import_from_the_directory_of_whoever_starts_it(
    trapped: Path, words: list[str]
) -> None:
    assert words[: len(PYTHON)] == [*PYTHON]
    imports_none(trapped, words, given="{}\n")


@pytest.mark.parametrize("installed", [True, False], ids=["command", "module"])
@pytest.mark.parametrize(
    ("user", "words"),
    [(ROOT, ["status"]), (ANOTHER, ["daemon", "--once"])],
    ids=["root", "daemon"],
)
def test_have_root_or_the_daemon_import_from_the_directory_that_they_are_in(
    trapped: Path, user: list[str], words: list[str], *, installed: bool
) -> None:
    command = shutil.which("shapleyprio", path=str(Path(sys.executable).parent))
    if installed and command is None:
        pytest.skip("shapleyprio is not installed beside this Python")
    if subprocess.run([*user, "true"], check=False, capture_output=True).returncode:
        pytest.skip("unshare makes no user namespace here")
    program = [command] if installed and command else [sys.executable, "-m", "shapleyprio"]
    imports_none(trapped, [*user, *program, *words, "--config", str(trapped / "none.toml")])
