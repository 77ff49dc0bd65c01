"""The benchmarks run and say what they measured; how fast is not for tests."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from shapleyprio.bench import cycles, steady
from shapleyprio.bench.workloads import NOW, day_of_records
from shapleyprio.cli import main
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.text_accounting import accounting_line


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cycles, steady):
        monkeypatch.setattr(module, "PENDING", 40)
        monkeypatch.setattr(module, "RUNNING", 20)
        monkeypatch.setattr(module, "RUNS", 2)
    monkeypatch.setattr(steady, "SMALL", 50)


def test_all_parts_are_measured() -> None:
    result = CliRunner().invoke(main, ["bench", "--records", "100", "--json"])
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["machine"].keys() == {"cores", "cpu", "python"}
    parts = [one["name"] for one in told["measurements"]]
    assert parts == ["cycle", "cycle", "ingest", "ingest", "steady", "steady", "steady"]
    assert all(one["value"] > 0 for one in told["measurements"])
    assert [one["below"] for one in told["measurements"][:4]] == [1.0, 1.0, None, None]


def test_a_table_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(main, ["bench", "cycle"])
    assert result.exit_code == 0
    machine, headings, *rows = result.stdout.splitlines()
    assert "CPython" in machine
    assert headings.split()[-4:] == ["runs", "median", "worst", "target"]
    assert {row.split()[-1] for row in rows} <= {"met", "missed"}
    assert [row.split()[0] for row in rows] == ["cycle", "cycle"]


def test_every_record_of_the_past_can_be_read() -> None:
    records = [accounting_line(line, "cpu") for line in day_of_records(3, 500)]
    for record in records:
        assert isinstance(record, JobRecord)
        assert record.start is not None
        assert record.end is not None
        assert record.submit <= record.start < record.end < NOW
        assert record.processors
