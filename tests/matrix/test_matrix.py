"""The parts of the matrix that are quick to look at; the whole is `./run matrix`."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shapleyprio.slurm.releases import TESTED_RELEASES
from tests.matrix.packages import CONTROL, build_dependencies
from tests.matrix.pyslurm import BUILD, is_built_for, version_of
from tests.matrix.roots import (
    ENTER,
    ROOT,
    MatrixError,
    NotPossibleError,
    Processes,
    Roots,
    Step,
    require_roots,
)
from tests.matrix.sources import Sources
from tests.matrix.stages import Done, failed_tests
from tests.matrix.suites import SUITES
from tests.matrix.table import BEGIN, END, README, table, write

MACHINE = [Path("/")]
"""The layers of a root in which the machine's own programs are."""


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    try:
        require_roots()
    except NotPossibleError as reason:
        pytest.skip(str(reason))
    return Roots(SUITES[0], Processes(), kept=tmp_path)


def step(roots: Roots, script: str) -> Step:
    return Step(command=("sh", "-c", script), log=roots.log("step"))


def test_a_command_sees_its_layers_and_changes_nothing_in_them(
    roots: Roots, tmp_path: Path
) -> None:
    with roots.scratch() as scratch:
        roots.change(scratch, MACHINE, step(roots, "echo new >/made-here; ls /bin/sh; hostname"))
        assert (scratch / "changes" / "made-here").read_text() == "new\n"
    assert not Path("/made-here").exists()
    assert (tmp_path / "log" / "22.05-step.log").read_text() == "/bin/sh\nmatrix\n"


def test_a_command_reaches_nothing_but_its_own_loopback(roots: Roots) -> None:
    with roots.scratch() as scratch:
        shown = step(roots, "ip -brief link | cut -d' ' -f1; hostname -i")
        roots.change(scratch, MACHINE, shown)
    assert shown.log.read_text().split() == ["lo", "127.0.0.1"]


def test_mounts_are_gone_in_the_end(roots: Roots, tmp_path: Path) -> None:
    with roots.scratch() as scratch:
        roots.change(scratch, MACHINE, step(roots, "true"))
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert list(roots.folder.iterdir()) == []


def test_a_layer_is_made_once_and_anew_when_its_recipe_changes(roots: Roots) -> None:
    def made(recipe: str, script: str) -> str:
        layer = roots.layer("layer", MACHINE, step(roots, script), [recipe])
        return (layer / "made-here").read_text()

    assert made("first", "echo 1 >/made-here") == "1\n"
    assert made("first", "echo 2 >/made-here") == "1\n"
    assert made("second", "echo 3 >/made-here") == "3\n"


def test_a_failed_step_leaves_no_layer_and_shows_its_last_words(roots: Roots) -> None:
    failing = step(roots, "echo because; exit 7")
    with pytest.raises(MatrixError, match=r"exit code 7(?s:.*)because"):
        roots.layer("layer", MACHINE, failing, [])
    assert list(roots.folder.iterdir()) == []


def test_ctrl_c_ends_what_runs_and_unmounts_it(roots: Roots, tmp_path: Path) -> None:
    seconds = f"{os.getpid()}.{4321}"  # no other session of tests sleeps for as long
    waiting = step(roots, f"echo up; exec sleep {seconds}")

    def run() -> None:
        with roots.scratch() as scratch:
            roots.change(scratch, MACHINE, waiting)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        while not waiting.log.read_text():
            assert not running.done(), running.exception()
        roots._processes.end()
        with pytest.raises(MatrixError):
            running.result(timeout=30)
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    shown = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True)
    assert f"sleep {seconds}" not in shown.stdout.splitlines()
    with pytest.raises(MatrixError, match="stopped"), roots.scratch() as scratch:
        roots.change(scratch, MACHINE, step(roots, "true"))


def test_the_script_is_read_by_a_plain_shell() -> None:
    subprocess.run(["sh", "-n", ENTER], check=True)


def test_the_sources_are_what_git_knows_and_the_product_is_a_part_of_it(tmp_path: Path) -> None:
    sources = Sources.read()
    exported = sources.export(tmp_path / "source", without=["shapleyprio"])
    assert (exported / "tests" / "matrix" / "test_matrix.py").is_file()
    assert not (exported / "shapleyprio").exists()
    assert not (exported / ".venv").exists()


def test_packages_are_built_anew_when_the_product_changes_but_not_for_a_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def product() -> str:
        subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
        return Sources.read().product

    monkeypatch.setattr("tests.matrix.sources.ROOT", tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "README.md").write_text("first")
    first = product()
    (tmp_path / "tests" / "test_it.py").write_text("new")
    assert product() == first
    (tmp_path / "README.md").write_text("second")
    assert product() != first


def test_building_needs_what_debian_control_names() -> None:
    control = (
        "Source: x\nBuild-Depends:\n debhelper-compat (= 13),\n python3 (>= 3.11),\n\nPackage: x\n"
    )
    assert build_dependencies(control) == ["debhelper", "python3"]
    assert "debhelper" in build_dependencies((ROOT / CONTROL).read_text())


def test_the_version_of_a_package_is_read_from_its_root(tmp_path: Path) -> None:
    status = tmp_path / "var" / "lib" / "dpkg" / "status"
    status.parent.mkdir(parents=True)
    status.write_text(
        "Package: slurm\nVersion: 1\n\n"
        "Package: slurmctld\nStatus: install ok\nVersion: 26.05.5-1\nDescription: x\n y\n"
    )
    assert version_of("slurmctld", tmp_path) == "26.05.5-1"
    with pytest.raises(MatrixError, match="slurmdbd is not installed"):
        version_of("slurmdbd", tmp_path)


def test_there_is_a_pyslurm_for_the_newest_release_alone() -> None:
    assert [is_built_for(suite.release) for suite in SUITES] == [False, False, True]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (None, "slurm_version.h is missing: install Slurm's headers, or set SLURM_INCLUDE_DIR"),
        ("0x180b05", "there is no pyslurm for Slurm 24.11: 25.11 and 26.05 alone"),
    ],
)
def test_pyslurm_is_not_built_for_a_slurm_that_it_does_not_fit(
    tmp_path: Path, header: str | None, said: str
) -> None:
    if header is not None:
        (tmp_path / "slurm").mkdir()
        define = f"#define SLURM_VERSION_NUMBER {header}\n"
        (tmp_path / "slurm" / "slurm_version.h").write_text(define)
    done = subprocess.run(
        [ROOT / BUILD, tmp_path / "wheel"],
        env={**os.environ, "SLURM_INCLUDE_DIR": str(tmp_path), "SLURM_LIB_DIR": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("build-pyslurm: ")
    assert done.stderr.endswith(f"{said}\n")


RESULTS = {
    suite.release: [
        Done("versions", 1.0, f"{suite.release}.8, 3.13.5, 0.1.0"),
        Done("tests", 1.0, "163 passed, 2 skipped in 99.00s"),
    ]
    for suite in SUITES
}


def test_what_pytest_calls_failed_is_run_once_more(tmp_path: Path) -> None:
    file = tmp_path / "tests" / "test_some.py"
    file.parent.mkdir()
    file.write_text(
        "import pytest\n"
        "@pytest.fixture\ndef broken(): raise OSError('one\\ntwo - three')\n"
        "def test_error(broken): pass\n"
        "def test_passes(): print('FAILED tests/test_some.py')\n"
        "@pytest.mark.parametrize('name', ['a', 'b-c'])\n"
        "class TestOf:\n"
        "    def test_fails(self, name): raise KeyError(f'x - {name}')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-r", "fEs", "-q", "tests"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert sorted(failed_tests(ran.stdout)) == [
        "tests/test_some.py::TestOf::test_fails[a]",
        "tests/test_some.py::TestOf::test_fails[b-c]",
        "tests/test_some.py::test_error",
    ]


def test_the_table_has_a_line_for_each_release() -> None:
    lines = table(RESULTS).splitlines()[2:]
    assert len(lines) == len(SUITES)
    assert lines[0].startswith("| 22.05.8 | 12, bookworm | 3.13.5 | yes | 163 passed |")


def test_the_table_is_replaced_in_its_place_only(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(RESULTS, readme)
    assert readme.read_text() == f"before\n{BEGIN}\n{table(RESULTS)}\n{END}\nafter\n"


def test_the_matrix_has_the_releases_that_are_called_tested() -> None:
    assert tuple(suite.release for suite in SUITES) == TESTED_RELEASES


def test_the_readme_names_every_release() -> None:
    shown = README.read_text().partition(BEGIN)[2].partition(END)[0]
    found = [line.split(".", 2)[:2] for line in shown.splitlines() if line.startswith("| 2")]
    assert [".".join(one).removeprefix("| ") for one in found] == [s.release for s in SUITES]
