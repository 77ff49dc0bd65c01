"""The Standard Workload Format: what each field means, and what is wrong with a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.logs.swf import FIELDS, HIGHEST, LOWEST, read_swf
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from tests.replay.traces import trace

USUAL = dict(
    zip(FIELDS, (7, 100, 20, 300, 4, 0, 0, 8, 3600, 0, 1, 5, 6, 1, 2, 3, -1, 0), strict=True)
)


def job(**changes: object) -> str:
    """A line with these fields, named with underscores, other than usual."""
    named = {name.replace("_", " "): value for name, value in changes.items()}
    assert named.keys() <= USUAL.keys()
    return " ".join(str(value) for value in {**USUAL, **named}.values())


def read(*lines: str, strict: bool = False) -> Log:
    return read_swf("jobs.swf", "\n".join(lines).encode(), strict=strict)


def names(log: Log, label: str) -> list[str | None]:
    labels = log.labels[label]
    return [None if code == UNKNOWN else labels.names[code] for code in labels.codes.tolist()]


def reasons(log: Log) -> list[str]:
    return [line.reason for line in log.malformed]


def test_a_job_is_released_at_its_submission_and_starts_after_its_wait() -> None:
    log = read(job(submit_time=100, wait_time=20, run_time=300))
    assert (log.job.tolist(), log.release.tolist(), log.start.tolist()) == ([7], [100], [120])
    assert log.processing_time.tolist() == [300]


def test_an_unknown_wait_is_an_unknown_start() -> None:
    assert read(job(wait_time=-1)).start.tolist() == [UNKNOWN]


@pytest.mark.parametrize("allocated", [-1, 0])
def test_the_requested_processors_count_where_the_allocated_are_unknown(allocated: int) -> None:
    assert read(job()).processors.tolist() == [4]
    assert read(job(allocated_processors=allocated)).processors.tolist() == [8]


@pytest.mark.parametrize(
    ("requested", "limit"),
    [(7200, 7200), (257_697_600_060, 257_697_600_060), (0, 3600), (-1, 3600)],
)
def test_the_limit_is_the_requested_time_or_the_partitions(requested: int, limit: int) -> None:
    assert read(job(requested_time=requested)).limit.tolist() == [limit]


def test_users_groups_queues_and_partitions_are_named_by_their_numbers() -> None:
    log = read(job(user=12, group=0, queue=1, partition=2), job(user=3), job(user=12))
    assert names(log, "user") == ["12", "3", "12"]
    assert names(log, "group") == ["0", "6", "6"]
    assert names(log, "queue") == ["1", "2", "2"]
    assert names(log, "partition") == ["2", "3", "3"]


def test_minus_one_is_a_user_like_any_other() -> None:
    assert names(read(job(user=-1), job(user=1)), "user") == ["-1", "1"]


def test_only_jobs_that_count_lend_their_names() -> None:
    assert read(job(user=1), job(user=2, run_time=0)).labels["user"].names == ("1",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run_time": -1}, "unknown_processing_time"),
        ({"run_time": 0}, "zero_processing_time"),
        ({"allocated_processors": -1, "requested_processors": -1}, "unknown_processors"),
        ({"allocated_processors": 0, "requested_processors": 0}, "unknown_processors"),
    ],
)
def test_jobs_that_cannot_be_replayed_are_left_out_and_counted(
    changes: dict[str, object], reason: str
) -> None:
    log = read(job(job=1), job(job=2, **changes), job(job=3))
    assert log.job.tolist() == [1, 3]
    assert log.left_out == {reason: 1}


def test_what_was_executed_between_checkpoints_is_part_of_the_jobs_own_line() -> None:
    parts = [job(run_time=100 * status, status=status) for status in (2, 3)]
    failed = job(job=8, status=0), job(job=8, status=4)
    log = read(job(run_time=500, status=1), *parts, *failed, job(job=9, status=-1))
    assert (log.job.tolist(), log.processing_time.tolist()) == ([7, 8, 9], [500, 300, 300])
    assert log.left_out == {"partial_executions": 3}


def test_partial_executions_of_a_job_without_a_line_of_its_own_are_replayed() -> None:
    log = read(job(job=7, status=2), job(job=7, status=3), job(job=8, status=1))
    assert log.job.tolist() == [7, 7, 8]
    assert not log.left_out


def test_comments_empty_lines_and_odd_blanks_are_no_jobs() -> None:
    log = read(
        "; a header", "", "  ; another", job(), "   ", "\t" + job().replace(" ", " \t ") + "\r"
    )
    assert len(log.job) == 2
    assert not log.left_out


def test_the_header_shows_the_systems_processors() -> None:
    assert read("; Computer: x", ";\tMaxProcs:\t 240\r", job()).system_processors == 240
    assert read(";MaxProcs: 70", job()).system_processors == 70


def test_the_header_says_when_the_logs_seconds_began() -> None:
    assert read("; UnixStartTime: 1091615532", job()).epoch == 1_091_615_532
    assert read("; MaxProcs: 70", job()).epoch is None


@pytest.mark.parametrize(
    "header", ["; MaxNodes: 8", "; and MaxProcs fields.", "; MaxProcs: -1", "; MaxProcs: 0", ""]
)
def test_a_header_need_not_state_the_processors(header: str) -> None:
    assert read(header, job()).system_processors is None


def test_what_stands_behind_the_jobs_is_no_header() -> None:
    assert read(job(), "; MaxProcs: 240").system_processors is None


def test_files_that_were_put_together_are_refused() -> None:
    """Each has seconds of its own."""
    first, second = "; UnixStartTime: 1091615000", "; UnixStartTime:  1091619000\r"
    assert read(first, job(), first, job()).epoch == 1091615000
    with pytest.raises(LogError, match=r"^jobs\.swf: has several UnixStartTime; give one of the"):
        read(first, job(), second, job())


def test_fractions_are_fine_where_the_field_is_not_needed() -> None:
    log = read(job(average_CPU_time="552.21", used_memory="-0.5", think_time="7."))
    assert len(log.job) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (job(run_time="12.5"), "field 4 (run time): '12.5' is not a whole number"),
        (job(run_time="1e3"), "field 4 (run time): '1e3' is not a number"),
        (job(run_time="--1"), "field 4 (run time): '--1' is not a number"),
        (job(run_time="-"), "field 4 (run time): '-' is not a number"),
        (job(run_time="1.2.3"), "field 4 (run time): '1.2.3' is not a number"),
        (job(run_time=-2), "field 4 (run time): '-2' is below -1"),
        (job(wait_time=-7), "field 3 (wait time): '-7' is below -1"),
        (job(submit_time=-1), "field 2 (submit time): '-1' is below 0"),
        (job(user=2**53 + 1), f"field 12 (user): '{2**53 + 1}' is beyond {2**53}"),
        (job(run_time=10**40), f"field 4 (run time): '{10**40}' is beyond {2**32}"),
        (job(used_memory="much"), "field 7 (used memory): 'much' is not a number"),
        (" ".join(job().split()[:17]), "17 fields instead of 18"),
        ("1", "1 fields instead of 18"),
        ("1;", "field 1 (job): '1;' is not a number"),
    ],
)
def test_a_malformed_line_is_counted_and_explained(line: str, reason: str) -> None:
    log = read("; header", job(job=1), line, job(job=2))
    assert log.job.tolist() == [1, 2]
    assert log.left_out == {"malformed": 1}
    assert [(bad.number, bad.reason) for bad in log.malformed] == [(3, reason)]


def test_the_largest_number_is_none_too_many() -> None:
    assert read(job(run_time=2**32)).processing_time.tolist() == [2**32]
    assert read(job(user=2**53)).labels["user"].names == (str(2**53),)


def test_a_hundred_malformed_lines_are_explained_and_all_are_counted() -> None:
    log = read(job(), *["1 2 3"] * 250)
    assert log.left_out == {"malformed": 250}
    assert [line.number for line in log.malformed] == list(range(2, 102))


def test_the_first_malformed_line_is_fatal_if_strict() -> None:
    with pytest.raises(LogError, match=r"^jobs.swf:2: 3 fields instead of 18; correct or remove"):
        read(job(), "1 2 3", "4", strict=True)


def test_a_file_without_a_single_readable_line_is_no_log() -> None:
    with pytest.raises(LogError, match=r"^jobs.swf:1: .* no other line can be read"):
        read("not a log", "at all")


VALUES = st.tuples(
    *(st.integers(max(LOWEST.get(name, -1), -(2**31)), HIGHEST.get(name, 2**53)) for name in FIELDS)
)
BLANKS = st.text(" \t", min_size=1, max_size=4)


@given(
    jobs=st.lists(st.tuples(VALUES, BLANKS), min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_every_number_comes_back_as_it_was_written(
    jobs: list[tuple[tuple[int, ...], str]], end: str
) -> None:
    text = end.join(blanks + blanks.join(map(str, values)) for values, blanks in jobs)
    log = read_swf("jobs.swf", text.encode())
    rows = [dict(zip(FIELDS, values, strict=True)) for values, _ in jobs]
    for row in rows:
        if row["allocated processors"] <= 0:
            row["allocated processors"] = row["requested processors"]
    kept = [row for row in rows if row["run time"] > 0 and row["allocated processors"] > 0]
    assert log.job.tolist() == [row["job"] for row in kept]
    assert log.release.tolist() == [row["submit time"] for row in kept]
    assert log.processing_time.tolist() == [row["run time"] for row in kept]
    assert log.processors.tolist() == [row["allocated processors"] for row in kept]
    for label in ("user", "group", "queue", "partition"):
        assert names(log, label) == [str(row[label]) for row in kept]
    assert len(kept) + sum(log.left_out.values()) == len(jobs)
    assert not log.malformed


@given(flips=st.lists(st.tuples(st.integers(0, len(job()) - 1), st.integers(0, 255)), min_size=1))
def test_a_damaged_line_is_read_or_counted_but_never_fatal(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(job(job=2).encode())
    for place, byte in flips:
        damaged[place] = byte
    text = b"\n".join([job(job=1).encode(), bytes(damaged), job(job=3).encode()])
    log = read_swf("jobs.swf", text)
    assert log.job.tolist()[0] == 1
    assert log.job.tolist()[-1] == 3
    lines = damaged.split(b"\n")
    expected = sum(bool(line.split()) and not line.lstrip().startswith(b";") for line in lines)
    assert len(log.job) + sum(log.left_out.values()) == 2 + expected
    assert len(log.malformed) == log.left_out.get("malformed", 0)
    for bad in log.malformed:
        assert 2 <= bad.number < 2 + len(lines)


def test_the_whole_of_lpc() -> None:
    log = read_log(str(trace("LPC-EGEE-2004-1.2-cln.swf.gz")))
    assert len(log.job) + sum(log.left_out.values()) == 234_889
    assert len(log.job) == 214_322
    assert log.system_processors == 140
    assert set(log.processors.tolist()) == {1}
    assert len(log.labels["user"].names) == 54  # of 56; two have no job with a run time


def test_the_whole_of_ricc() -> None:
    log = read_log(str(trace("RICC-2010-2.swf.gz")))
    assert len(log.job) + sum(log.left_out.values()) == 447_794
    assert len(log.job) == 447_784
    assert log.system_processors == 8192
    assert len(log.labels["user"].names) == 176


@pytest.mark.parametrize(
    ("name", "jobs", "users", "processors"),
    [
        ("HPC2N-2002-2.2-cln.swf.gz", 202_871, 257, 240),
        ("METACENTRUM-2009-2.swf.gz", 103_656, 144, None),
        ("DAS2-fs1-2003-1.swf.gz", 40_315, 35, 64),
        ("CEA-Curie-2011-2.1-cln.swf.gz", 312_826, 579, 93_312),
    ],
)
def test_no_line_of_the_archives_logs_is_malformed(
    name: str, jobs: int, users: int, processors: int | None
) -> None:
    log = read_log(str(trace(name)), strict=True)
    assert len(log.job) + sum(log.left_out.values()) == jobs
    assert len(log.labels["user"].names) == users
    assert log.system_processors == processors
