"""Builds the Debian packages for a suite and installs them into a root of it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.matrix.roots import KEPT, ROOT, Roots, Step
from tests.matrix.sources import Sources

BUILD = "packaging/build-deb"
CONTROL = "packaging/debian/control"
PACKAGES_FOLDER = "/packages"
INSTALL_PACKAGES = f"apt-get install -y {PACKAGES_FOLDER}/*.deb"


def build_root(roots: Roots) -> list[Path]:
    """The layers with what building needs, and lintian."""
    base = roots.base()
    wanted = ["lintian", *build_dependencies((ROOT / CONTROL).read_text())]
    install = f"apt-get install -y --no-install-recommends {' '.join(wanted)}"
    step = Step(
        command=("sh", "-c", f"apt-get update && {install}"),
        log=roots.log("build-root"),
        online=True,
    )
    return [roots.layer("build", [base], step, wanted), base]


def build_dependencies(control: str) -> list[str]:
    """The packages that debian/control names as Build-Depends."""
    found = re.search(r"^Build-Depends:((?:.*\n)(?:[ \t].*\n)*)", control, re.MULTILINE)
    assert found is not None, "debian/control names no Build-Depends"
    names = (re.match(r"\s*([a-z0-9.+-]+)", part) for part in found[1].split(","))
    return [name[1].replace("debhelper-compat", "debhelper") for name in names if name is not None]


def packages(roots: Roots, sources: Sources) -> Path:
    """The folder with the suite's packages, which are built if the product has changed."""
    folder = ROOT / "dist" / roots.suite.name
    stamp = folder / ".made-of"
    wanted = sources.product
    if stamp.is_file() and stamp.read_text() == wanted and list(folder.glob("*.deb")):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    layers = build_root(roots)
    downloads = KEPT / "downloads"
    downloads.mkdir(exist_ok=True)
    with roots.scratch() as scratch:
        source = sources.export(scratch / "source")
        step = Step(
            command=(f"/build/source/{BUILD}", "/build/packages"),
            log=roots.log("package"),
            online=True,
            binds={
                source: "/build/source",
                folder: "/build/packages",
                downloads: "/root/.cache/pip",
            },
        )
        roots.change(scratch, layers, step)
    stamp.write_text(wanted)
    return folder


def installed(roots: Roots, sources: Sources) -> list[Path]:
    """The layers of a root in which the packages are installed."""
    folder = packages(roots, sources)
    base = roots.base()
    step = Step(
        command=("sh", "-c", INSTALL_PACKAGES),
        log=roots.log("install"),
        binds={folder: PACKAGES_FOLDER},
    )
    return [roots.layer("installed", [base], step, [sources.product]), base]
