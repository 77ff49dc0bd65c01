"""`shapleyprio files`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import main
from shapleyprio.common.shipped import shipped_files

SLURM_CONF = [
    "README.md",
    "association.conf",
    "job_submit.lua",
    "nice.conf",
    "qos.conf",
    "shapleyprio_points.lua",
    "site_factor.conf",
]


def files(*words: str) -> Result:
    return CliRunner().invoke(main, ["files", *words])


def copied(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_every_file_is_listed_with_what_it_is_for() -> None:
    lines = files().stdout.split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lines] == [file.name for file in shipped_files()]
    assert all(file.purpose for file in shipped_files())
    assert len({file.name for file in shipped_files()}) == len(shipped_files())


def test_the_json_shows_where_each_file_is() -> None:
    rows = json.loads(files("slurm_conf", "--json").stdout)
    assert sorted(Path(row["name"]).name for row in rows) == SLURM_CONF
    for row in rows:
        assert Path(row["path"]).is_file()
        assert set(row) == {"name", "path", "purpose"}


@pytest.mark.parametrize("name", ["slurm_conf", "slurm_conf/", "./slurm_conf", "slurm_c*"])
def test_files_are_named_by_folder_or_pattern(name: str, tmp_path: Path) -> None:
    assert files("--copy", str(tmp_path), name).exit_code == 0
    assert copied(tmp_path) == [f"slurm_conf/{file}" for file in SLURM_CONF]


def test_all_files_are_copied_as_they_are_if_none_is_named(tmp_path: Path) -> None:
    done = files("--copy", str(tmp_path / "new" / "folder"), "--json")
    rows = json.loads(done.stdout)
    assert [row["name"] for row in rows] == [file.name for file in shipped_files()]
    for row in rows:
        assert Path(row["copy"]) == tmp_path / "new" / "folder" / row["name"]
        assert Path(row["copy"]).read_bytes() == Path(row["path"]).read_bytes()


def test_a_file_that_is_there_is_overwritten_by_force_only(tmp_path: Path) -> None:
    there = tmp_path / "systemd" / "shapleyprio.service"
    there.parent.mkdir()
    there.write_text("mine")
    refused = files("--copy", str(tmp_path), "systemd")
    assert refused.exit_code == 2
    assert f"{there}: already exists; --force overwrites" in refused.stderr
    assert copied(tmp_path) == ["systemd/shapleyprio.service"]
    assert there.read_text() == "mine"
    assert files("--copy", str(tmp_path), "systemd", "--force").exit_code == 0
    assert there.read_text() != "mine"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("slrum_conf", "did you mean slurm_conf?"),
        ("systemd/shapleyprio.servce", "did you mean systemd/shapleyprio.service?"),
        ("/etc/passwd", "`shapleyprio files` lists all"),
        ("../run", "`shapleyprio files` lists all"),
    ],
)
def test_an_unknown_name_is_refused_with_a_hint(name: str, hint: str, tmp_path: Path) -> None:
    refused = files("--copy", str(tmp_path), name)
    assert refused.exit_code == 2
    assert f"{name}: shapleyprio ships no such file; {hint}" in refused.stderr
    assert copied(tmp_path) == []


def test_a_directory_that_cannot_be_written_is_reported_with_its_name() -> None:
    refused = files("--copy", "/proc/shapleyprio", "systemd")
    assert refused.exit_code == 2
    assert "/proc/shapleyprio/systemd/README.md: cannot be written (" in refused.stderr


def test_force_alone_is_refused() -> None:
    assert files("--force").exit_code == 2
