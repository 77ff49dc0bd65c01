"""Surroundings in which a command cannot write, or cannot look around."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.common.shipped import PACKAGE
from shapleyprio.config import Config, connect
from shapleyprio.slurm.port import SlurmError

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534


PROGRAM = "from shapleyprio.cli import main; main(prog_name='shapleyprio')"
"""As a module, it would not heed Python's variables for root."""


def run(
    *words: str, output: int = subprocess.PIPE, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own, with these variables."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        stdout=output,
        stderr=subprocess.PIPE,
        env={**os.environ, **more},
        check=False,
    )


def test_letters_that_the_encoding_lacks_are_written_as_numbers() -> None:
    done = run("replay", "--help", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    assert rb"\u03c8" in done.stdout


@pytest.mark.parametrize("words", [("--help",), ("replay", "--help"), ("files",)])
def test_a_full_standard_output_is_one_line(words: tuple[str, ...]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run(*words, output=full)
    finally:
        os.close(full)
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("shapleyprio: standard output cannot be written (No space left")
    assert done.returncode == 2


@pytest.mark.parametrize("words", [("db",), ("ownership",)])
def test_groups_show_whole_sentences(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(main, [*words, "--help"]).output
    assert "..." not in shown.partition("Commands:")[2]


def test_a_wrong_slurm_conf_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = Config.model_validate({"organization": [{"name": "physics", "accounts": ["p"]}]})
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    with pytest.raises(SlurmError, match=r"SLURM_CONF names .*slurm\.conf, which does not exist"):
        connect(config)
    (tmp_path / "slurm.conf").touch()
    connect(config)


@pytest.fixture(scope="module")
def imported() -> None:
    """What commands import, which others may perhaps not read."""
    for words in ("init --cluster-independent --output -", "experiment missing --deal-users 2"):
        CliRunner().invoke(main, words.split())


@pytest.fixture
def closed(imported: None, tmp_path: Path) -> Iterator[Path]:
    """A folder with a log, a configuration and a list, which we may not enter."""
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "log").write_text("; MaxProcs: 3\n1 0 0 9 1 0 0 1 9 0 1 5 6 1 2 3 -1 0\n")
    (closed / "config.toml").write_text('[[organization]]\nname = "physics"\nprocessors = 3\n')
    (closed / "store.db").touch()
    closed.chmod(0)
    as_root = os.geteuid() == 0
    if as_root:
        os.seteuid(NOBODY)
    yield closed
    if as_root:
        os.seteuid(0)
    closed.chmod(0o700)


@pytest.mark.parametrize(
    "words",
    [
        "replay FOLDER/log --deal-users 2",
        "replay FOLDER/*.log --deal-users 2",
        "replay FOLDER/none/log --deal-users 2",
        "audit FOLDER/log --deal-users 2",
        "trial FOLDER/log --deal-users 2",
        "experiment FOLDER/log --deal-users 2 --cores 1",
        "replay log --organizations FOLDER/config.toml",
        "replay sqlite:///FOLDER/store.db --deal-users 2",
        "check --config FOLDER/config.toml",
        "status --config FOLDER/config.toml",
        "daemon --once --config FOLDER/config.toml",
        "db status --config FOLDER/config.toml",
        "report --config FOLDER/config.toml --output reports",
        "trials FOLDER/config.toml --keep FOLDER/kept",
        "init --cluster-independent --output FOLDER/new.toml",
        "files --copy FOLDER/files",
    ],
)
def test_a_file_that_may_not_be_used_is_one_line(
    closed: Path, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    result = CliRunner().invoke(main, words.replace("FOLDER", str(closed)).split())
    assert result.exit_code == 2, result.exception
    last = result.stderr.splitlines()[-1]
    assert str(closed) in last or str(PACKAGE) in last  # a checkout in root's home is closed, too
    assert "ermission" in last or "does not exist" in last
    assert "Traceback" not in result.stderr + capfd.readouterr().err


def test_a_name_longer_than_names_of_files_is_one_line() -> None:
    result = CliRunner().invoke(main, ["replay", "7" * 300, "--deal-users", "2"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.exception
    assert "File name too long" in result.stderr
