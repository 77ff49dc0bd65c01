"""What `check` finds that keeps users from asking the daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapleyprio.daemon.client.checks import check_clients
from shapleyprio.slurm.findings import Finding, Severity
from tests.daemon.consortium import config


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that everybody can get to; pytest's own are closed to others."""
    for place in (tmp_path, *tmp_path.parents):
        if place.owner() == Path.home().owner() and not place.stat().st_mode & 0o001:
            place.chmod(0o711)
    return tmp_path


def findings(folder: Path) -> list[Finding]:
    served = config(service={"socket": str(folder / "run" / "socket")})
    return list(check_clients(served, folder / "client.toml"))


def test_users_who_can_ask_are_no_finding(folder: Path) -> None:
    (folder / "client.toml").write_text('url = "unix:/run/shapleyprio/socket"\n')
    assert findings(folder) == []


def test_without_a_file_that_names_the_daemon_there_is_a_notice(folder: Path) -> None:
    (found,) = findings(folder)
    assert (found.severity, found.subject) == (Severity.NOTICE, "client.toml")
    assert f'url = "unix:{folder}/run/socket"' in found.remedy
    assert list(check_clients(config(), folder / "client.toml")) == []


def test_a_file_that_users_may_not_read_is_a_warning(folder: Path) -> None:
    file = folder / "client.toml"
    file.write_text('url = "unix:/run/shapleyprio/socket"\n')
    file.chmod(0o640)
    (found,) = findings(folder)
    assert (found.severity, found.remedy) == (Severity.WARNING, f"chmod o+r {file}")


def test_a_closed_folder_is_a_warning_that_names_it(folder: Path) -> None:
    (folder / "client.toml").write_text('url = "unix:/run/shapleyprio/socket"\n')
    (folder / "run").mkdir(mode=0o750)
    (found,) = findings(folder)
    assert (found.severity, found.subject) == (Severity.WARNING, "service.socket")
    assert found.remedy == f"chmod o+x {folder}/run"


def test_a_file_that_cannot_be_used_is_a_warning(folder: Path) -> None:
    (folder / "client.toml").write_text('url = "nowhere"\n')
    (found,) = findings(folder)
    assert found.severity is Severity.WARNING
    assert "is not http://HOST:PORT" in found.message
