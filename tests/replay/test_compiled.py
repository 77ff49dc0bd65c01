"""Compiled code is shared between users, never stale, and never another user's."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import shapleyprio
from shapleyprio.cli import main
from shapleyprio.replay import POLICIES, kernel_cache
from shapleyprio.replay.compiled import DISPATCHERS

if TYPE_CHECKING:
    from collections.abc import Sequence

NOBODY = 65534

READS_DIGITS = """
import numpy as np
from shapleyprio.replay.columns import digits, digits_end
assert digits(np.frombuffer(b"12", np.uint8), 0, 2) == 12
"""
"""Compiles one small function; a log's reader would take several times as long."""

PRINTS = """
import json
from dataclasses import asdict
from shapleyprio.replay.compiled import counts
print(json.dumps(asdict(counts())))
"""


@dataclass(frozen=True)
class Findings:
    """What a process did: functions found compiled, functions it compiled, and what it said."""

    found: int
    compiled: int
    errors: str


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


def python(
    program: str, *, shared: Path, prefix: Sequence[str] = (), **environment: str
) -> Findings:
    """Runs a program in a process of its own, which must succeed."""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", program + PRINTS],
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "PYTHONDONTWRITEBYTECODE": "1",
            kernel_cache.SHARED_VARIABLE: str(shared),
            **environment,
        },
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return Findings(**json.loads(done.stdout.splitlines()[-1]), errors=done.stderr)


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
def folder(tmp_path: Path) -> Path:
    """An empty folder that others reach and only we write."""
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    made = tmp_path / "shared"
    made.mkdir(0o755)
    return made


@pytest.fixture(scope="module")
def compiled_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code that reads digits."""
    folder = tmp_path_factory.mktemp("digits")
    assert python(READS_DIGITS, shared=folder).compiled > 0
    return folder


@pytest.fixture
def filled(folder: Path, compiled_digits: Path) -> Path:
    """A folder as `folder`, with the code that reads digits."""
    shutil.copytree(compiled_digits, folder, dirs_exist_ok=True)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that `shapleyprio compile` has filled."""
    folder = tmp_path_factory.mktemp("complete")
    for parent in (folder, folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    known = kernel_cache.shared_folder() / kernel_cache.release()
    if known.is_dir():  # what other tests compiled need not be compiled again
        shutil.copytree(known, folder / known.name)
    filled = CliRunner().invoke(main, ["compile", "--directory", str(folder)])
    assert filled.exit_code == 0, filled.output
    return folder


ALL_POLICIES = f"""
from shapleyprio.experiment.compiling import _workload, SACCT, SWF
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.sacct import read_sacct
from shapleyprio.replay.swf import read_swf
read_swf("log", SWF)
read_sacct("log", SACCT)
for policy in {list(POLICIES)}:
    run_policy(_workload(3), policy)
"""


def test_what_root_compiled_another_user_need_not_compile(
    complete: Path, as_nobody: tuple[str, ...]
) -> None:
    answer = python(ALL_POLICIES, shared=complete, prefix=as_nobody)
    assert answer.compiled == 0
    assert answer.found > 5
    assert answer.errors == ""


def test_who_can_write_nowhere_compiles_and_forgets(
    folder: Path, as_nobody: tuple[str, ...]
) -> None:
    answer = python(READS_DIGITS, shared=folder, prefix=as_nobody)
    assert answer.compiled > 0
    assert answer.errors == ""
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_whose_home_lies_where_nobody_may_look_compiles_and_forgets(
    folder: Path, tmp_path: Path
) -> None:
    """Unlike AS_NOBODY it may not even read: what Python needs is in memory by then."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    program = f"""
import os
{READS_DIGITS}
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
try:
    os.stat(os.environ["HOME"])
except PermissionError:
    assert digits_end(np.frombuffer(b"1-", np.uint8), 0, 2) == 1
"""
    answer = python(program, shared=folder / "none", HOME=str(closed / "user"))
    assert answer.compiled == 2  # one as root, the other as a user
    assert answer.errors == ""
    assert list(closed.iterdir()) == []


def test_what_is_not_shared_is_kept_in_the_users_own_cache(
    folder: Path, tmp_path: Path, as_nobody: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    first = python(READS_DIGITS, shared=folder, prefix=as_nobody, HOME=str(home))
    again = python(READS_DIGITS, shared=folder, prefix=as_nobody, HOME=str(home))
    assert first.compiled > 0
    assert again.compiled == 0
    assert again.found > 0
    assert (home / ".cache" / "shapleyprio" / kernel_cache.release()).is_dir()
    assert list(folder.iterdir()) == []


def test_who_can_write_the_shared_cache_adds_to_it(filled: Path) -> None:
    assert python(READS_DIGITS, shared=filled).compiled == 0
    for file in (filled / kernel_cache.release()).iterdir():
        assert file.stat().st_mode & 0o777 == 0o644


def test_code_that_others_could_have_put_there_is_not_executed(filled: Path) -> None:
    (filled / kernel_cache.release()).chmod(0o777)
    assert python(READS_DIGITS, shared=filled).found == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_code_of_a_user_who_is_not_root_is_not_executed(filled: Path) -> None:
    os.chown(filled, NOBODY, NOBODY)
    assert python(READS_DIGITS, shared=filled).found == 0


def test_damaged_code_is_compiled_anew(filled: Path) -> None:
    for file in (filled / kernel_cache.release()).iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert python(READS_DIGITS, shared=filled).compiled > 0
    assert python(READS_DIGITS, shared=filled).compiled == 0


def test_code_for_another_processor_is_not_taken(filled: Path) -> None:
    assert python(READS_DIGITS, shared=filled, NUMBA_CPU_NAME="generic").found == 0


@pytest.mark.parametrize("changed", ["replay/kernel/worth.py", "papers/cloudshare/brokers.py"])
def test_code_of_changed_sources_is_stale(changed: str, tmp_path: Path) -> None:
    package = tmp_path / "shapleyprio"
    shutil.copytree(Path(shapleyprio.__file__).parent, package)
    program = "from shapleyprio.replay import kernel_cache as it; print(it.__file__, it.release())"

    def release() -> list[str]:
        answer = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        return answer.stdout.split()

    assert release() == [str(package / "replay" / "kernel_cache.py"), kernel_cache.release()]
    with (package / changed).open("a") as file:
        file.write("# changed\n")
    assert release()[1] != kernel_cache.release()


def test_all_functions_that_are_compiled_count_for_staleness() -> None:
    package = Path(shapleyprio.__file__).parent
    users = {
        file.relative_to(package)
        for file in package.rglob("*.py")
        if re.search(r"replay\.compiled import .*(compiled|inlined|kernel)", file.read_text())
    }
    assert len(users) > 5
    for file in users:
        assert any(file.is_relative_to(folder) for folder in kernel_cache.SOURCES), file
    assert DISPATCHERS


# shapleyprio compile


def test_compiling_again_adds_nothing(complete: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in complete.rglob("*")}
    again = CliRunner().invoke(main, ["compile", "--directory", str(complete)])
    assert again.output.splitlines()[-1] == f"{complete}: was complete"
    assert {file: file.stat().st_mtime_ns for file in complete.rglob("*")} == before


def test_compiling_removes_what_earlier_releases_left_and_nothing_else(complete: Path) -> None:
    old, other = complete / "compiled-0123", complete / "notes"
    for folder in (old, other):
        folder.mkdir()
        (folder / "file").touch()
    CliRunner().invoke(main, ["compile", "--directory", str(complete)])
    assert not old.exists()
    assert (other / "file").exists()


def test_a_directory_that_cannot_be_written_is_reported_in_one_line() -> None:
    done = CliRunner().invoke(main, ["compile", "--directory", "/proc/shapleyprio"])
    assert done.exit_code == 2
    assert done.stderr.startswith("shapleyprio: /proc/shapleyprio: cannot be written (")
    assert len(done.stderr.splitlines()) == 1


def test_a_directory_of_others_is_refused_in_one_line(folder: Path) -> None:
    folder.chmod(0o777)
    done = CliRunner().invoke(main, ["compile", "--directory", str(folder)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"shapleyprio: {folder}: users would execute what is there")
    assert len(done.stderr.splitlines()) == 1
