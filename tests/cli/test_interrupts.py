"""Ctrl-C ends every command in one way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shapleyprio.cli import COMMANDS

PROGRAM = """
import sys
from shapleyprio.cli import main

def interrupted(*_, **__):
    raise KeyboardInterrupt

command = main.get_command(None, sys.argv[1])
command.invoke = interrupted
main.get_command = lambda *_: command
main(sys.argv[1:])
"""

ARGUMENTS = {
    "replay": ["log.swf"],
    "audit": ["log.swf"],
    "report": ["--output", "reports"],
    "trial": ["log.swf"],
    "trials": [__file__, "--keep", "results"],
    "db": ["status"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_is_one_line_and_exit_code_130(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, *ARGUMENTS.get(name, [])],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (130, "")
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
