"""Files appear whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from shapleyprio.common.errors import OutputError
from shapleyprio.common.output import whole_binary_file, whole_file


def test_a_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    with whole_file(path) as file:
        file.write("half")
        file.flush()
        assert not path.exists()
    assert path.read_text() == "half"
    assert list(tmp_path.iterdir()) == [path]


def test_bytes_appear_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    with whole_binary_file(path) as file:
        file.write(b"\xff\n")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"\xff\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.touch(0o600)
    with whole_file(path) as file:
        file.write("text")
    assert path.read_text() == "text"
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_fails_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def fail_halfway() -> None:
        with whole_file(path) as file:
            file.write("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with whole_file(tmp_path / "link") as file:
        file.write("text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with whole_file(pipe) as file:
        file.write("text")
    reader.join()
    assert read == ["text"]
    assert pipe.is_fifo()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "out.csv"
    with pytest.raises(OutputError, match=r"out\.csv: cannot be written \(Not a directory\)"):
        whole_file(path).__enter__()
