"""What sacct prints: columns in any order, a line for each execution, times as people write."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.column_names import ASK, XDMOD_FIELDS
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.logs.sacct import SacctReader
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log
from tests.replay.traces import trace

if TYPE_CHECKING:
    from pathlib import Path


def read_sacct(source: str, text: bytes, **options: Any) -> Log:
    """Reads one file in one piece."""
    reader = SacctReader(source, **options)
    reader.read(source, [text])
    return reader.log()


USUAL = {
    "JobIDRaw": "42",
    "Account": "physics",
    "User": "ann",
    "Group": "staff",
    "Partition": "batch",
    "QOS": "normal",
    "Submit": "2017-01-01T10:00:00",
    "Eligible": "2017-01-01T10:00:00",
    "Start": "2017-01-01T10:05:00",
    "End": "2017-01-01T11:05:00",
    "Elapsed": "01:00:00",
    "AllocCPUS": "4",
    "State": "COMPLETED",
    "Timelimit": "02:00:00",
    "NodeList": "n[1-2]",
}
SUBMIT = int(datetime(2017, 1, 1, 10, tzinfo=UTC).timestamp())
MINUTE, HOUR = 60, 3600
PARTITIONS_LIMIT = HOUR
"""As long as the usual job, which is alone there."""


def read(*jobs: dict[str, str], without: str = "", strict: bool = False) -> Log:
    """Reads jobs with these fields other than usual; a field set anywhere is a column."""
    known = dict.fromkeys([*USUAL, *(name for job in jobs for name in job)])
    names = [name for name in known if name not in without.split()]
    rows = ["|".join(({**USUAL, **job}).get(name, "") for name in names) for job in jobs]
    return lines("|".join(names), *rows, strict=strict)


def lines(*text: str, strict: bool = False, zone: str = "UTC") -> Log:
    written = "\n".join(text).encode()
    return read_sacct("jobs.txt", written, zone=ZoneInfo(zone), strict=strict)


def names(labels: Labels) -> list[str | None]:
    return [None if code == UNKNOWN else labels.names[code] for code in labels.codes.tolist()]


def moment(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


# -- columns


def test_a_job_comes_back_with_all_it_holds() -> None:
    log = read({})
    assert log.job.tolist() == [42]
    assert log.release.tolist() == [SUBMIT]
    assert log.start.tolist() == [SUBMIT + 5 * MINUTE]
    assert log.processing_time.tolist() == [HOUR]
    assert log.processors.tolist() == [4]
    assert log.limit.tolist() == [2 * HOUR]
    assert {label: names(column) for label, column in log.labels.items()} == {
        "account": ["physics"],
        "user": ["ann"],
        "group": ["staff"],
        "partition": ["batch"],
        "qos": ["normal"],
        "nodes": ["n[1-2]"],
    }


def test_what_started_was_released_by_then() -> None:
    log = read({"Eligible": "2017-01-01T10:07:00"})
    assert log.release.tolist() == log.start.tolist() == [SUBMIT + 5 * MINUTE]


def test_nodes_that_are_no_host_list_make_a_line_malformed() -> None:
    log = read({}, {"NodeList": "n[1-"})
    assert (len(log.job), log.left_out) == (1, {"malformed": 1})
    assert "nodelist" in log.malformed[0].reason


def test_columns_may_come_in_any_order_in_any_case_and_with_strange_ones_between() -> None:
    log = lines(
        "start|Comment|ELAPSEDRAW|jobid|Submit|ncpus|",
        "2017-01-01T10:05:00|what a job|90|42|2017-01-01T10:00:00|2|",
    )
    assert (log.job.tolist(), log.processing_time.tolist()) == ([42], [90])
    assert (log.processors.tolist(), log.limit.tolist()) == ([2], [HOUR])
    assert not log.labels


def test_files_that_were_put_together_are_refused() -> None:
    """A record that several of them have would count more than once."""
    heading = "JobID|Submit|Start|ElapsedRaw|NCPUS"
    row = "{}|2017-01-01T10:00:00|2017-01-01T10:05:00|90|2"
    first, again = row.format(1), row.format(2)
    assert len(lines(heading, first, again).job) == 2
    for text, line in (((heading, first, heading, again), 3), ((heading, heading, first), 2)):
        with pytest.raises(LogError, match=rf"^jobs\.txt:{line}: is a second heading line; give"):
            lines(*text)
    with pytest.raises(LogError, match=r"^jobs\.txt:4: is a second heading line"):
        SacctReader("jobs.txt").read(
            "jobs.txt", [f"{heading}\n{first}\n{again}\n".encode(), f"{heading}\n".encode()]
        )


def test_without_a_header_the_fields_are_open_xdmods() -> None:
    row = {name.casefold(): value for name, value in USUAL.items()}
    row |= {"jobid": "42", "ncpus": "4", "jobname": "run|with|bars"}
    log = lines("|".join(row.get(name, "") for name in XDMOD_FIELDS))
    assert (log.job.tolist(), log.processors.tolist()) == ([42], [4])
    assert names(log.labels["nodes"]) == ["n[1-2]"]


def test_without_a_header_the_fields_can_be_named_as_sacct_was_asked() -> None:
    asked = ["JobID%20", "Submit", "Start", "Elapsed", "NCPUS"]
    text = b"42|2017-01-01T10:00:00|2017-01-01T10:05:00|00:01:00|2"
    assert read_sacct("jobs.txt", text, fields=asked).processing_time.tolist() == [60]


def test_a_line_of_data_full_of_names_of_columns_is_no_header() -> None:
    asked = ["JobID", "Submit", "Start", "Elapsed", "NCPUS", "User", "Account", "Group"]
    text = b"42|2017-01-01T10:00:00|2017-01-01T10:05:00|00:01:00|2|user|account|group"
    assert len(read_sacct("jobs.txt", text, fields=asked).job) == 1


def test_empty_lines_and_line_ends_of_other_systems_do_not_matter() -> None:
    text = "JobID|Submit|Start|Elapsed|NCPUS|User\r\n\r\n42|1000|1005|00:01:00|2|ann\r\n"
    assert names(lines("", text).labels["user"]) == ["ann"]


def test_the_last_column_may_hold_separators_if_it_is_the_jobs_name() -> None:
    log = read({"JobName": "a|b||c"}, {"JobName": ""})
    assert len(log.job) == 2


@pytest.mark.parametrize(
    ("missing", "answer"),
    [
        ("JobIDRaw", r"the job's number \(jobidraw or jobid\)"),
        ("Submit Eligible", r"when it was submitted \(submit or eligible\)"),
        ("Start", r"when it started \(start\)"),
        ("AllocCPUS", r"its processors \(alloccpus or ncpus or alloctres or reqcpus\)"),
        ("Elapsed End", r"how long it ran \(elapsedraw or elapsed or end\)"),
        ("Start Elapsed End", r"when it started \(start\), nor how long it ran"),
    ],
)
def test_a_missing_column_is_named_and_how_to_ask_for_it(missing: str, answer: str) -> None:
    with pytest.raises(LogError, match=rf"^jobs.txt: no column has {answer}") as raised:
        read({}, without=missing)
    assert str(raised.value).endswith(ASK)


def test_what_we_say_to_ask_for_can_be_read() -> None:
    header = ASK.partition("--format=")[2].replace(",", "|")
    fields = {**USUAL, "ElapsedRaw": "3600", "Cluster": "c1"}
    row = "|".join(fields[name] for name in header.split("|"))
    assert lines(header, row, strict=True).processing_time.tolist() == [HOUR]


# -- jobs


@pytest.mark.parametrize("written", ["12", "12_3", "12+1", "12_²"])
def test_tasks_of_arrays_and_components_are_jobs(written: str) -> None:
    assert read({"JobID": written}, without="JobIDRaw").job.tolist() == [12]


def test_the_raw_number_counts_where_both_are_given() -> None:
    assert read({"JobID": "12_3", "JobIDRaw": "15"}).job.tolist() == [15]


@pytest.mark.parametrize("step", ["12.batch", "12.extern", "12.0", "12_3.batch", "12+1.0"])
def test_steps_are_passed_over_and_counted(step: str) -> None:
    log = read({"JobIDRaw": "12"}, {"JobIDRaw": step, "User": "", "Timelimit": "?"})
    assert log.job.tolist() == [12]
    assert log.left_out == {"steps": 1}
    assert log.labels["user"].names == ("ann",)


def test_every_execution_of_a_requeued_job_is_an_entry() -> None:
    again = {"Submit": "2017-01-01T12:00:00", "Start": "2017-01-01T12:01:00"}
    log = read({"State": "PREEMPTED"}, {**again, "End": "2017-01-01T13:01:00"})
    assert log.job.tolist() == [42, 42]
    assert log.start.tolist() == [SUBMIT + 5 * MINUTE, SUBMIT + 121 * MINUTE]


@pytest.mark.parametrize("without", ["", "Elapsed"])
def test_a_resized_job_has_an_entry_for_each_size_one_after_the_other(without: str) -> None:
    """Slurm writes the job's start into each, and Submit when it was resized."""
    first = {"State": "RESIZING", "End": "2017-01-01T10:25:00", "Elapsed": "00:20:00"}
    second = {"Submit": first["End"], "Eligible": first["End"], "AllocCPUS": "2"}
    log = read(first, second, without=without)
    assert log.start.tolist() == [SUBMIT + 5 * MINUTE, SUBMIT + 25 * MINUTE]
    assert log.processing_time.tolist() == [20 * MINUTE, 40 * MINUTE]
    assert log.processors.tolist() == [4, 2]
    assert log.left_out == {}


def test_a_name_that_is_missing_is_unknown() -> None:
    log = read({"User": "", "NodeList": "None assigned"}, {})
    assert names(log.labels["user"]) == [None, "ann"]
    assert names(log.labels["nodes"]) == [None, "n[1-2]"]


def test_names_in_odd_encodings_do_not_stop_the_reader() -> None:
    text = b"JobID|Submit|Start|Elapsed|NCPUS|User\n42|1000|1005|00:01:00|2|J\xfcrgen"
    assert names(read_sacct("jobs.txt", text).labels["user"]) == ["J\ufffdrgen"]


# -- release


@pytest.mark.parametrize(
    ("eligible", "later"),
    [
        ("2017-01-01T10:03:00", 3 * MINUTE),
        ("2017-01-01T09:00:00", 0),
        ("Unknown", 0),
        ("", 0),
    ],
)
def test_a_job_is_released_when_it_became_eligible(eligible: str, later: int) -> None:
    assert read({"Eligible": eligible}).release.tolist() == [SUBMIT + later]


@pytest.mark.parametrize("missing", ["Submit", "Eligible"])
def test_either_of_submission_and_eligibility_will_do(missing: str) -> None:
    assert read({}, without=missing).release.tolist() == [SUBMIT]


# -- processing time


def test_time_spent_suspended_does_not_count() -> None:
    assert read({"Elapsed": "00:45:00"}).processing_time.tolist() == [45 * MINUTE]


def test_seconds_count_before_their_rounded_form() -> None:
    assert read({"ElapsedRaw": "77"}).processing_time.tolist() == [77]


@pytest.mark.parametrize(
    ("elapsed", "seconds"),
    [("00:00:01", 1), ("2-07:23:38", 199_418), ("13:38:51", 49_131), ("05:00", 300)],
)
def test_durations_are_read_as_slurm_writes_them(elapsed: str, seconds: int) -> None:
    assert read({"Elapsed": elapsed}).processing_time.tolist() == [seconds]


def test_without_the_duration_the_end_shows_it() -> None:
    log = read({}, {"End": "Unknown"}, {"End": "2017-01-01T10:05:00"}, without="Elapsed")
    assert log.processing_time.tolist() == [HOUR]
    assert log.left_out == {"unknown_processing_time": 1, "zero_processing_time": 1}


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "SUSPENDED", "REQUEUE_HOLD"])
def test_jobs_that_have_not_ended_are_left_out(state: str) -> None:
    assert read({}, {"State": state}).left_out == {"unknown_processing_time": 1}
    assert read({}, {"State": state}, without="End").left_out == {"unknown_processing_time": 1}


def test_an_unknown_end_is_a_job_that_has_not_ended() -> None:
    assert read({}, {"End": "Unknown"}, without="State").left_out == {"unknown_processing_time": 1}


def test_a_job_that_waits_may_have_no_start_no_nodes_and_no_processors() -> None:
    waiting = {"Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00", "AllocCPUS": "0"}
    log = read({}, {**waiting, "State": "PENDING", "NodeList": "None assigned"})
    assert log.left_out == {"unknown_processing_time": 1}


def test_a_job_cancelled_before_it_started_ran_for_no_time() -> None:
    cancelled = {"Start": "None", "Elapsed": "00:00:00", "State": "CANCELLED by 1000"}
    assert read({}, cancelled).left_out == {"zero_processing_time": 1}


# -- processors and limits


@pytest.mark.parametrize("column", ["NCPUS", "AllocCPUS"])
def test_processors_are_the_allocated_cpus(column: str) -> None:
    without = "" if column == "AllocCPUS" else "AllocCPUS"
    assert read({column: "12"}, without=without).processors.tolist() == [12]
    assert read({column: "2K"}, without=without).processors.tolist() == [2048]


def test_processors_may_be_given_among_other_resources() -> None:
    log = read(
        {"AllocTRES": "billing=8,cpu=6,mem=22400M,node=1"},
        {"AllocTRES": ""},
        {"AllocTRES": "mem=1G"},
        {"AllocTRES": "cpu=many"},
        without="AllocCPUS",
    )
    assert log.processors.tolist() == [6]
    assert log.left_out == {"unknown_processors": 2, "malformed": 1}


def test_what_was_asked_for_will_do_where_nothing_else_is_known() -> None:
    job = {"ReqCPUS": "3", "TimelimitRaw": "90", "ElapsedRaw": "60"}
    log = read(job, without="AllocCPUS Timelimit Elapsed Eligible NodeList State")
    assert (log.processors.tolist(), log.limit.tolist()) == ([3], [90 * MINUTE])
    both = read({"ReqCPUS": "3", "TimelimitRaw": "90"})
    assert (both.processors.tolist(), both.limit.tolist()) == ([4], [2 * HOUR])


@pytest.mark.parametrize("cpus", ["0", ""])
def test_a_job_that_ran_on_nobody_knows_what_is_left_out(cpus: str) -> None:
    assert read({}, {"AllocCPUS": cpus}).left_out == {"unknown_processors": 1}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("125-00:00:00", 125 * 24 * HOUR),
        ("1-06:00:00", 30 * HOUR),
        ("1-06:30", 30 * HOUR + 30 * MINUTE),
        ("1-06", 30 * HOUR),
        ("00:30:00", 30 * MINUTE),
        ("30:10", 30 * MINUTE + 10),
        ("90", 90 * MINUTE),
        ("2982611-02:41:00", 4_294_960_001 * MINUTE),
        ("4294960001", 4_294_960_001 * MINUTE),
        ("0", PARTITIONS_LIMIT),
        ("UNLIMITED", PARTITIONS_LIMIT),
        ("Partition_Limit", PARTITIONS_LIMIT),
        ("", PARTITIONS_LIMIT),
    ],
)
def test_limits_are_read_as_slurm_writes_them(written: str, seconds: int) -> None:
    assert read({"Timelimit": written}).limit.tolist() == [seconds]


# -- times


def test_times_may_be_seconds_since_the_epoch() -> None:
    log = read({"Submit": str(SUBMIT), "Eligible": str(SUBMIT + 1), "Start": str(SUBMIT + 2)})
    assert (log.release.tolist(), log.start.tolist()) == ([SUBMIT + 1], [SUBMIT + 2])


ZONES = ("UTC", "Europe/Warsaw", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


@given(
    times=st.lists(st.integers(SUBMIT - 2**29, SUBMIT + 2**31).map(moment), min_size=1, max_size=5),
    zone=st.sampled_from(ZONES),
)
def test_local_times_are_those_of_the_clock_on_the_wall(times: list[str], zone: str) -> None:
    header = "JobID|Start|Submit|Elapsed|NCPUS"
    rows = [f"1|{time}|1000|00:01:00|1" for time in times]
    shown = [datetime.fromisoformat(time).replace(tzinfo=ZoneInfo(zone)) for time in times]
    expected = [int(time.timestamp()) for time in shown]
    assert lines(header, *rows, zone=zone).start.tolist() == expected


def test_times_of_a_clock_that_was_set_back_are_not_utc(tmp_path: Path) -> None:
    """A node would seem to hold what ended in the hour that came twice and what began then."""
    header = "JobID|Submit|Start|End|Elapsed|NCPUS"
    day = "2025-10-26T"
    night = f"1|{day}00:00:00|{day}01:00:00|{day}04:00:00|{{}}:00:00|1"
    (tmp_path / "log").write_text("\n".join((header, night.format("03"), night.format("02"))))
    assert read_log(str(tmp_path / "log")).processing_time.tolist() == [3 * HOUR, 2 * HOUR]
    (tmp_path / "log").write_text("\n".join((header, night.format("03"), night.format("04"))))
    with pytest.raises(LogError, match=r"log: job 1 ran an hour longer than from its start to its"):
        read_log(str(tmp_path / "log"))
    log = read_log(str(tmp_path / "log"), time_zone="Europe/Warsaw")
    assert log.processing_time.tolist() == [3 * HOUR, 4 * HOUR]


@given(second=st.integers(31_536_000, 2**32 - 3))
def test_every_second_that_slurm_can_write_is_read(second: int) -> None:
    log = lines("JobID|Start|Submit|Elapsed|NCPUS", f"1|{moment(second)}|{second}|00:01:00|1")
    assert log.start.tolist() == log.release.tolist() == [second]


# -- malformed lines


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"JobIDRaw": "abc"}, "jobidraw: 'abc' is not a job number"),
        ({"JobIDRaw": ""}, "jobidraw: '' is not a job number"),
        ({"JobIDRaw": "0"}, "jobidraw: '0' is not a job number"),
        ({"JobIDRaw": "12x"}, "jobidraw: '12x' is not a job number"),
        ({"JobIDRaw": "9" * 11}, f"jobidraw: '{'9' * 11}' is not a job number"),
        ({"Submit": "yesterday"}, "submit: 'yesterday' is neither a time"),
        ({"Submit": "2017-02-29T10:00:00"}, "submit: '2017-02-29T10:00:00' is neither a time"),
        ({"Start": "2017-13-01T10:00:00"}, "start: '2017-13-01T10:00:00' is neither a time"),
        ({"Start": "2017-01-01T24:00:00"}, "start: '2017-01-01T24:00:00' is neither a time"),
        ({"Start": "2017-01-01T10:60:00"}, "start: '2017-01-01T10:60:00' is neither a time"),
        ({"Start": "2017/01/01T10:00:00"}, "start: '2017/01/01T10:00:00' is neither a time"),
        ({"End": "-5"}, "end: '-5' is neither a time"),
        ({"End": "9999999999"}, "end: '9999999999' is neither a time"),
        ({"Submit": "Unknown", "Eligible": "Unknown"}, "neither submit nor eligible is known"),
        ({"Elapsed": "INVALID"}, "elapsed: 'INVALID' is not a duration"),
        ({"ElapsedRaw": "-3"}, "elapsed: '-3' is not a duration"),
        ({"AllocCPUS": "four"}, "alloccpus: 'four' is not an amount"),
        ({"Timelimit": "soon"}, "timelimit: 'soon' is not a duration"),
    ],
)
def test_a_malformed_line_is_counted_and_explained(changes: dict[str, str], reason: str) -> None:
    fine = {"ElapsedRaw": "60"} if "ElapsedRaw" in changes else {}
    log = read({**fine, "JobIDRaw": "1"}, {**fine, **changes}, {**fine, "JobIDRaw": "3"})
    assert log.job.tolist() == [1, 3]
    assert log.left_out == {"malformed": 1}
    (bad,) = log.malformed
    assert bad.number == 3
    assert bad.reason.startswith(reason)


def test_an_end_before_the_start_is_malformed_where_it_shows_the_duration() -> None:
    log = read({}, {"End": "2017-01-01T10:00:00"}, without="Elapsed")
    assert [line.reason for line in log.malformed] == ["end: lies before start"]


def test_a_separator_in_a_name_amid_the_line_is_malformed_and_how_to_avoid_it_is_shown() -> None:
    log = read({}, {"Account": "a|b"})
    (bad,) = log.malformed
    assert bad.reason.startswith("16 fields instead of 15; ask sacct for JobName or Constra")


def test_a_wrong_list_of_fields_says_so() -> None:
    with pytest.raises(LogError, match=r"^jobs.txt:1: 3 fields instead of 26; name the fields"):
        lines("1|2|3")


def test_what_sacct_shows_people_is_refused_by_name() -> None:
    with pytest.raises(LogError, match=r"^jobs.txt:1: has no separator; .* --parsable2"):
        lines("JobID  Account  State", "-----  -------  -----", "1      lab      COMPLETED")


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    good = "1|1000|1000|00:01:00|1"
    log = lines("", "JobID|Start|Submit|Elapsed|NCPUS", good, "", "2", good, "3||", "")
    assert [line.number for line in log.malformed] == [5, 7]


def test_a_hundred_malformed_lines_are_explained_and_all_are_counted() -> None:
    log = read({}, *[{"Submit": "?"}] * 250)
    assert log.left_out == {"malformed": 250}
    assert [line.number for line in log.malformed] == list(range(3, 103))


def test_the_first_malformed_line_is_fatal_if_strict() -> None:
    with pytest.raises(LogError, match=r"^jobs.txt:3: elapsed: '\?' is not a duration; correct"):
        read({}, {"Elapsed": "?"}, {"Elapsed": "!"}, strict=True)


HEADER = "|".join(USUAL)
LINE = "|".join(USUAL.values())


@given(flips=st.lists(st.tuples(st.integers(0, len(LINE) - 1), st.integers(0, 255)), min_size=1))
def test_a_damaged_line_is_read_or_counted_but_never_fatal(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(LINE.encode())
    for place, byte in flips:
        damaged[place] = byte
    text = b"\n".join([HEADER.encode(), LINE.encode(), bytes(damaged), LINE.encode()])
    log = read_sacct("jobs.txt", text)
    expected = 2 + sum(bytes(line) not in {b"", b"\r"} for line in damaged.split(b"\n"))
    assert len(log.job) + sum(log.left_out.values()) == expected
    assert len(log.malformed) == log.left_out.get("malformed", 0)
    assert {log.job.tolist()[0], log.job.tolist()[-1]} == {42}


# -- a real export


def test_the_whole_of_pozidriv() -> None:
    log = read_log(str(trace("xdmod-pozidriv.sacct.gz")), strict=True)
    assert len(log.job) + sum(log.left_out.values()) == 11_704
    assert log.left_out == {"zero_processing_time": 1031}
    assert len(log.labels["user"].names) == 18
    assert len(log.labels["partition"].names) == 7
    assert bool((log.release <= log.start).all())


def test_elapsed_and_end_agree_where_nothing_was_suspended() -> None:
    file = trace("xdmod-pozidriv.sacct.gz")
    place = XDMOD_FIELDS.index("elapsed")
    without = [("" if name == "elapsed" else name) for name in XDMOD_FIELDS]
    text = gzip.decompress(file.read_bytes())
    answer, computed = read_sacct("a", text), read_sacct("b", text, fields=without)
    assert without[place] == ""
    assert answer.processing_time.tolist() == computed.processing_time.tolist()


def test_a_file_may_hold_no_job_at_all(tmp_path: Path) -> None:
    file = tmp_path / "jobs"
    for text in ("|".join(USUAL), '{"jobs": []}'):
        file.write_text(text)
        assert len(read_log(str(file)).job) == 0


def test_the_whole_of_a_university_that_asked_for_few_columns() -> None:
    log = read_log(str(trace("usc-jobs.sacct.xz")))
    assert len(log.job) == 12_962 - 236
    assert (log.limit > 0).all()
    assert len(log.labels["account"].names) == 58
    assert log.left_out == {"zero_processing_time": 236}
