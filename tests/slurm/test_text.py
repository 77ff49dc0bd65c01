import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm import text_config
from shapleyprio.slurm.port import Malformed, PendingJob
from shapleyprio.slurm.text import SEPARATOR, UnreadableError, amount, duration, hosts, tres
from shapleyprio.slurm.text_accounting import FIELDS, accounting_line, equal_parts
from shapleyprio.slurm.text_queue import (
    is_target,
    pending_line,
    refusals,
    site_factor_line,
    target_of,
    with_site_factors,
)

RECORDED = Path(__file__).parent / "recorded" / "22.05"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def accounting_lines() -> list[str]:
    """The recorded lines, which also hold the cluster and the job's name."""
    lines = recorded("sacct.txt").split("\n") + recorded("sacct_suspended.txt").split("\n")
    split = [line.split(SEPARATOR) for line in lines if line]
    return [SEPARATOR.join(fields[:2] + fields[3:15]) for fields in split]


def queue_lines() -> list[str]:
    """The recorded lines in the order of fields we ask for."""
    lines = [line.split("|") for line in recorded("squeue_pending.txt").split("\n") if line]
    ours = (3, 0, 6, 10, 11, 7, 4, 5, 9, 12, 8)
    return [SEPARATOR.join(fields[i] for i in ours) for fields in lines]


def line(**changes: str) -> str:
    fields = dict(
        zip(
            FIELDS,
            [
                *("8", "8", "org", "ann", "all", "1000000100", "1000000200", "1000000260", "60"),
                *("00:00:00", "COMPLETED", "6", "billing=12,cpu=6,gres/gpu=2,mem=16G,node=2"),
                "a2,b1",
            ],
            strict=True,
        )
    )
    return SEPARATOR.join((fields | changes).values())


def record(weight: str = "cpu", **changes: str) -> JobRecord:
    found = accounting_line(line(**changes), weight)
    assert isinstance(found, JobRecord), found
    return found


def reason(**changes: str) -> str:
    found = accounting_line(line(**changes), "cpu")
    assert isinstance(found, Malformed), found
    assert found.source == "sacct"
    return found.reason


# -- accounting


def test_every_recorded_accounting_line_is_read() -> None:
    lines = accounting_lines()
    assert len(lines) > 40
    found = [accounting_line(one, "cpu") for one in lines]
    assert [one for one in found if isinstance(one, Malformed)] == []


def test_recorded_jobs_read_as_they_were() -> None:
    records = [accounting_line(one, "cpu") for one in accounting_lines()]
    by_label = {r.label: r for r in records if isinstance(r, JobRecord)}
    assert by_label["8"].processors == {"a2": 3, "b1": 3}
    assert by_label["12"].state == "SUSPENDED"
    assert by_label["12"].suspended == 6
    assert by_label["13"].state == "CANCELLED"
    assert by_label["16"].end is None
    assert by_label["16"].processors == {"a1": 4}
    assert by_label["20"].processors == {}  # cancelled while it waited
    assert by_label["21_[1,3]"].start is None
    assert by_label["6+1"].job_id == 7
    assert (by_label["24"].start, by_label["24"].end) == (None, None)


def test_both_executions_of_a_requeued_job_are_told() -> None:
    records = [accounting_line(one, "cpu") for one in accounting_lines()]
    runs = [r for r in records if isinstance(r, JobRecord) and r.label == "14"]
    assert [r.state for r in runs][:2] == ["REQUEUED", "CANCELLED"]
    assert len({(r.submit, r.start) for r in runs}) == len(runs)


@pytest.mark.parametrize(
    ("weight", "total"), [("cpu", 6), ("billing", 12), ("gres/gpu", 2), ("node", 2), ("fpga", 0)]
)
def test_the_weight_says_what_is_counted(weight: str, total: int) -> None:
    assert sum(record(weight).processors.values()) == total


def test_without_a_list_of_resources_cpus_are_those_allocated() -> None:
    assert record(AllocTRES="").processors == {"a2": 3, "b1": 3}
    assert record("billing", AllocTRES="").processors == {}


def test_what_does_not_come_out_even_goes_to_the_first_nodes() -> None:
    assert equal_parts(8, ("a", "b", "c")) == {"a": 3, "b": 3, "c": 2}
    assert equal_parts(2, ("a", "b", "c")) == {"a": 1, "b": 1}


@given(st.integers(0, 10**6), st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_splitting_over_nodes_loses_nothing(total: int, nodes: list[str]) -> None:
    parts = equal_parts(total, tuple(nodes))
    assert sum(parts.values()) == total
    assert all(parts.values())


def test_a_waiting_job_has_not_started_whatever_its_start_shows() -> None:
    waiting = record(State="PENDING")
    assert (waiting.start, waiting.end, waiting.processors) == (None, None, {})


def test_a_finished_job_without_an_end_is_unfinished() -> None:
    assert record(End="Unknown").end is None


def test_a_requeued_job_may_never_have_started() -> None:
    assert record(State="REQUEUED", Start="None", ElapsedRaw="0").start is None


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


@pytest.mark.parametrize("text", ["", "8", line() + SEPARATOR, line().rpartition(SEPARATOR)[0]])
def test_a_wrong_number_of_fields_is_malformed(text: str) -> None:
    found = accounting_line(text, "cpu")
    assert isinstance(found, Malformed)
    assert found.text == text
    assert "fields instead of 14" in found.reason


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


# -- waiting jobs


def test_every_recorded_queue_line_is_read() -> None:
    found = [pending_line(one) for one in queue_lines()]
    assert [one for one in found if isinstance(one, Malformed)] == []
    by_label = {job.label: job for job in found if isinstance(job, PendingJob)}
    assert by_label["1"].nice == -5
    assert by_label["31"].partition == "pa,pb"
    assert by_label["31"].reason.startswith("Nodes required for job are DOWN, DRAINED")
    assert by_label["34+1"].job_id == 35
    assert by_label["30"].processors == 16


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


def test_site_factors_join_by_slurms_own_number() -> None:
    jobs = [pending_line(one) for one in queue_lines()]
    lines = [one.replace("|", SEPARATOR) for one in recorded("sprio.txt").split("\n") if one]
    pairs = [site_factor_line(one) for one in lines]
    factors = dict(pair for pair in pairs if not isinstance(pair, Malformed))
    assert len(factors) == len(set(lines))  # a job in two partitions is told twice
    joined = with_site_factors(jobs, factors)
    by_label = {job.label: job.site_factor for job in joined if isinstance(job, PendingJob)}
    assert by_label["24"] == 13
    assert by_label["23_[1-40:3%2]"] == 0
    assert by_label["26"] is None  # it depends on another job


@pytest.mark.parametrize("target", ["", "x", "3,4", "3_[1", "3_4_5", "3_[1-2%3]", "3 SiteFactor=1"])
def test_what_names_no_job_never_reaches_a_list_of_jobs(target: str) -> None:
    assert not is_target(target)


def test_refusals_are_told_by_target() -> None:
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


def test_the_controllers_clock_and_backlog() -> None:
    found = text_config.controller(recorded("sdiag.txt"))
    assert not isinstance(found, Malformed)
    assert (found.time, found.accounting_backlog, found.submitted) == (1795245525, 0, 62)
    assert isinstance(text_config.controller("sdiag output at never"), Malformed)


def test_ping_tells_up_from_down() -> None:
    assert text_config.is_up(recorded("scontrol_ping_up.txt"))
    assert not text_config.is_up(recorded("scontrol_ping_down.txt"))


def test_recorded_priority_settings() -> None:
    config = text_config.configuration(recorded("scontrol_config.txt"))
    settings = text_config.priority_settings(config)
    assert not isinstance(settings, Malformed)
    assert settings.type == "priority/multifactor"
    assert settings.weights["Age"] == 1000
    assert settings.weights["QOS"] == 1000
    assert (settings.calc_period_seconds, settings.max_age_seconds) == (60, 86400)
    assert settings.flags == frozenset()
    assert settings.site_factor_plugin == ""
    assert config["ClusterName"] == "testbed"
    assert text_config.user_number(config["SlurmUser"]) == 0


def test_weights_of_resources_are_told_one_by_one() -> None:
    settings = text_config.priority_settings(
        {"PriorityWeightTRES": "cpu=10,gres/gpu=20", "PriorityFlags": "NO_NORMAL_QOS,MAX_TRES"}
    )
    assert not isinstance(settings, Malformed)
    assert settings.weights == {"TRES:cpu": 10, "TRES:gres/gpu": 20}
    assert settings.flags == {"NO_NORMAL_QOS", "MAX_TRES"}


def test_recorded_nodes_and_partitions() -> None:
    nodes = [
        text_config.node_line(one) for one in recorded("scontrol_nodes.txt").split("\n") if one
    ]
    names = [node.name for node in nodes if not isinstance(node, Malformed)]
    assert names[:2] == ["a1", "a2"]
    first = nodes[0]
    assert not isinstance(first, Malformed)
    assert first.tres == {"cpu": 4, "mem": 4000, "billing": 4}
    lines = [one for one in recorded("scontrol_partitions.txt").split("\n") if one]
    partition = text_config.partition_line(lines[0])
    assert not isinstance(partition, Malformed)
    assert (partition.name, partition.nodes) == ("pa", ("a1", "a2"))
    assert partition.allow_accounts == ()


def test_what_an_admin_writes_as_a_reason_is_not_believed() -> None:
    node = text_config.node_line("NodeName=a CfgTRES=cpu=4 Reason=NodeName=b CfgTRES=cpu=9 [root]")
    assert not isinstance(node, Malformed)
    assert (node.name, node.tres) == ("a", {"cpu": 4})


def test_a_partition_may_be_for_some_accounts_only_and_without_nodes() -> None:
    found = text_config.partition_line("PartitionName=p AllowAccounts=x,y Nodes=(null) TRES=(null)")
    assert not isinstance(found, Malformed)
    assert (found.nodes, found.allow_accounts) == ((), ("x", "y"))


def test_accounts_know_their_parents() -> None:
    lines = ["root||", "root||root", "org1|root|", "org1||ann", "sub|org1|"]
    found = [text_config.association_line(one) for one in lines]
    assert found == [None, None, ("org1", None), None, ("sub", "org1")]


def test_recorded_qos() -> None:
    lines = [one for one in recorded("sacctmgr_qos_fields.txt").split("\n") if one]
    assert [text_config.qos_line(one) for one in lines] == [("normal", 0), ("high", 100)]
    assert isinstance(text_config.qos_line("normal"), Malformed)


# -- no line, however broken, does harm

READERS: dict[str, tuple[Any, list[str]]] = {
    "sacct": (lambda text: accounting_line(text, "cpu"), accounting_lines()),
    "squeue": (pending_line, queue_lines()),
    "sprio": (site_factor_line, recorded("sprio.txt").replace("|", SEPARATOR).split("\n")),
    "node": (text_config.node_line, recorded("scontrol_nodes.txt").split("\n")),
    "partition": (text_config.partition_line, recorded("scontrol_partitions.txt").split("\n")),
    "assoc": (text_config.association_line, recorded("sacctmgr_assoc_fields.txt").split("\n")),
    "qos": (text_config.qos_line, recorded("sacctmgr_qos_fields.txt").split("\n")),
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
                pieces[i] = draw(st.binary(max_size=12)).decode(errors="replace")
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
    neighbours = [read(one) for one in lines]
    for _ in range(5):
        text = data.draw(broken(lines))
        found = read(text)
        if isinstance(found, Malformed):
            assert found.reason
            assert found.text == text
        if isinstance(found, JobRecord):
            assert found.start is None or found.end is None or found.end >= found.start
            assert min(found.job_id, found.submit) > 0
            assert all(count > 0 for count in found.processors.values())
        if isinstance(found, PendingJob):
            assert is_target(found.target)
    assert [read(one) for one in lines] == neighbours


@given(st.text())
@example("\x1f" * 13)
@example("\x1f" * 10)
@example("NodeName= CfgTRES==")
def test_any_text_is_survived(text: str) -> None:
    for read, _ in READERS.values():
        read(text)
    text_config.priority_settings(text_config.configuration(text))
    text_config.controller(text)
