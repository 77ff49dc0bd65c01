"""The table of points: what is written is read back, and a broken one is recognized."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.errors import OutputError
from shapleyprio.slurm.points_table import (
    LARGEST_TABLE,
    PointsTable,
    TableError,
    read_table,
    remove_table,
    write_table,
)

TABLE = PointsTable(written=1_700_000_000, lasts=900, points={"physics": 2, "bio logy": -1})
NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=9)
POINTS = st.integers(-(2**31) + 3, 2**31 - 3)


@given(points=st.dictionaries(NAMES, POINTS, max_size=5))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, points: dict[str, int]
) -> None:
    file = tmp_path_factory.getbasetemp() / "round-trip"
    table = PointsTable(written=7, lasts=9, points=points)
    write_table(file, table)
    assert read_table(file) == table


def test_everybody_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    file = tmp_path / "points"
    write_table(file, TABLE)
    file.chmod(0o600)
    write_table(file, TABLE)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [file]


def test_an_account_that_would_break_a_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "points"
    points = {"physics": 2, "a\tb": 3, "end 1\n": 4}
    write_table(file, PointsTable(written=7, lasts=9, points=points))
    assert read_table(file).points == {"physics": 2}


def test_one_that_the_script_would_not_read_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "points"
    write_table(file, TABLE)
    many = {f"account{number}": 2**31 for number in range(LARGEST_TABLE // 19)}
    with pytest.raises(OutputError, match=r"leave push\.table out"):
        write_table(file, PointsTable(written=7, lasts=9, points=many))
    assert read_table(file) == TABLE


@pytest.mark.parametrize("length", range(len(TABLE.text())))
def test_a_part_of_it_is_recognized(tmp_path: Path, length: int) -> None:
    file = tmp_path / "points"
    file.write_text(TABLE.text()[:length])
    with pytest.raises(TableError):
        read_table(file)


@pytest.mark.parametrize(
    "text",
    [
        TABLE.text().replace("points 1", "points 2"),
        TABLE.text().replace("physics\t2", "physics\tmany"),
        TABLE.text().replace("physics\t2\n", ""),
        TABLE.text() + "\n",
        "x" * (LARGEST_TABLE + 1),
    ],
)
def test_another_content_is_recognized(tmp_path: Path, text: str) -> None:
    file = tmp_path / "points"
    file.write_text(text)
    with pytest.raises(TableError):
        read_table(file)


def test_it_can_be_removed_twice(tmp_path: Path) -> None:
    file = tmp_path / "points"
    write_table(file, TABLE)
    remove_table(file)
    remove_table(file)
    assert not file.exists()


def test_one_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "points").mkdir()
    with pytest.raises(OutputError, match="points: cannot be removed"):
        remove_table(tmp_path / "points")
