"""A user's first replay needs nothing but the installed program, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shapleyprio.replay import POLICIES

if TYPE_CHECKING:
    from collections.abc import Sequence

NOBODY = 65534

AS_NOBODY = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    # a Python in root's home stays readable
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
)
"""Runs a program as a user who may write nowhere."""

LOG = "; MaxProcs: 2\n" + "".join(
    f"{n} {n} 0 9 1 -1 -1 1 9 -1 1 {n % 4} 1 -1 1 -1 -1 -1\n" for n in range(1, 40)
)


@pytest.fixture
def as_nobody() -> tuple[str, ...]:
    """Words that run a program as another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    program = "import os, shapleyprio; print(os.geteuid())"
    try:
        ran = subprocess.run(
            [*AS_NOBODY, sys.executable, "-c", program],
            check=False,
            cwd="/",
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        pytest.skip("setpriv is not installed (Debian's package util-linux)")
    if ran.returncode != 0:
        pytest.skip(f"setpriv does not work here: {ran.stderr}")
    assert int(ran.stdout) == NOBODY
    return AS_NOBODY


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log in a folder that every user reaches."""
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    file = tmp_path / "log.swf"
    file.write_text(LOG)
    return file


def replay(log: Path, home: Path, prefix: Sequence[str] = ()) -> str:
    """What every policy printed, where nothing but Python itself is found."""
    command = [*prefix, sys.executable, "-m", "shapleyprio", "replay", str(log)]
    command += [word for policy in POLICIES for word in ("--policy", policy)]
    done = subprocess.run(
        [*command, "--deal-users", "2"],
        env={
            "PATH": os.environ["PATH"] if prefix else "/nonexistent",
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_first_replay_of_a_user_writes_nothing(log: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shown = replay(log, home)
    assert all(policy in shown for policy in POLICIES)
    assert list(home.iterdir()) == []


def test_who_can_write_nowhere_replays_as_others_do(
    log: Path, tmp_path: Path, as_nobody: tuple[str, ...]
) -> None:
    def without_times(shown: str) -> list[list[str]]:
        return [line.split()[:-1] for line in shown.splitlines()]

    nowhere = Path("/nonexistent")
    assert without_times(replay(log, nowhere, as_nobody)) == without_times(replay(log, tmp_path))
