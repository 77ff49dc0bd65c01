"""How the library is made and found, and what of an argument is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shapleyprio
from shapleyprio.replay.logs.columns import Column, Fields, _holds

ROOT = Path(shapleyprio.__file__).parents[1]
NATIVE = Path("shapleyprio", "replay", "native")
PRELOAD = Path("shapleyprio", "lab", "testbed", "preload.c")
BEGIN, END = np.array([0, 4]), np.array([3, 7])


def holds_a_comma(text: object, begin: object = BEGIN, end: object = END) -> list[bool]:
    found = np.ones(2, dtype=np.bool_)
    _holds(Fields(text, begin, end), ord(","), found)  # type: ignore[arg-type]
    return [bool(one) for one in found]


def test_arrays_arrive_where_they_are_and_are_written_to() -> None:
    text = np.frombuffer(b"a,bcdef", dtype=np.uint8)
    assert holds_a_comma(text) == [True, False]
    assert Column("name", text, BEGIN, END).holds(",").tolist() == [True, False]


@pytest.mark.parametrize(
    "begin",
    [BEGIN.astype(np.int32), BEGIN.astype(np.float64), np.array([[0, 9], [4, 9]])[:, 0]],
    ids=["int32", "float64", "not contiguous"],
)
def test_an_array_of_another_kind_is_refused_and_not_read(begin: object) -> None:
    with pytest.raises(TypeError, match="is no contiguous array int64"):
        holds_a_comma(np.frombuffer(b"a,bcdef", dtype=np.uint8), begin)


def test_too_few_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        _holds(Fields(np.zeros(1, np.uint8), BEGIN, END), 1)  # type: ignore[call-arg]


def complaint_about(library: Path) -> str:
    """The one line that a replay with that library prints."""
    program = (
        "from pathlib import Path; from shapleyprio.replay import native;"
        "from shapleyprio.cli import main;"
        f"native.LIBRARY = Path({str(library)!r});"
        "main(['replay', '/proc/self/status', '--format', 'swf', '--deal-users', '2'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    return line


def test_a_library_that_is_missing_is_one_line_of_its_own() -> None:
    complaint = complaint_about(Path("/nonexistent/library.so"))
    assert complaint.startswith("shapleyprio: /nonexistent/library.so cannot be loaded (")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files from which the library is made, in a path with a blank."""
    if not (ROOT / "hatch_build.py").is_file():
        pytest.skip("an installed shapleyprio has no sources in C")
    folder = tmp_path / "a checkout"
    shutil.copytree(ROOT / NATIVE, folder / NATIVE)
    (folder / PRELOAD).parent.mkdir(parents=True)
    shutil.copy(ROOT / PRELOAD, folder / PRELOAD)
    shutil.copy(ROOT / "hatch_build.py", folder)
    return folder


def build(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "hatch_build.py"],
        cwd=checkout,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_library_that_is_older_than_its_sources_is_one_line_of_its_own(checkout: Path) -> None:
    library = checkout / NATIVE / "library.so"
    later = library.stat().st_mtime + 1
    os.utime(library.with_name("state.h"), (later, later))
    assert complaint_about(library) == (
        f"shapleyprio: {library} is older than its sources; run `python hatch_build.py`"
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_it_is_made_without_a_warning_wherever_the_checkout_is(checkout: Path) -> None:
    library = checkout / NATIVE / "library.so"
    library.unlink()
    done = build(checkout, CFLAGS="-Werror")
    assert (done.returncode, done.stderr) == (0, "")
    assert library.is_file()
    assert sorted(library.parent.glob("tmp*")) == []


def test_without_a_compiler_one_line_says_what_to_install_and_the_old_one_stays(
    checkout: Path,
) -> None:
    library = checkout / NATIVE / "library.so"
    before = library.stat().st_ino
    done = build(checkout, CC="/nonexistent/cc")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line == "/nonexistent/cc: no such C compiler; on Debian: apt-get install gcc libc6-dev"
    assert library.stat().st_ino == before


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_what_the_compiler_refuses_leaves_the_old_one(checkout: Path) -> None:
    library = checkout / NATIVE / "library.so"
    before = library.stat().st_ino
    (library.parent / "columns.c").write_text("int broken(")
    done = build(checkout)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("its messages are above")
    assert library.stat().st_ino == before
