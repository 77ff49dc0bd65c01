"""What the other users of the tests here need to run anything at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.end_to_end.users import PYTHONS, readable_by_everybody
from tests.processes import as_nobody

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


@pytest.fixture
def closed(tmp_path: Path) -> str:
    """A Python where only root gets to, as one in root's home is."""
    tmp_path.chmod(0o700)
    (tmp_path / "python").symlink_to(sys.executable)
    return str(tmp_path / "python")


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that everybody may enter."""
    with TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_they_run_a_python_that_they_get_to(closed: str, folder: Path) -> None:
    (python, *words), _ = readable_by_everybody(folder, (closed, *PYTHONS))
    assert python != closed
    assert as_nobody({}, python, *words, "1e9", "echo", "there").stdout == "there\n"


def test_where_they_get_to_none_one_line_says_so(closed: str, folder: Path) -> None:
    expected = f"may run none of {closed}: as root, apt-get install python3"
    with pytest.raises(pytest.fail.Exception, match=expected):
        readable_by_everybody(folder, (closed,))
