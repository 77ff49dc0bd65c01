"""Builds pyslurm for a suite's Slurm when asked to, and keeps it for all checkouts."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from tests.matrix.roots import ROOT, MatrixError, Roots, Step

BUILD = "packaging/build-pyslurm"
RECIPES = ROOT / "packaging" / "pyslurm"
NEEDED = ("gcc", "libc6-dev", "libslurm-dev", "patch", "python3-dev", "python3-venv")
FOLDER = "/usr/lib/shapleyprio/lib/$(basename $(realpath /usr/bin/python3))/site-packages"
"""The libraries of the Debian package, as a shell names them."""

KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shapleyprio" / "pyslurm"
"""Folders with one wheel each, named after all that it was made of."""


def is_built_for(release: str) -> bool:
    """Whether there is a pyslurm for a release of Slurm."""
    return (RECIPES / release).is_dir()


def layer(roots: Roots) -> Path | None:
    """The layer that has pyslurm in `FOLDER`; None if no wheel of it is kept."""
    kept = _kept(roots)
    if not kept.is_dir():
        return None
    (wheel,) = kept.glob("*.whl")
    step = Step(
        command=("sh", "-euc", f"python3 -m zipfile -e /wheel/{wheel.name} {FOLDER}"),
        log=roots.log("pyslurm-install"),
        binds={kept: "/wheel"},
    )
    return roots.layer("pyslurm", [roots.base()], step, [kept.name, FOLDER])


def build(roots: Roots) -> Path:
    """Builds the wheel if none is kept; returns its folder."""
    kept = _kept(roots)
    if not kept.is_dir():
        install = f"apt-get install -y --no-install-recommends {' '.join(NEEDED)}"
        with roots.scratch() as scratch:
            built = scratch / "wheel"
            built.mkdir()
            step = Step(
                command=("sh", "-c", f"apt-get update && {install} && /source/{BUILD} /wheel"),
                log=roots.log("pyslurm-build"),
                online=True,
                binds={ROOT: "/source", built: "/wheel"},
                environment={"CFLAGS": "-O1 -g0"},  # compiled sooner than with Python's own
            )
            roots.change(scratch, [roots.base()], step)
            KEPT.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=KEPT) as partial:
                shutil.copytree(built, Path(partial) / "wheel")
                (Path(partial) / "wheel").rename(kept)
    return kept


def _kept(roots: Roots) -> Path:
    """The folder of the wheel for these versions of Slurm, Python and the recipe."""
    made_of = hashlib.sha256()
    for package in ("slurmctld", "python3"):
        made_of.update(f"{package} {version_of(package, roots.base())}\n".encode())
    patches = sorted((RECIPES / roots.suite.release).iterdir())
    for file in (ROOT / BUILD, *sorted(RECIPES.glob("*.lock")), *patches):
        made_of.update(file.read_bytes())
    return KEPT / f"{roots.suite.release}-{made_of.hexdigest()}"


def version_of(package: str, base: Path) -> str:
    """The version of a package that is installed in a root.

    Raises:
        MatrixError: it is not installed.
    """
    status = (base / "var" / "lib" / "dpkg" / "status").read_text()
    name = re.escape(package)
    found = re.search(rf"^Package: {name}\n(?:.+\n)*?Version: (.*)$", status, re.MULTILINE)
    if found is None:
        raise MatrixError(f"{package} is not installed in {base}")
    return found[1]
