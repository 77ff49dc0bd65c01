"""Surroundings in which a command cannot write, or cannot look around."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.config import Config, connect
from shapleyprio.slurm.port import SlurmError


def run(
    *words: str, output: int = subprocess.PIPE, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own, with these variables."""
    return subprocess.run(
        [sys.executable, "-m", "shapleyprio", *words],
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
    with pytest.raises(SlurmError, match=r"SLURM_CONF names .*slurm\.conf, which is not there"):
        connect(config)
    (tmp_path / "slurm.conf").touch()
    connect(config)
