"""What keeps new jobs from getting their points at submission is found, with the way out."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shapleyprio.daemon.checking.check_table import check_table
from shapleyprio.lab.simulated import SimulatedSlurm
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout, SubmissionSettings
from shapleyprio.slurm.points_table import PointsTable, write_table
from tests.daemon.consortium import FIRST, LAST, Cluster

HERE = socket.gethostname()
GOOD = SubmissionSettings(plugins=frozenset({"lua"}), controller_hosts=(HERE,), slurm_user=0)
NOBODY_ELSE = 64030
POINTS = {"physics": FIRST, "biology": LAST}


@pytest.fixture
def slurm() -> Cluster:
    return Cluster()


@pytest.fixture
def file(slurm: Cluster) -> Iterator[Path]:
    """A table where everybody may look; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder, "points")
        write_table(file, PointsTable(written=slurm.now, lasts=900, points=POINTS))
        yield file


def found(slurm: Cluster, file: Path, settings: SubmissionSettings = GOOD) -> list[Finding]:
    layout: Layout = replace(slurm.layout(), submission=settings)
    findings = list(check_table(file, layout, slurm.now))
    assert all(one.remedy and "\n" not in one.message + one.remedy for one in findings)
    return findings


def only(findings: list[Finding]) -> tuple[Severity, str]:
    (one,) = findings
    return one.severity, one.message


def test_where_all_is_well_nothing_is_found(slurm: Cluster, file: Path) -> None:
    slurm.fill("guest")
    job = slurm.submit("physics", processing_time=9)
    SimulatedSlurm.write(slurm, "site_factor", {str(job): FIRST})
    assert found(slurm, file) == []


def test_a_slurmctld_without_the_plugin_is_an_error(slurm: Cluster, file: Path) -> None:
    severity, message = only(found(slurm, file, replace(GOOD, plugins=frozenset({"throttle"}))))
    assert severity is Severity.ERROR
    assert "lacks lua" in message


def test_a_missing_directory_is_an_error(slurm: Cluster, tmp_path: Path) -> None:
    severity, message = only(found(slurm, tmp_path / "spool" / "points"))
    assert severity is Severity.ERROR
    assert "no directory" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_not_ours_is_an_error(slurm: Cluster, file: Path) -> None:
    file.parent.chmod(0o555)
    severity, message = only(found(slurm, file))
    assert severity is Severity.ERROR
    assert "may not write" in message


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_directory_that_others_may_write_is_an_error(
    slurm: Cluster, file: Path, mode: int
) -> None:
    file.parent.chmod(mode)
    severity, message = only(found(slurm, file))
    assert severity is Severity.ERROR
    assert "choose the points" in message


def test_what_slurms_user_may_not_read_is_an_error(slurm: Cluster, file: Path) -> None:
    settings = replace(GOOD, slurm_user=NOBODY_ELSE)
    file.chmod(0o600)
    assert any(f"may not read {file}" in one.message for one in found(slurm, file, settings))
    file.chmod(0o644)
    file.parent.chmod(0o750)
    shut = [one for one in found(slurm, file, settings) if "may not read" in one.message]
    assert [one.severity for one in shut] == [Severity.ERROR]
    assert shut[0].remedy.startswith("chmod o+x ")


def test_a_slurmctld_on_another_host_needs_the_same_file(slurm: Cluster, file: Path) -> None:
    hosts = (HERE, "elsewhere.example.org")
    severity, message = only(found(slurm, file, replace(GOOD, controller_hosts=hosts)))
    assert severity is Severity.NOTICE
    assert "slurmctld runs on elsewhere," in message


def test_a_table_that_is_not_there_yet_is_a_notice(slurm: Cluster, file: Path) -> None:
    file.unlink()
    assert only(found(slurm, file))[0] is Severity.NOTICE


def test_a_broken_table_is_an_error(slurm: Cluster, file: Path) -> None:
    file.write_text(file.read_text()[:-1])
    assert only(found(slurm, file))[0] is Severity.ERROR


def test_an_old_table_is_a_warning(slurm: Cluster, file: Path) -> None:
    slurm.wait(901)
    severity, message = only(found(slurm, file))
    assert severity is Severity.WARNING
    assert "901 s old" in message
