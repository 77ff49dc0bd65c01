"""What the matrix does on each release, one stage after the other."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.matrix import pyslurm
from tests.matrix.packages import PACKAGES_FOLDER, build_root, installed, packages
from tests.matrix.roots import ROOT, MatrixError, Roots, Step
from tests.matrix.sources import Sources
from tests.matrix.suites import FOLDERS, TRIALS

PYTHON = "/usr/lib/shapleyprio/bin/python"
TEST_LIBRARIES = "/opt/tests"
SLOWEST = 15
"""Tests whose time the log has."""

SHARED = ROOT.parent / "shared"
"""Real logs, beside the checkout in the roots as well, where there are any."""

MOST_REPEATED = 10
"""Failed tests that are run once more; where it is more of them, it is no chance."""

TEST_LOCK = "requirements-test.lock"
CONTRACT = "tests/slurm/test_contract.py"
LIFE = "packaging/test-package"
VERSIONS = (
    "slurmctld -V; python3 -c 'import platform; print(platform.python_version())';"
    " shapleyprio --version"
)


@dataclass(frozen=True, slots=True)
class Done:
    """What a stage found.

    Attributes:
        stage: its name.
        seconds: how long it took.
        found: in a few words, such as ``134 passed``.
    """

    stage: str
    seconds: float
    found: str


def stages(roots: Roots, sources: Sources, *, without: Collection[str] = ()) -> Iterator[Done]:
    """Runs the stages of one release.

    Args:
        roots: of its suite.
        sources: what is packed and tested.
        without: names of stages that are left out.

    Raises:
        MatrixError: one failed; the later ones are not run.
    """
    for name, stage in STAGES.items():
        if name in without:
            continue
        began = time.monotonic()
        try:
            found = stage(roots, sources)
        except MatrixError as error:
            raise MatrixError(f"{name}: {error}") from error
        yield Done(name, time.monotonic() - began, found)


def _root(roots: Roots, _sources: Sources) -> str:
    base = roots.base()
    return (base / "etc" / "debian_version").read_text().strip()


def _package(roots: Roots, sources: Sources) -> str:
    folder = packages(roots, sources)
    return ", ".join(sorted(file.name for file in folder.glob("*.deb")))


def _lintian(roots: Roots, sources: Sources) -> str:
    """Debian's own rules, but for the replay's package: its wheels take long to look through."""
    folder = packages(roots, sources)
    check = f"lintian --allow-root --fail-on error,warning {PACKAGES_FOLDER}/shapleyprio_*.deb"
    with roots.scratch() as scratch:
        step = Step(
            command=("sh", "-c", check),
            log=roots.log("lintian"),
            binds={folder: PACKAGES_FOLDER},
        )
        roots.change(scratch, build_root(roots), step)
    return "nothing found"


def _life(roots: Roots, sources: Sources) -> str:
    """From nothing to steering, upgrade, removal: what an admin does with the packages."""
    folder = packages(roots, sources)
    with roots.scratch() as scratch:
        source = sources.export(scratch / "source", without=["shapleyprio"])
        step = Step(
            command=(f"/source/{LIFE}", PACKAGES_FOLDER),
            log=roots.log("life"),
            binds={folder: PACKAGES_FOLDER, source: "/source"},
        )
        roots.change(scratch, [roots.base()], step)
    return _last_line(step.log)


def _tests(roots: Roots, sources: Sources) -> str:
    """All tests on this Slurm; a few that fail are run once more, alone.

    On a fast clock, Slurm's own guards against slowness are real moments, and once in a hundred
    hours one of them runs out. What failed is named in any case.
    """
    try:
        return _pytest(roots, sources, "tests", ("-m", "real_slurm", *TRIALS, *FOLDERS))
    except MatrixError as error:
        log = roots.log_file("tests")
        failed = failed_tests(log.read_text(errors="replace"))
        if not 0 < len(failed) <= MOST_REPEATED:
            raise
        found = _last_line(log)
        try:
            again = _pytest(roots, sources, "tests-again", ("-n0", *failed))
        except MatrixError as repeated:
            raise MatrixError(f"{error}\n\nonce more: {repeated}") from error
        return f"{found}; once more, {again}: {', '.join(failed)}"


def failed_tests(printed: str) -> list[str]:
    """Returns the names of the tests that pytest's summary calls failed, each once."""
    names = re.findall(r"^(?:FAILED|ERROR) (tests/\S+?::.+?)(?: - .*)?$", printed, re.MULTILINE)
    return list(dict.fromkeys(names))


def _pyslurm(roots: Roots, sources: Sources) -> str:
    """The contract of adapters, through pyslurm."""
    if not pyslurm.is_built_for(roots.suite.release):
        return "none for this release"
    layer = pyslurm.layer(roots)
    if layer is None:
        return "not built, see python -m tests.matrix pyslurm"
    return _pytest(roots, sources, "pyslurm", ("-k", "pyslurm", CONTRACT), below=[layer])


def _demo(roots: Roots, sources: Sources) -> str:
    with roots.scratch() as scratch:
        step = Step(command=("shapleyprio", "demo", "--hours", "0.3"), log=roots.log("demo"))
        roots.change(scratch, installed(roots, sources), step)
    return _last_line(step.log)


def bench(roots: Roots, sources: Sources, arguments: Sequence[str]) -> str:
    """What the installed program prints for `shapleyprio bench`."""
    with roots.scratch() as scratch:
        step = Step(command=("shapleyprio", "bench", *arguments), log=roots.log("bench"))
        roots.change(scratch, installed(roots, sources), step)
    return step.log.read_text()


def _versions(roots: Roots, sources: Sources) -> str:
    with roots.scratch() as scratch:
        step = Step(command=("sh", "-c", VERSIONS), log=roots.log("versions"))
        roots.change(scratch, installed(roots, sources), step)
    return ", ".join(re.findall(r"[0-9]+\.[0-9]+\.[0-9]+", step.log.read_text()))


STAGES: dict[str, Callable[[Roots, Sources], str]] = {
    "root": _root,
    "package": _package,
    "lintian": _lintian,
    "life": _life,
    "versions": _versions,
    "tests": _tests,
    "pyslurm": _pyslurm,
    "demo": _demo,
}
"""Name -> what it does; it returns what it found in a few words."""

OF_EACH_RELEASE = frozenset({"tests"})
"""Stages with tests on the testbed alone, which `./run test` runs on the machine's own Slurm."""


def _pytest(
    roots: Roots, sources: Sources, name: str, paths: Sequence[str], below: Sequence[Path] = ()
) -> str:
    """Runs tests of the checkout on the installed product, of which nothing else is there."""
    layers = [_test_libraries(roots), *below, *installed(roots, sources)]
    with roots.scratch() as scratch:
        source = sources.export(scratch / "source", without=["shapleyprio"])
        options = (
            # while two wait for their Slurm, the other computes; what waits for long comes first
            *("-n3", "--dist=loadfile", "--no-loadscope-reorder"),
            *("-p", "no:cacheprovider", "-r", "fEs", f"--durations={SLOWEST}", *paths),
        )
        step = Step(
            command=("env", "--chdir=/source", PYTHON, "-m", "pytest", *options),
            log=roots.log(name),
            binds={source: "/source", **({SHARED: f"/{SHARED.name}"} if SHARED.exists() else {})},
            environment={
                "PYTHONPATH": TEST_LIBRARIES,
                "CI": "true",
                "HYPOTHESIS_PROFILE": "few",  # `./run test` tries many
            },
        )
        roots.change(scratch, layers, step)
    found = _last_line(step.log)
    if " passed" not in found:
        raise MatrixError(f"no test passed: {found}")
    return found


def _test_libraries(roots: Roots) -> Path:
    lock = (ROOT / TEST_LOCK).read_text()
    step = Step(
        command=(
            "sh",
            "-c",
            f"python3 -m venv /tmp/pip && /tmp/pip/bin/pip install --target {TEST_LIBRARIES}"
            f" --no-deps --require-hashes -r /source/{TEST_LOCK}",
        ),
        log=roots.log("test-libraries"),
        online=True,
        binds={ROOT: "/source"},
    )
    return roots.layer("test-libraries", build_root(roots), step, [lock])


def _last_line(log: Path) -> str:
    words = log.read_text(errors="replace").rstrip().rsplit("\n", 1)
    return words[-1].strip("= ")
