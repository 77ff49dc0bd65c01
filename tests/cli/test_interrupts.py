"""Ctrl-C ends every command in one way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from shapleyprio.cli import COMMANDS, main
from shapleyprio.cli.common import UNWINDING_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

ARGUMENTS = {
    "replay": ["log.swf"],
    "audit": ["log.swf"],
    "report": ["--output", "reports"],
    "export": ["log.export"],
    "first": ["1", "--reason", "why"],
    "pause": ["--reason", "why"],
    "trial": ["log.swf"],
    "trials": [__file__, "--keep", "results"],
    "rehearse": ["log.sacct", f"--slurm-conf={__file__}", f"--organizations={__file__}"],
    "db": ["status"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_is_one_line_and_exit_code_130(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None

    def interrupted(_: click.Context) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "invoke", interrupted)
    done = CliRunner().invoke(main, [name, *ARGUMENTS.get(name, [])])
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr == "shapleyprio: interrupted\n"


def test_the_matrix_ends_in_the_same_way() -> None:
    program = (
        "from tests.matrix import __main__ as matrix\n"
        "def interrupted(*_, **__): raise KeyboardInterrupt\n"
        "matrix.on_each = interrupted\n"
        "matrix.main(['package'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "matrix: interrupted\n")


@pytest.mark.parametrize(
    ("command", "number"),
    [("replay", signal.SIGTERM), ("audit", signal.SIGHUP), ("replay", signal.SIGINT)],
)
def test_a_command_that_hangs_at_a_file_ends_by_signals_all_the_same(
    command: str, number: signal.Signals, tmp_path: Path
) -> None:
    silent = tmp_path / "log"
    os.mkfifo(silent)
    words = [sys.executable, "-m", "shapleyprio", command, str(silent), "--deal-users", "2"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        writing = os.open(silent, os.O_WRONLY)  # waits until the command reads
        try:
            process.send_signal(number)
            began = time.monotonic()
            assert process.wait(timeout=60) == 128 + number
            assert time.monotonic() - began < UNWINDING_SECONDS + 10
        finally:
            os.close(writing)
        assert process.stderr is not None
        assert "something hangs; ended without cleaning up" in process.stderr.read()
