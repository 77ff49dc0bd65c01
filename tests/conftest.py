"""Fixtures for the whole suite: how hypothesis runs, and a private real Slurm."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from shapleyprio.testbed.cluster import PrivateSlurm, prepare_database
from shapleyprio.testbed.errors import SlurmUnavailableHere
from shapleyprio.testbed.packages import ensure_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shapleyprio.testbed.configuration import ClusterSpec

# where a failure would surprise, the same examples every time; elsewhere new ones
settings.register_profile("default", deadline=None, derandomize="CI" in os.environ)
# where every line is traced, a few examples reach the lines that many reach
settings.register_profile("measure", parent=settings.get_profile("default"), max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def private_slurm_programs() -> None:
    """Skip, saying why, where Slurm cannot be had; as root it is installed."""
    try:
        ensure_installed(print)
    except SlurmUnavailableHere as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def prepared_database(private_slurm_programs: None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        try:
            yield prepare_database(Path(folder))
        except SlurmUnavailableHere as reason:
            pytest.skip(str(reason))


@pytest.fixture
def boot_slurm(prepared_database: Path) -> Iterator[Callable[[ClusterSpec], PrivateSlurm]]:
    """Boot clusters in short directories; each is stopped after the test."""
    clusters: list[PrivateSlurm] = []
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:

        def boot(spec: ClusterSpec) -> PrivateSlurm:
            directory = Path(folder, str(len(clusters)))
            clusters.append(PrivateSlurm(directory, spec, prepared=prepared_database))
            clusters[-1].start()
            return clusters[-1]

        try:
            yield boot
        finally:
            for cluster in clusters:
                cluster.stop()
