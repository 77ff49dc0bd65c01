"""Long exports of sacct: in pieces, of several files, of a stretch of time, and as JSON."""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shapleyprio.common.errors import Remedy
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs import columns, files
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.workloads.log import Log

HEADER = (
    "JobIDRaw|Account|User|Partition|Submit|Start|End|Elapsed|AllocCPUS|State|Timelimit|NodeList"
)
LINES = [
    f"{number}|acc{number % 3}|user{number % 7}|cpu|2025-0{1 + number % 9}-01T00:00:00|"
    f"2025-0{1 + number % 9}-01T00:00:{number % 60:02}|2025-0{1 + number % 9}-02T00:00:00|"
    f"{number}|{1 + number % 4}|COMPLETED|01:00:00|cn[1-{1 + number % 5}]"
    for number in range(1, 400)
]


def written(path: Path, lines: list[str], header: str = HEADER) -> str:
    path.write_text("\n".join((header, *lines)) + "\n")
    return str(path)


def assert_same(one: Log, other: Log) -> None:
    for column in fields(Log):
        mine, others = getattr(one, column.name), getattr(other, column.name)
        if column.name == "labels":
            assert {k: [v.names[i] for i in v.codes] for k, v in mine.items()} == {
                k: [v.names[i] for i in v.codes] for k, v in others.items()
            }
        elif column.name not in {"source", "placed"}:
            assert str(mine) == str(others), column.name


@pytest.mark.parametrize("packed", ["plain", "xz", "zstd"])
def test_pieces_make_the_log_that_they_are_cut_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str
) -> None:
    lines = [*LINES[:300], "nonsense", *LINES[300:]]
    plain = written(tmp_path / "all", lines)
    whole = read_log(plain)
    assert whole.malformed[0].number == 302
    if packed == "xz":
        Path(plain).write_bytes(lzma.compress(Path(plain).read_bytes()))
    elif packed == "zstd":
        if shutil.which("zstd") is None:
            pytest.skip("there is no program zstd")
        subprocess.run(["zstd", "-q", "--rm", plain, "-o", f"{plain}.zst"], check=True)
        plain += ".zst"
    monkeypatch.setattr(columns, "PIECE", 500)
    monkeypatch.setattr(files, "BLOCK", 64)
    seen: list[int] = []
    assert_same(read_log(plain, progress=seen.append), whole)
    assert seen[-1] == Path(plain).stat().st_size
    assert seen == sorted(seen)


def test_a_damaged_zstd_file_is_one_line(tmp_path: Path) -> None:
    if shutil.which("zstd") is None:
        pytest.skip("there is no program zstd")
    path = Path(written(tmp_path / "log", LINES))
    packed = subprocess.run(["zstd", "-qc", path], check=True, capture_output=True).stdout
    path.write_bytes(packed[:-40])
    with pytest.raises(LogError, match="damaged or cut short"):
        read_log(str(path))


def test_overlapping_exports_count_each_record_once(tmp_path: Path) -> None:
    running = "7|acc|user|cpu|2025-01-31T23:00:00|2025-01-31T23:30:00|Unknown|1800|1|RUNNING|60|cn1"
    ended = running.replace("Unknown|1800|1|RUNNING", "2025-02-01T00:30:00|3600|1|COMPLETED")
    requeued = ended.replace("23:00:00", "23:10:00")
    # the older export may come last
    written(tmp_path / "2025-02.sacct", [ended, requeued, *LINES[:20]])
    written(tmp_path / "2025-10.sacct", [running, *LINES[10:30]])
    log = read_log([str(tmp_path / "2025-*.sacct")])
    assert sorted(log.job.tolist()) == sorted([7, 7, *range(1, 31)])
    assert log.left_out == {"repeated": 11}
    assert 3600 in log.processing_time.tolist()
    with pytest.raises(LogError, match="no file matches"):
        read_log([str(tmp_path / "2026-*.sacct")])


def test_exports_without_headings_that_were_put_together_count_each_record_once(
    tmp_path: Path,
) -> None:
    running = LINES[5].replace("COMPLETED", "RUNNING")
    together = [*LINES[:20], running, *LINES[10:30]]
    log = read_log(written(tmp_path / "log", together, ""), fields=HEADER.split("|"))
    assert sorted(log.job.tolist()) == list(range(1, 31))
    assert log.left_out == {"repeated": 11}


def test_pieces_of_jobs_that_sacct_has_cut_are_refused(tmp_path: Path) -> None:
    """Each month would have another piece of them, and but one would count."""
    whole = "7|acc|user|cpu|2025-01-31T23:00:00|2025-01-31T23:30:00|2025-02-01T00:30:00|3600|1|"
    rest = "COMPLETED|60|cn1"
    first = f"{whole.replace('2025-02-01T00:30:00|3600', '2025-02-01T00:00:00|1800')}{rest}"
    second = f"{whole.replace('2025-01-31T23:30:00', '2025-02-01T00:00:00').replace('36', '18')}"
    january = written(tmp_path / "january", [first, *LINES[:5]])
    february = written(tmp_path / "february", [f"{second}{rest}"])
    message = r"january and 1 more: job 7 begins at another time in another file; ask sacct without"
    with pytest.raises(LogError, match=message):
        read_log([january, february])
    waiting = whole.replace("2025-01-31T23:30:00", "Unknown").replace("3600", "0")
    for other in (f"{whole}{rest}", f"{waiting}PENDING|60|cn1", f"{waiting}CANCELLED|60|cn1"):
        log = read_log([written(tmp_path / "other", [other]), january])
        assert (len(log.job), log.left_out) == (6, {"repeated": 1})


@pytest.mark.parametrize("lacks", ["JobIDRaw", "Submit"])
def test_files_that_know_a_record_by_other_columns_are_refused(tmp_path: Path, lacks: str) -> None:
    """Each number of a task of an array, and each time of a job that was held, is another."""
    other = {"JobIDRaw": "JobID", "Submit": "Eligible"}[lacks]
    known_by = {"JobIDRaw": "jobid and submit", "Submit": "jobidraw and eligible"}[lacks]
    usual = written(tmp_path / "a", LINES)
    plain = written(tmp_path / "b", LINES, HEADER.replace(f"{lacks}|", f"{other}|", 1))
    both = written(tmp_path / "c", [f"1|{line}" for line in LINES], f"{other}|{HEADER}")
    message = rf"b: its records are known by {known_by}, those of .*a by jobidraw and submit, so .*"
    with pytest.raises(LogError, match=rf"{message}as in sacct .*JobIDRaw"):
        read_log([usual, plain])
    with pytest.raises(LogError, match=r"a: its records are known by jobidraw and submit"):
        read_log([plain, usual])
    assert len(read_log([usual, both]).job) == len(LINES)


def test_tasks_of_an_array_are_no_repetitions(tmp_path: Path) -> None:
    header, rest = HEADER.replace("JobIDRaw", "JobID"), LINES[0].partition("|")[2]
    lines = [f"{task}|{rest}" for task in ("5_1", "5_10", "5+1", "5_[2-9]", "5")]
    first, second = (written(tmp_path / name, lines, header) for name in "ab")
    log = read_log([first, second])
    assert len(log.job) == len(lines)
    assert log.left_out == {"repeated": len(lines)}


def test_since_and_until_take_releases_and_still_show_what_is_malformed(tmp_path: Path) -> None:
    nonsense = LINES[0].replace("COMPLETED|01:00:00", "COMPLETED|never")
    unreadable = LINES[0].replace("2025-02-01T00:00:00|", "someday|")
    path = written(tmp_path / "log", [*LINES, nonsense, unreadable])
    march, may = datetime.fromisoformat("2025-03-01"), datetime(2025, 5, 1, tzinfo=UTC)
    taken = read_log(path, since=march, until=may)
    assert len(taken.job) == sum("|2025-03" in line or "|2025-04" in line for line in LINES)
    assert [line.number for line in taken.malformed] == [402]  # the other one is not looked at
    whole = read_log(path, time_zone="Europe/Warsaw", since=datetime.fromisoformat("2025-02-01"))
    assert len(whole.job) == sum("|2025-01" not in line for line in LINES)
    (tmp_path / "log").write_text("7 100 20 300 4 0 0 8 3600 0 1 5 6 1 2 3 -1 0\n")
    with pytest.raises(LogError, match="no dates") as caught:
        read_log(path, since=datetime.fromisoformat("2025-02-01"))
    assert caught.value.remedy is Remedy.SECONDS_OF_WINDOW


def of_22_05(job: dict[str, Any]) -> dict[str, Any]:
    return job


def of_24_11(job: dict[str, Any]) -> dict[str, Any]:
    minutes = job["time"]["limit"]
    known = {
        "set": minutes < 2**32 - 2,
        "infinite": minutes == 2**32 - 1,
        "number": minutes % 2**31,
    }
    return {
        **job,
        "state": {"current": [job["state"]["current"]], "reason": "None"},
        "time": {**job["time"], "limit": known},
    }


@pytest.mark.parametrize("shape", [of_22_05, of_24_11])
def test_json_is_read_as_the_text_of_the_same_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: Any
) -> None:
    begin = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp())
    jobs: list[dict[str, Any]] = [
        {
            "job_id": number,
            "account": "physics",
            "user": f"u{number % 3}",
            "group": "users",
            "partition": "cpu",
            "qos": "normal",
            "state": {"current": "COMPLETED", "reason": "None"},
            "time": {
                "elapsed": 60,
                "eligible": begin,
                "submission": begin,
                "start": begin + number,
                "end": begin + number + 60,
                "limit": 2**32 - 1 if number % 2 else 90,
            },
            "tres": {"allocated": [{"type": "mem", "count": 9}, {"type": "cpu", "count": 4}]},
            "nodes": "cn[1-2]",
        }
        for number in range(1, 40)
    ]
    printed = {"meta": {"command": ["sacct", "--json"]}, "jobs": list(map(shape, jobs))}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**printed, "errors": []}, indent=1))
    text = written(
        tmp_path / "log",
        [
            f"{job['job_id']}|physics|{job['user']}|users|cpu|normal|{begin}|{begin}|"
            f"{begin + job['job_id']}|{begin + job['job_id'] + 60}|60|4|COMPLETED|"
            f"{'UNLIMITED' if job['job_id'] % 2 else '01:30:00'}|cn[1-2]"
            for job in jobs
        ],
        "JobIDRaw|Account|User|Group|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|AllocCPUS|"
        "State|Timelimit|NodeList",
    )
    monkeypatch.setattr(columns, "PIECE", 700)
    monkeypatch.setattr(files, "BLOCK", 64)
    assert_same(read_log(str(path)), read_log(text))
    path.write_text(2 * f"{json.dumps(printed)}\n")
    with pytest.raises(LogError, match=r'log.json:2: is a second list "jobs"; give the files one'):
        read_log(str(path))
    path.write_text(json.dumps(printed)[:-300])
    with pytest.raises(LogError, match="cut short"):
        read_log(str(path))
    path.write_text("{}\n")
    with pytest.raises(LogError, match='no list "jobs"'):
        read_log(str(path))
