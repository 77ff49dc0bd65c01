"""What is kept of replays, what `history --drift` shows of it, and how it is configured."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.common.errors import ConfigError
from shapleyprio.config import load_config
from shapleyprio.store import DriftRow, Store
from tests.daemon.consortium import NAME
from tests.daemon.drift.conftest import remember
from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

UTILITIES = {"recorded": 700, "directcontr": 1000, "fairshare": 1300, "alone": 1050}


def rows(t: int, organization: str) -> list[DriftRow]:
    return [
        DriftRow(
            t=t,
            organization=organization,
            schedule=schedule,
            begin=t - 3600,
            reference="ref",
            utility=utility,
            fair=1000,
            parts=100,
        )
        for schedule, utility in UTILITIES.items()
    ]


def test_the_newest_window_comes_first(store: Store) -> None:
    with store.cluster(NAME).transaction() as transaction:
        assert transaction.history.drifts() == []
        for t in (BEGIN, BEGIN + 60):
            transaction.history.save_drifts([*rows(t, "physics"), *rows(t, "biology")])
        assert len(transaction.history.drifts()) == 16
        assert [row.t for row in transaction.history.drifts(limit=9)] == [BEGIN + 60] * 8 + [BEGIN]
        assert len(transaction.history.drifts(since=BEGIN + 1)) == 8
        assert {row.organization for row in transaction.history.drifts(organization="physics")} == {
            "physics"
        }


def test_utilities_are_kept_whole(store: Store) -> None:
    huge = [replace(row, utility=10**30, fair=10**30 + 1) for row in rows(BEGIN, "physics")]
    with store.cluster(NAME).transaction() as transaction:
        transaction.history.save_drifts(huge)
        assert {(row.utility, row.fair) for row in transaction.history.drifts()} == {
            (10**30, 10**30 + 1)
        }


def test_old_drifts_go_with_the_rest_of_the_history(store: Store) -> None:
    with store.cluster(NAME).transaction() as transaction:
        for t in (BEGIN, BEGIN + 60):
            transaction.history.save_drifts(rows(t, "physics"))
        assert transaction.prune_history(BEGIN + 60, pushes_before=0) == 4
        assert {row.t for row in transaction.history.drifts()} == {BEGIN + 60}


@pytest.fixture
def file(tmp_path: Path, store: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    remember(store)
    with store.cluster(NAME).transaction() as transaction:
        for t in (BEGIN, BEGIN + 60):
            transaction.history.save_drifts([*rows(t, "physics"), *rows(t, "biology")])
    file = tmp_path / "c.toml"
    file.write_text(f'[store]\nurl = "{url}"\n[[organization]]\nname = "physics"\n')
    monkeypatch.setenv("COLUMNS", "200")
    return file


def history(file: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(main, ["history", "--drift", "--config", str(file), *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_history_shows_drifts(file: Path) -> None:
    lines = [line for line in history(file).stdout.splitlines() if "60 min" in line]
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines]
    assert [row[2] for row in cells] == ["biology", "physics"] * 2
    assert cells[0][3:] == ["3 s late", "on time", "3 s ahead", "+50.0%", "ref"]


def test_history_of_drifts_as_json(file: Path) -> None:
    answer = json.loads(history(file, "--json", "--organization", "physics", "--limit", "1").stdout)
    assert answer == [
        {
            "t": BEGIN + 60,
            "begin": BEGIN + 60 - 3600,
            "reference": "ref",
            "organization": "physics",
            "drift_seconds": {"directcontr": 0, "fairshare": 3, "recorded": -3},
            "alone_gain_ratio": 0.5,
        }
    ]


# -- configuration


def section(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "d.toml"
    file.write_text(f'[drift]\n{text}\n[[organization]]\nname = "physics"\n')
    return file


@pytest.mark.parametrize("value", ["0", '"off"'])
def test_replays_can_be_switched_off(tmp_path: Path, value: str) -> None:
    assert load_config(section(tmp_path, f"interval = {value}")).drift.interval is None


def test_every_key_can_be_given(tmp_path: Path) -> None:
    drift = load_config(
        section(
            tmp_path,
            'interval = "30m"\nwindow = "2d"\nmost_organizations = 5\n'
            'time_limit = "1m"\nmemory_limit = "1500M"',
        )
    ).drift
    assert (drift.interval, drift.window, drift.most_organizations) == (1800, 2 * 86_400, 5)
    assert (drift.time_limit, drift.memory_limit) == (60, 1500 * 2**20)


@pytest.mark.parametrize("value", ['"4 G"', '"0G"', '"4GB"', "4", '"512M"'])
def test_a_limit_of_memory_is_a_size_that_replays_can_do_with(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r'drift\.memory_limit: .*write for instance "4G"'):
        load_config(section(tmp_path, f"memory_limit = {value}"))


@pytest.mark.parametrize("value", ["false", '"never"', '"5"'])
def test_an_interval_is_a_duration(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r'drift\.interval: .*write for instance "1h"'):
        load_config(section(tmp_path, f"interval = {value}"))
