"""Who may read the file that `shapleyprio init` writes."""

from __future__ import annotations

import os
from grp import getgrnam
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from shapleyprio.cli import init, main

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "nogroup"  # stands for the daemon's, which is not on every machine


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def written(target: Path) -> os.stat_result:
    words = ["init", "--cluster-independent", "--output", str(target), "--force"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return target.stat()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize(("user", "first"), [("nobody", "runuser -u nobody -- "), ("no one", "")])
def test_the_last_advice_is_a_check_as_the_daemons_user_of_the_file_that_was_written(
    user: str, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "DAEMON", user)
    target = tmp_path / "a file.toml"
    for words, more in (("--output", f" --config '{target}'"), ("--config", "")):
        done = CliRunner().invoke(
            main, ["init", "--cluster-independent", words, str(target), "--force"]
        )
        assert f"then run `{first}shapleyprio check{more}`\n" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to a group")
@pytest.mark.parametrize("there", [False, True])
def test_only_root_and_the_daemons_group_read_what_root_writes(
    there: bool, tmp_path: Path, umask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "DAEMON", GROUP)
    target = tmp_path / "new" / "shapleyprio.toml"
    if there:
        target.parent.mkdir()
        target.touch(0o644)
    found = written(target)
    assert (found.st_uid, found.st_gid) == (0, getgrnam(GROUP).gr_gid)
    assert found.st_mode & 0o777 == 0o640


def test_without_that_group_others_cannot_read_the_file_either(
    tmp_path: Path, umask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "DAEMON", "no such group")
    found = written(tmp_path / "shapleyprio.toml")
    assert found.st_gid == os.getegid()
    assert found.st_mode & 0o777 == 0o640
