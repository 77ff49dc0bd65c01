import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shapleyprio.fairness.runs import JobRecord, RunKey
from shapleyprio.slurm.layout import Association, Reservation, is_raw
from shapleyprio.slurm.port import Malformed, PendingJob, PendingQueue
from shapleyprio.slurm.releases import TESTED_RELEASES, Release, untested
from shapleyprio.slurm.text import config as text_config
from shapleyprio.slurm.text.accounting import FIELDS, accounting_line, last_ends
from shapleyprio.slurm.text.config import (
    StoredAccount,
    coordinators_line,
    in_force_line,
    stored_account_line,
)
from shapleyprio.slurm.text.queue import factors_line, is_target, refusals, target_of
from shapleyprio.slurm.text.squeue import OWN_SEPARATOR, WaitingRecords
from shapleyprio.slurm.text.values import (
    SEPARATOR,
    UnreadableError,
    amount,
    duration,
    hosts,
    new_delimiter,
    tres,
)

RECORDED = Path(__file__).parent / "recorded"
NAMES = json.loads((RECORDED / TESTED_RELEASES[-1] / "jobs.json").read_text())
"""What the jobs of `tests.slurm.record` are called -> their numbers, the same in all releases."""

every_release = pytest.mark.parametrize("release", TESTED_RELEASES)


def recorded(release: str, name: str) -> str:
    return (RECORDED / release / f"{name}.txt").read_text()


COMPUTED = " 0.00023283064371"
"""What sprio prints last of the recorded jobs, whose priorities are computed; the recordings were
made without this field."""


def lines_of(release: str, name: str) -> list[str]:
    last = COMPUTED if name == "sprio" else ""
    return [line + last for line in recorded(release, name).split("\n") if line]


def all_lines(name: str) -> list[str]:
    return [line for release in TESTED_RELEASES for line in lines_of(release, name)]


def accounted(release: str) -> list[JobRecord]:
    found = [accounting_line(one, "cpu", SEPARATOR) for one in lines_of(release, "sacct")]
    assert not [one for one in found if isinstance(one, Malformed)]
    return [one for one in found if isinstance(one, JobRecord)]


def squeue(*lines: str) -> PendingQueue:
    return WaitingRecords(lines, SEPARATOR).queue()


def waiting(release: str) -> dict[str, PendingJob]:
    """The recorded jobs by their labels, with their site factors."""
    records = WaitingRecords(lines_of(release, "squeue_tasks"), SEPARATOR)
    assert records.has_arrays()
    records.complete(lines_of(release, "squeue_folded"), SEPARATOR)
    factors = [factors_line(one) for one in lines_of(release, "sprio")]
    known = dict(pair for pair in factors if not isinstance(pair, Malformed))
    assert len(known) == len(factors)
    queue = records.queue(known)
    assert not queue.malformed
    return {job.label: job for job in queue.jobs}


OWN = ("partition", "qos", "priority", "nice", "submit", "cpus", "limit", "eligible")


def task(number: int = 33, label: str = "33_2", **changes: str) -> str:
    """A line of squeue's."""
    fields = {
        "account": "org",
        "user": "ann",
        "partition": "all",
        "qos": "normal",
        "priority": "10",
        "nice": "-5",
        "submit": "1000000100",
        "cpus": "4",
        "reason": "Waits for a|b",
        "limit": "1-02:04:00",
        "eligible": "1000000150",
    }
    text = fields | changes
    own = (str(number), label, *(text.pop(name) for name in OWN))
    return SEPARATOR.join((OWN_SEPARATOR.join(own), *text.values(), ""))


def line(**changes: str) -> str:
    fields = dict(
        zip(
            FIELDS,
            [
                *(
                    "COMPLETED",
                    "8",
                    "8",
                    "org",
                    "ann",
                    "all",
                    "1000000100",
                    "1000000200",
                    "1000000260",
                ),
                *("00:00:00", "6", "billing=12,cpu=6,gres/gpu=2,mem=16G,node=2"),
                *("a2,b1", "1000000150", "90", "60"),
            ],
            strict=True,
        )
    )
    return "".join(f"{value}{SEPARATOR}" for value in (fields | changes).values())


def record(weight: str = "cpu", **changes: str) -> JobRecord:
    found = accounting_line(line(**changes), weight, SEPARATOR)
    assert isinstance(found, JobRecord), found
    return found


def test_what_counts_may_be_another_thing_in_a_partition() -> None:
    def counted(partition: str) -> int:
        text = line(Partition=partition)
        found = accounting_line(text, "cpu", SEPARATOR, {"fast": "gres/gpu"})
        assert isinstance(found, JobRecord), found
        return found.processors

    assert (counted("all"), counted("fast")) == (6, 2)


def reason(**changes: str) -> str:
    found = accounting_line(line(**changes), "cpu", SEPARATOR)
    assert isinstance(found, Malformed), found
    assert found.source == "sacct"
    return found.reason


# -- accounting


@every_release
def test_recorded_jobs_read_as_they_were(release: str) -> None:
    by_id = {record.job_id: record for record in accounted(release)}
    assert by_id[NAMES["finished"]].state == "COMPLETED"
    assert by_id[NAMES["finished"]].processors == 2
    assert by_id[NAMES["on_two_nodes"]].processors == 8
    assert by_id[NAMES["on_two_nodes"]].nodes == ("b1", "b2")
    suspended = by_id[NAMES["suspended"]]
    assert (suspended.state, suspended.end) == ("SUSPENDED", None)
    assert suspended.suspended > 3
    assert by_id[NAMES["blocks"]].end is None
    assert by_id[NAMES["blocks"]].nodes == ("b1", "b2")
    assert by_id[NAMES["cancelled"]].state == "CANCELLED"
    assert by_id[NAMES["cancelled"]].nodes == ()
    for name in ("waits", "stepped", "with_site_factor"):
        assert by_id[NAMES[name]].start is None, name
    assert f"{NAMES['differing']}_2" in {record.label for record in by_id.values()}
    for name in ("finished", "on_two_nodes", "suspended", "blocks", "waits", "cancelled"):
        assert by_id[NAMES[name]].eligible == by_id[NAMES[name]].submit, name
    assert by_id[NAMES["finished"]].limit == 10 * 60
    assert by_id[NAMES["waits"]].limit == 12 * 60


@every_release
def test_both_executions_of_a_requeued_job_are_reported(release: str) -> None:
    runs = [r for r in accounted(release) if r.job_id == NAMES["requeued"]]
    assert [r.state for r in runs] == ["REQUEUED", "RUNNING"]
    assert len({(r.submit, r.start) for r in runs}) == len(runs)


@pytest.mark.parametrize(
    ("weight", "total"), [("cpu", 6), ("billing", 12), ("gres/gpu", 2), ("node", 2), ("fpga", 0)]
)
def test_the_weight_says_what_is_counted(weight: str, total: int) -> None:
    assert record(weight).processors == total


def test_without_a_list_of_resources_cpus_are_those_allocated() -> None:
    assert record(AllocTRES="").processors == 6
    assert record("billing", AllocTRES="").processors == 0


def test_a_waiting_job_has_not_started_whatever_its_start_shows() -> None:
    waiting = record(State="PENDING")
    assert (waiting.start, waiting.end, waiting.nodes) == (None, None, ())


def test_a_finished_job_without_an_end_is_unfinished() -> None:
    assert record(End="Unknown").end is None


def test_a_start_that_slurm_forgot_is_its_end_if_the_job_had_nodes() -> None:
    unknown = {"State": "REQUEUED", "Start": "None", "ElapsedRaw": "0"}
    assert record(**unknown, NodeList="None assigned").start is None
    forgotten = record(**unknown)
    assert forgotten.start == forgotten.end is not None
    assert (forgotten.nodes, forgotten.processors) == (record().nodes, record().processors)


def test_a_record_says_when_the_job_was_eligible_and_how_long_it_may_run() -> None:
    assert (record().eligible, record().limit) == (1000000150, 90 * 60)
    later = record(State="PENDING", Start="Unknown", End="Unknown", Eligible="1000009999")
    assert (later.start, later.eligible) == (None, 1000009999)
    for unknown in ("Unknown", "None", "N/A", "", "-5", "2026-01-01T00:00:00", "7258118400"):
        assert record(Eligible=unknown).eligible is None
    for unlimited in ("UNLIMITED", "Partition_Limit", "", "INVALID", "-1", "99999999999"):
        assert record(TimelimitRaw=unlimited).limit is None


def test_a_clock_set_back_between_submission_and_start_is_believed() -> None:
    assert record(Submit="1000000201").submit == 1000000201


def test_a_new_state_is_taken_as_it_is() -> None:
    assert record(State="EVICTED_BY_MOON").state == "EVICTED_BY_MOON"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(("JobIDRaw", text) for text in ("", "x", "-1", "8.batch", "8_1", "٣", "1_0", "9" * 25)),
        *(("JobID", text) for text in ("",)),
        *(("Submit", text) for text in ("Unknown", "None", "", "0", "-5", "2026-01-01T00:00:00")),
        *(("Start", text) for text in ("", "4294967294", "soon")),
        *(("End", text) for text in ("1000000199", "1e9")),
        *(("ElapsedRaw", text) for text in ("-1", "00:01:00", "99999999999")),
        *(("Suspended", text) for text in ("INVALID", "7", "", "1-2")),
        *(("State", text) for text in ("", "Unknown", "by 0", "RUNNING\x00")),
        *(("AllocCPUS", text) for text in ("", "-4", "4K", "six")),
        *(("AllocTRES", text) for text in ("cpu", "cpu=", "=4", "cpu=4;mem=3", "cpu=-4")),
        *(("NodeList", text) for text in ("a[1-", "a[3-1]", "@group", "a!b", "a*", "a,,b", "")),
        *(
            ("NodeList", text)
            for text in ("a[1-999999999]", "a[1-9999]b[1-9999]", "a[1-2]000000000b[1-2]")
        ),
    ],
)
def test_a_wrong_field_is_named(field: str, text: str) -> None:
    assert reason(**{field: text}).startswith(f"{field}: ")


@pytest.mark.parametrize("text", ["", "8", line() + SEPARATOR, line().partition(SEPARATOR)[2]])
def test_a_wrong_number_of_fields_is_malformed(text: str) -> None:
    found = accounting_line(text, "cpu", SEPARATOR)
    assert isinstance(found, Malformed)
    assert found.text == text
    assert "fields instead of 16" in found.reason


def test_a_line_that_goes_on_after_its_last_field_is_malformed() -> None:
    found = accounting_line(f"{line()}b2", "cpu", SEPARATOR)
    assert isinstance(found, Malformed)
    assert found.reason == "'b2' after the last field"


def test_a_line_is_quarantined_alike_whatever_its_delimiter_was() -> None:
    first, second = (
        accounting_line(line(State="?").replace(SEPARATOR, one), "cpu", one)
        for one in (new_delimiter(), new_delimiter())
    )
    assert isinstance(first, Malformed)
    assert first == second
    assert first.text == line(State="?")


def test_the_last_end_of_a_runs_steps_is_that_of_its_work() -> None:
    rows = [
        ("1", 5, 6, 6),
        ("1.batch", 5, 6, 36),
        ("1.extern", 5, 6, 7),
        ("2", 5, 7, 9),  # requeued: both executions have their steps below them
        ("2.batch", 5, 7, 39),
        ("2", 40, 41, 50),
        ("2.batch", 40, 41, 50),
        ("2.0", 42, 42, 49),
        ("3", 5, 6, 9),  # without steps
        ("4", 5, "Unknown", "Unknown"),
        ("5", 5, 6, 9),  # a step that goes on
        ("5.batch", 5, 6, 9),
        ("5.0", 5, 6, "Unknown"),
        ("6", 5, "None", 8),  # it ended before slurmdbd knew of its start
        ("6.batch", 5, 8, 38),
        ("x", 5, 6, 9),
        ("x.batch", 5, 6, 99),
    ]
    lines = ["".join(f"{field}#" for field in row) for row in rows]
    assert last_ends([*lines, "1.batch#5#6#99"], "#") == {
        RunKey(1, 5, 6): 36,
        RunKey(2, 5, 7): 39,
        RunKey(2, 40, 41): 50,
        RunKey(6, 5, 8): 38,
    }


def test_no_two_calls_have_the_same_delimiter() -> None:
    delimiters = {new_delimiter() for _ in range(100)}
    assert len(delimiters) == 100
    assert {len(one) for one in delimiters} == {8}


def test_a_separator_of_other_tools_in_a_name_does_no_harm() -> None:
    assert record(Account="a|b, c").account == "a|b, c"


# -- numbers, times, resources, hosts


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:00:00", 0), ("01:02:03", 3723), ("2-00:00:01", 172801), ("00:06.500", 6)],
)
def test_durations(text: str, seconds: int) -> None:
    assert duration("x", text) == seconds


def test_amounts() -> None:
    assert [amount("x", text) for text in ("4", "4.5", "4K", "1.5K", "0")] == [4, 4, 4096, 1536, 0]
    assert tres("x", "cpu=4,mem=16G,gres/gpu:a100=2,billing=4.5,energy=0") == {
        "cpu": 4, "mem": 16384, "gres/gpu:a100": 2, "billing": 4, "energy": 0,
    }  # fmt: skip
    assert tres("x", "mem=4000M")["mem"] == tres("x", "mem=4000")["mem"] == 4000


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a1", ("a1",)),
        ("a[1-3],b7", ("a1", "a2", "a3", "b7")),
        ("n[08-10]", ("n08", "n09", "n10")),
        ("r[1-2]c[1-2]", ("r1c1", "r1c2", "r2c1", "r2c2")),
        ("gpu-node.site[1,3]-ib", ("gpu-node.site1-ib", "gpu-node.site3-ib")),
    ],
)
def test_host_lists(text: str, names: tuple[str, ...]) -> None:
    assert hosts("NodeList", text) == names


def test_a_whole_cluster_is_no_absurd_host_list() -> None:
    assert len(hosts("NodeList", "n[00001-20000]")) == 20000


# -- pending jobs


@every_release
def test_recorded_waiting_jobs_read_as_they_were(release: str) -> None:
    found = waiting(release)
    job = found[str(NAMES["waits"])]
    assert (job.account, job.user, job.partition, job.qos) == ("particles", "root", "pb", "normal")
    assert (job.nice, job.site_factor, job.processors) == (5, 0, 1)
    assert (job.priority, job.association) == (1_300_000 - 5, 300_000)
    assert found[str(NAMES["held"])].reason == "JobHeldUser"
    assert (found[str(NAMES["held"])].priority, found[str(NAMES["held"])].site_factor) == (0, None)
    assert found[str(NAMES["depends"])].reason == "Dependency"
    assert found[str(NAMES["later"])].reason == "BeginTime"
    for name in ("held", "depends"):
        assert found[str(NAMES[name])].eligible is None, name
    later = found[str(NAMES["later"])]
    assert later.eligible is not None
    assert later.submit + 3600 <= later.eligible
    assert job.eligible is not None
    assert job.eligible >= job.submit
    array = next(job for job in found.values() if job.job_id == NAMES["stepped"])
    assert (array.tasks, array.at_once) == (14, 2)
    assert not [job for job in found.values() if job.at_once and job is not array]
    assert (job.limit, array.limit) == (12 * 60, 12 * 60)
    assert found[str(NAMES["in_two_partitions"])].partition == "pa,pb"
    assert found[str(NAMES["with_site_factor"])].site_factor == 13
    het = NAMES["heterogeneous"]
    assert (found[f"{het}+0"].job_id, found[f"{het}+1"].job_id) == (het, het + 1)
    assert found[f"{het}+0"].processors == 2


@every_release
def test_tasks_that_differ_from_their_array_are_distinguished(release: str) -> None:
    found = waiting(release)
    array, held = NAMES["differing"], NAMES["held_task"]
    answer = {
        job.target: (job.nice, job.site_factor)
        for job in found.values()
        if job.label.startswith((f"{array}_", f"{held}_"))
    }
    assert answer == {
        f"{array}_[0-1,3,6-9]": (0, 33),
        f"{array}_2": (-7, 0),
        f"{array}_4": (-9, 0),
        f"{array}_5": (-9, 0),
        f"{held}_[0-2,4-5]": (0, 0),
        f"{held}_3": (0, None),
    }


@every_release
def test_the_last_task_of_a_stepped_array_is_not_forgotten(release: str) -> None:
    """`squeue --array` of all releases does."""
    targets = {job.target for job in waiting(release).values()}
    stepped = ",".join(map(str, range(1, 41, 3)))
    assert f"{NAMES['stepped']}_[{stepped}]" in targets
    rest = ",".join(map(str, range(3, 61, 3)))
    array = NAMES["stepped_and_split"]
    assert {f"{array}_[{rest}]", f"{array}_0"} <= targets


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("1:00", 60),
        ("2:10:00", 7800),
        ("1-02:04:00", 93840),
        ("UNLIMITED", None),
        ("NOT_SET", None),
        ("INVALID", None),
    ],
)
def test_a_waiting_job_shows_its_limit(text: str, limit: int | None) -> None:
    (job,) = squeue(task(limit=text)).jobs
    assert job.limit == limit


@pytest.mark.parametrize(
    ("reason", "alone"),
    [
        *((reason, True) for reason in ("Priority", "Resources", "None")),
        *(
            (reason, False)
            for reason in (
                *("JobHeldUser", "JobHeldAdmin", "launch failed requeued held", "Dependency"),
                *("DependencyNeverSatisfied", "BeginTime", "JobArrayTaskLimit", "Licenses"),
                *("QOSMaxJobsPerUserLimit", "AssocGrpCpuLimit", "Reservation", "PartitionConfig"),
                *("PartitionNodeLimit", "PartitionTimeLimit", "ReqNodeNotAvail", "none", ""),
                "what a later release says",
            )
        ),
    ],
)
def test_nothing_but_its_turn_is_missing_for_few_reasons_alone(reason: str, alone: bool) -> None:
    (job,) = squeue(task(reason=reason)).jobs
    assert job.waits_for_its_turn is alone


@pytest.mark.parametrize(
    ("text", "second"), [("1000000150", 1000000150), ("N/A", None), ("7258118400", None)]
)
def test_a_waiting_job_shows_since_when_it_is_eligible(text: str, second: int | None) -> None:
    (job,) = squeue(task(eligible=text)).jobs
    assert job.eligible == second


def test_a_record_stands_for_as_many_tasks_as_it_lists() -> None:
    lines = [task(33, "33_1"), task(33, "33_2"), task(40, "33_6"), task(41, "41")]
    assert [job.tasks for job in squeue(*lines).jobs] == [2, 1, 1]


def test_a_task_that_another_record_has_is_not_added_to_one() -> None:
    lines = [task(33, "33_0"), task(33, "33_2"), task(33, "33_4"), task(40, "33_6")]
    records = WaitingRecords(lines, SEPARATOR)
    assert records.has_arrays()
    records.complete([f"33{SEPARATOR}33_[0,2,4,6]{SEPARATOR}"], SEPARATOR)
    targets = [job.target for job in records.queue().jobs]
    assert targets == ["33_[0,2,4]", "33_6"]


def test_how_many_tasks_may_run_at_once_stands_on_the_line_of_the_array() -> None:
    lines = [task(33, "33_0"), task(33, "33_1"), task(40, "40"), task(41, "41_3")]
    records = WaitingRecords(lines, SEPARATOR)
    folded = ("33_[0-1%1]", "40", "41_[3%7]")
    records.complete(
        [f"{label.partition('_')[0]}{SEPARATOR}{label}{SEPARATOR}" for label in folded], SEPARATOR
    )
    assert [job.at_once for job in records.queue().jobs] == [1, None, None]


def test_a_hundred_thousand_tasks_of_a_record_are_one_target() -> None:
    lines = (task(33, f"33_{number}") for number in range(100_000))
    records = WaitingRecords(lines, SEPARATOR)
    (job,) = records.queue().jobs
    assert (job.target, job.label) == ("33_[0-99999]",) * 2


@pytest.mark.parametrize(
    "other",
    [
        task(33, "33_1"),
        task(33, "33_2", nice="-6"),
        task(33, "33_2", account="gamma"),
        task(33, "34_2"),
        task(33, "33"),
    ],
)
def test_a_record_that_is_reported_twice_is_not_believed(other: str) -> None:
    found = squeue(task(33, "33_1"), other, task(36, "36"))
    assert [job.job_id for job in found.jobs] == [36]
    reasons = {line.reason for line in found.malformed}
    assert reasons <= {"listed in different ways", "listed more than once"}
    assert found.malformed[0].text == task(33, "33_1")


def test_what_a_user_puts_into_an_account_forges_no_line() -> None:
    delimiter = new_delimiter()
    account = f"x\n{task(8, '8', account='gamma')}\n{task(8, '8').partition(SEPARATOR)[0]}"
    real = task(33, "33", account="x\0").replace(SEPARATOR, delimiter)
    victim = task(8, "8").replace(SEPARATOR, delimiter)
    printed = "\n".join([victim, real.replace("x\0", account)])
    found = WaitingRecords(printed.split("\n"), delimiter).queue()
    assert [(job.job_id, job.account) for job in found.jobs] == [(8, "org")]
    assert len(found.malformed) == 3


@pytest.mark.parametrize(
    ("label", "target"),
    [
        ("33", "33"),
        ("33_2", "33_2"),
        ("33_[4-9%1]", "33_[4-9]"),
        ("33_[1,3,7-9]", "33_[1,3,7-9]"),
        ("23_[1-16:3%2]", "23_[1,4,7,10,13,16]"),
        ("6_[0-4:2,9]", "6_[0,2,4,9]"),
        ("34+1", "34+1"),
    ],
)
def test_a_target_means_exactly_the_tasks_of_the_line(label: str, target: str) -> None:
    assert target_of(label) == target
    assert is_target(target)


@pytest.mark.parametrize(
    "label",
    [
        *("", "x", "33_", "33_[]", "33_[1-...]", "33_[1,2...", "33_[3-1]", "33_[1-9:0]", "33_[1,]"),
        *("33_[1-9:]", "33_[1-99999999]", "33+", "33;34"),
    ],
)
def test_a_label_that_is_cut_short_or_no_label_is_malformed(label: str) -> None:
    with pytest.raises(UnreadableError):
        target_of(label)


@pytest.mark.parametrize("target", ["", "x", "3,4", "3_[1", "3_4_5", "3_[1-2%3]", "3 SiteFactor=1"])
def test_what_names_no_job_never_reaches_a_list_of_jobs(target: str) -> None:
    assert not is_target(target)


@every_release
def test_recorded_refusals_are_reported_by_target(release: str) -> None:
    array = f"{NAMES['differing']}_[8-11]"
    targets = [str(NAMES["finished"]), "4000000", array, str(NAMES["waits"])]
    assert refusals(recorded(release, "scontrol_update_refused"), targets) == {
        str(NAMES["finished"]): "Job has already finished",
        "4000000": "Invalid job id specified",
        array: "Invalid job id specified",
    }


def test_refusals_are_reported_by_target() -> None:
    complaints = """\
Invalid job id specified for job 999
9999_3-4: Invalid job id specified
9_1,3,7: No error
9_2,4-6: Job has already finished
Access/permission denied for job 7+1
Invalid job id specified for job 6_[1-897:7]
"""
    targets = ["3", "999", "9999_[3-4]", "9_[1-7]", "9_8", "9_1", "7+0", "7+1", "6_[1,8]", "90"]
    assert refusals(complaints, targets) == {
        "999": "Invalid job id specified",
        "9999_[3-4]": "Invalid job id specified",
        "9_[1-7]": "Job has already finished",
        "7+1": "Access/permission denied",
        "6_[1,8]": "Invalid job id specified",
    }


@given(st.text(), st.lists(st.from_regex(r"[0-9]{1,4}(_[0-9]|_\[1-3,5\])?", fullmatch=True)))
def test_any_complaint_is_survived(complaints: str, targets: list[str]) -> None:
    assert set(refusals(complaints, targets)) <= set(targets)


# -- the controller and its configuration


@every_release
def test_the_controllers_clock_and_backlog(release: str) -> None:
    found = text_config.controller(recorded(release, "sdiag"))
    assert not isinstance(found, Malformed)
    assert found.time > max(record.submit for record in accounted(release))
    assert found.accounting_backlog == 0
    assert found.submitted > len(NAMES)
    down = text_config.controller(recorded(release, "sdiag_slurmdbd_down"))
    assert not isinstance(down, Malformed)
    assert down.submitted == found.submitted + 1
    assert isinstance(text_config.controller("sdiag output at never"), Malformed)


@every_release
def test_ping_distinguishes_up_from_down(release: str) -> None:
    assert text_config.is_up(recorded(release, "scontrol_ping_up"))
    assert not text_config.is_up(recorded(release, "scontrol_ping_down"))


@every_release
def test_recorded_priority_settings(release: str) -> None:
    config = text_config.configuration(recorded(release, "scontrol_config"))
    settings = text_config.priority_settings(config)
    assert not isinstance(settings, Malformed)
    assert settings.type == "priority/multifactor"
    assert settings.weights["Partition"] == 1_000_000
    assert settings.weights["QOS"] == 1
    assert (settings.calc_period_seconds, settings.max_age_seconds) == (60, 86400)
    assert is_raw(settings.flags, "NO_NORMAL_QOS")
    assert settings.site_factor_plugin == ""
    assert config["ClusterName"] == "testbed"
    submission = text_config.submission_settings(config)
    assert (submission.plugins, submission.slurm_user) == (frozenset(), 0)
    assert submission.controller_hosts in {("vm",), ("matrix",)}
    assert text_config.enforces_accounts(config)
    assert text_config.kill_wait(config) == 2
    assert set(text_config.daemon_hosts(config)) == {"127.0.0.1", "localhost"}


def test_what_looks_at_new_jobs_is_read_in_every_spelling() -> None:
    config = {
        "JobSubmitPlugins": "job_submit/throttle,lua",
        "SlurmctldHost[0]": "head1(10.0.0.1)",
        "SlurmctldHost[1]": "head2",
        "SlurmUser": "slurm(64030)",
    }
    submission = text_config.submission_settings(config)
    assert submission.plugins == {"throttle", "lua"}
    assert submission.controller_hosts == ("head1", "head2")
    assert submission.slurm_user == 64030


@every_release
def test_the_configuration_and_the_commands_show_their_release(release: str) -> None:
    config = text_config.configuration(recorded(release, "scontrol_config"))
    for text in (config["SLURM_VERSION"], recorded(release, "version")):
        found = Release.parse(text)
        assert found is not None
        assert found.series == release
    assert untested(config["SLURM_VERSION"]) is None


def test_weights_of_resources_are_listed_one_by_one() -> None:
    settings = text_config.priority_settings(
        {"PriorityWeightTRES": "cpu=10,gres/gpu=20", "PriorityFlags": "NO_NORMAL_QOS,MAX_TRES"}
    )
    assert not isinstance(settings, Malformed)
    assert settings.weights == {"TRES:cpu": 10, "TRES:gres/gpu": 20}
    assert settings.flags == {"NO_NORMAL_QOS", "MAX_TRES"}


@every_release
def test_recorded_nodes_and_partitions(release: str) -> None:
    nodes = [text_config.node_line(one) for one in lines_of(release, "scontrol_nodes")]
    names = [node.name for node in nodes if not isinstance(node, Malformed)]
    assert names == ["a1", "a2", "b1", "b2"]
    first = nodes[0]
    assert not isinstance(first, Malformed)
    assert first.tres == {"cpu": 4, "mem": 4000, "billing": 4}
    partition = text_config.partition_line(lines_of(release, "scontrol_partitions")[0])
    assert not isinstance(partition, Malformed)
    assert (partition.name, partition.nodes) == ("pa", ("a1", "a2"))
    assert partition.allow_accounts == ()
    assert (partition.longest, partition.preempts) == (None, False)


@pytest.mark.parametrize(
    ("text", "longest"), [("UNLIMITED", None), ("00:20:00", 1200), ("2-12:00:00", 216_000)]
)
def test_a_partition_says_how_long_its_jobs_may_run_and_whether_they_are_preempted(
    text: str, longest: int | None
) -> None:
    line = f"PartitionName=p MaxTime={text} PreemptMode="
    for mode, preempts in (("OFF", False), ("REQUEUE", True), ("GANG,SUSPEND", True)):
        found = text_config.partition_line(line + mode)
        assert not isinstance(found, Malformed)
        assert (found.longest, found.preempts) == (longest, preempts)


def test_what_an_admin_writes_as_a_reason_is_not_believed() -> None:
    node = text_config.node_line("NodeName=a CfgTRES=cpu=4 Reason=NodeName=b CfgTRES=cpu=9 [root]")
    assert not isinstance(node, Malformed)
    assert (node.name, node.tres) == ("a", {"cpu": 4})


@pytest.mark.parametrize(
    ("state", "closed"),
    [
        *((state, True) for state in ("DOWN", "DOWN*", "DOWN+NOT_RESPONDING", "DOWN*+CLOUD")),
        *((state, True) for state in ("IDLE+DRAIN", "MIXED+DRAIN", "ALLOCATED*+DRAIN")),
        *((state, True) for state in ("DOWN+DRAIN+INVALID_REG", "IDLE+FAIL", "FUTURE")),
        *((state, True) for state in ("IDLE+MAINTENANCE+RESERVED", "MAINT")),
        *((state, False) for state in ("IDLE", "MIXED", "ALLOCATED", "IDLE+PLANNED", "IDLE*")),
        *((state, False) for state in ("IDLE+CLOUD+POWERED_DOWN", "IDLE~", "IDLE+POWERING_DOWN")),
        *((state, False) for state in ("MIXED+CLOUD+POWERING_UP", "IDLE+NOT_RESPONDING")),
        *((state, False) for state in ("UNKNOWN", "IDLE+RESERVED", "IDLE+REBOOT_REQUESTED", "")),
    ],
)
def test_a_node_is_closed_where_slurm_starts_nothing_until_it_is_brought_back(
    state: str, closed: bool
) -> None:
    node = text_config.node_line(
        f"NodeName=a State={state} CfgTRES=cpu=8,billing=16,gres/gpu=2"
        " AllocTRES=cpu=2,gres/gpu=1 Reason=State=DOWN"
    )
    assert not isinstance(node, Malformed)
    assert node.closed == closed
    found = [node.usable(name) for name in ("cpu", "billing", "gres/gpu", "none")]
    assert found == ([2, 4, 1, 0] if closed else [8, 16, 2, 0])


def test_a_partition_may_be_for_some_accounts_only_and_without_nodes() -> None:
    found = text_config.partition_line("PartitionName=p AllowAccounts=x,y Nodes=(null) TRES=(null)")
    assert not isinstance(found, Malformed)
    assert (found.nodes, found.allow_accounts) == ((), ("x", "y"))


def test_a_reservation_says_when_it_has_which_whole_nodes() -> None:
    line = "ReservationName=works StartTime=90 EndTime=150 Nodes=a[1-2] Flags=MAINT,SPEC_NODES"
    found = text_config.reservation_line(line)
    works = Reservation(name="works", begin=90, end=150, nodes=("a1", "a2"))
    assert found == works
    for other in (f"{line} NodeName=a1 CoreIDs=0-1", line.replace("a[1-2]", "(null)")):
        assert text_config.reservation_line(other) == replace(works, nodes=())
    assert isinstance(text_config.reservation_line(line.replace("=90", "=Unknown")), Malformed)


@every_release
def test_recorded_qos(release: str) -> None:
    lines = lines_of(release, "sacctmgr_qos")
    assert [text_config.qos_line(one) for one in lines] == [("normal", 0), ("high", 100)]
    assert isinstance(text_config.qos_line("normal"), Malformed)


@every_release
def test_recorded_priorities_of_associations_read_as_they_were_set(release: str) -> None:
    stored = [stored_account_line(one) for one in lines_of(release, "sacctmgr_accounts")]
    assert stored == [
        StoredAccount(1, 0, "root", None),
        StoredAccount(4, 1, "biology", None),
        StoredAccount(3, 1, "physics", 300_000),
        StoredAccount(5, 3, "particles", 300_000),
    ]
    found = [in_force_line(one) for one in lines_of(release, "scontrol_assoc_mgr")]
    in_force = dict(one for one in found if isinstance(one, tuple))
    assert in_force.pop(Association("biology", "root")) == 77
    assert in_force.pop(Association("biology")) == 0
    assert in_force == {
        Association(account, user): 300_000
        for account in ("physics", "particles")
        for user in ("", "root")
    }
    coordinators = [coordinators_line(one) for one in lines_of(release, "sacctmgr_coordinators")]
    assert ("biology", ("root",)) in coordinators
    assert ("physics", ()) in coordinators
    config = text_config.configuration(recorded(release, "sacctmgr_configuration"))
    assert config.get("DisableCoordDBD") == (None if release == "22.05" else "no")


# -- no line, however broken, does harm


def squeue_line(text: str) -> PendingJob | Malformed:
    queue = squeue(text)
    return queue.jobs[0] if queue.jobs else queue.malformed[0]


READERS: dict[str, tuple[Any, list[str]]] = {
    "sacct": (lambda text: accounting_line(text, "cpu", SEPARATOR), all_lines("sacct")),
    "squeue": (squeue_line, all_lines("squeue_tasks")),
    "sprio": (factors_line, all_lines("sprio")),
    "node": (text_config.node_line, all_lines("scontrol_nodes")),
    "reservation": (
        text_config.reservation_line,
        ["ReservationName=works StartTime=90 EndTime=150 Nodes=a[1-2] Flags=MAINT"],
    ),
    "partition": (text_config.partition_line, all_lines("scontrol_partitions")),
    "qos": (text_config.qos_line, all_lines("sacctmgr_qos")),
    "account": (stored_account_line, all_lines("sacctmgr_accounts")),
    "coordinators": (coordinators_line, all_lines("sacctmgr_coordinators")),
    "in force": (in_force_line, all_lines("scontrol_assoc_mgr")),
}


@st.composite
def broken(draw: st.DrawFn, lines: list[str]) -> str:
    text = draw(st.sampled_from(lines))
    pieces = re.split(r"([\x1f|= ,])", text)
    for _ in range(draw(st.integers(1, 4))):
        i, j = (draw(st.integers(0, len(pieces) - 1)) for _ in range(2))
        match draw(st.sampled_from(["drop", "double", "swap", "noise", "number"])):
            case "drop":
                pieces[i] = ""
            case "double":
                pieces[i] *= 2
            case "swap":
                pieces[i], pieces[j] = pieces[j], pieces[i]
            case "noise":
                noise = draw(st.binary(max_size=12)).decode(errors="replace")
                pieces[i] = noise.replace("\n", "")  # it is one line
            case _:
                pieces[i] = draw(
                    st.from_regex(r"-?[0-9]{1,22}|[a-z]\[[0-9,:%-]+\]", fullmatch=True)
                )
    text = "".join(pieces)
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@pytest.mark.parametrize("source", READERS)
@given(data=st.data())
def test_a_broken_line_is_read_or_malformed_and_spoils_no_other(
    source: str, data: st.DataObject
) -> None:
    read, lines = READERS[source]
    neighbors = [read(one) for one in lines]
    for _ in range(5):
        text = data.draw(broken(lines))
        found = read(text)
        if isinstance(found, Malformed):
            assert found.reason
            assert found.text == text
        if isinstance(found, JobRecord):
            assert found.start is None or found.end is None or found.end >= found.start
            assert min(found.job_id, found.submit) > 0
            assert found.processors >= 0
        if isinstance(found, PendingJob):
            assert is_target(found.target)
    assert [read(one) for one in lines] == neighbors


@given(st.text())
@example("\x1f" * 16)
@example("\x1f" * 12)
@example("NodeName= CfgTRES==")
def test_any_text_is_survived(text: str) -> None:
    for read, _ in READERS.values():
        read(text)
    text_config.priority_settings(text_config.configuration(text))
    text_config.controller(text)
    untested(text)


@given(st.lists(st.text("389_[]-,:+ |\x1f\n", max_size=30)), st.data())
def test_any_queue_is_survived(strange: list[str], data: st.DataObject) -> None:
    lines = [*strange, *data.draw(st.lists(st.sampled_from(all_lines("squeue_tasks"))))]
    records = WaitingRecords(data.draw(st.permutations(lines)), SEPARATOR)
    records.complete(
        data.draw(st.permutations([*strange, f"8{SEPARATOR}8_[0-9]{SEPARATOR}"])), SEPARATOR
    )
    numbers = [job.job_id for job in records.queue().jobs]
    assert len(set(numbers)) == len(numbers)
