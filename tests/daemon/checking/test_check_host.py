"""What `check` finds on the daemon's host, beside Slurm."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from shapleyprio.daemon.checking import check_host as module
from shapleyprio.daemon.checking.check_host import check_host
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.store import Store
from tests.daemon.consortium import config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def findings(file: Path) -> list[Finding]:
    found = config(store={"url": f"sqlite:///{file}"})
    return [one for one in check_host(found) if one.subject != "drift.interval"]


def test_a_store_that_can_be_made_or_opened_is_no_finding(file: Path) -> None:
    assert findings(file) == []
    assert not file.exists()
    Store.open(f"sqlite:///{file}", create=True).close()
    assert findings(file) == []


def test_a_missing_folder_is_an_error(file: Path) -> None:
    (found,) = findings(file / "no" / "store.db")
    assert (found.severity, found.subject) == (Severity.ERROR, "store.url")
    assert found.message.endswith(f"the directory {file}/no does not exist")
    assert found.remedy.startswith("make it: install -d -o ")


def test_a_folder_of_somebody_else_is_an_error_that_names_the_daemons_user(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path != file.parent)
    (found,) = findings(file)
    assert f"the directory {file.parent} must be writable" in found.message
    assert "runuser -u shapleyprio" in found.remedy


def test_a_store_of_a_newer_release_is_an_error(file: Path) -> None:
    Store.open(f"sqlite:///{file}", create=True).close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    (found,) = findings(file)
    assert "a newer release wrote it" in found.message
    assert found.remedy == "until then the daemon exits with code 4"


def test_a_store_of_a_test_version_is_an_error(file: Path) -> None:
    Store.open(f"sqlite:///{file}", create=True).close()
    with sqlite3.connect(file) as connection:
        connection.execute("ALTER TABLE run DROP COLUMN counted")
    connection.close()
    (found,) = findings(file)
    assert "give the store an empty database" in found.message


def test_without_the_packages_that_replay_there_is_no_drift(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "numpy_is_missing", lambda: True)
    named = {"store": {"url": f"sqlite:///{file}"}, "metrics": {"address": "off"}}
    (found,) = check_host(config(**named))
    assert (found.severity, found.subject) == (Severity.NOTICE, "drift.interval")
    assert list(check_host(config(**named, drift={"interval": "off"}))) == []
