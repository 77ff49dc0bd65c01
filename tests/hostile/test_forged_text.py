"""What users try with texts of their own in what Slurm's commands print: forged lines and fields.

Slurm prints what users choose (accounts, where they are not enforced or where a coordinator adds
them, and whatever else a release may let them choose) as it is, line ends and all. These tests
print as Slurm does, with hostile texts wherever a name stands.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shapleyprio.daemon.pushing.urgency import Limits, most_urgent
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm import access
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.port import Connection, Malformed
from shapleyprio.slurm.text import config as text_config
from shapleyprio.slurm.text.accounting import accounting_line
from shapleyprio.slurm.text.config import coordinators_line, in_force_line
from shapleyprio.slurm.text.queue import factors_line, refusals, target_of, value_line
from shapleyprio.slurm.text.squeue import ARRAY_FIELDS, OWN_FIELDS, OWN_SEPARATOR, WaitingRecords
from shapleyprio.slurm.text.values import new_delimiter
from tests.daemon.pushing import test_urgency as urgency
from tests.examples import examples

STALE = new_delimiter()
"""The delimiter of an earlier call, which an attacker may have seen."""

PIECES = (
    *("\n", "\r\n", "\x1f", STALE, "|", "||", " ", ",", "=", ":", "\t", "\0", "\x1b[2J", "\u2028"),
    *("8", "9", "33_[4-9]", "33_2", "gamma", "root", "normal", "all", "0", "1", "-5", "1800000000"),
    *("None", "1:00", "UNLIMITED", "COMPLETED", "cpu=4", "a1", "JobId=8", "Account=beta", ")("),
)
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text(max_size=30)


def printed(records: Iterable[Iterable[object]], delimiter: str) -> list[str]:
    """What a command prints, as the lines that are read of it."""
    lines = ("".join(f"{field}{delimiter}" for field in fields) for fields in records)
    return "".join(f"{line}\n" for line in lines).split("\n")[:-1]


# -- squeue


def waiting(number: int, label: object, account: str, user: str, reason: str) -> tuple[str, ...]:
    own = (number, label, "all", "normal", 10, number, 1_800_000_000 + number, 4, "1:00", "N/A")
    assert len(own) == len(OWN_FIELDS)
    return OWN_SEPARATOR.join(map(str, own)), account, user, reason


@given(st.lists(st.tuples(HOSTILE, HOSTILE, HOSTILE), min_size=1, max_size=5))
@example([("org", "ann", "None"), (f"x\n{STALE.join(waiting(1, 1, 'gamma', 'u', 'r'))}", "", "")])
def test_forge_a_line_of_squeue(texts: list[tuple[str, str, str]]) -> None:
    """No job comes out but those there are, each with its own texts, and each at most once."""
    jobs = {number: waiting(number, number, *text) for number, text in enumerate(texts, 1)}
    delimiter, folded = new_delimiter(), new_delimiter()
    records = WaitingRecords(printed(jobs.values(), delimiter), delimiter)
    records.complete(printed(((n, *text[:1]) for n, text in enumerate(texts, 1)), folded), folded)
    queue = records.queue()
    found = {job.job_id: job for job in queue.jobs}
    assert len(found) == len(queue.jobs)
    for number, job in found.items():
        account, user, reason = texts[number - 1]
        assert (job.account, job.user, job.reason) == (account, user, reason)
        assert (job.target, job.nice, job.submit) == (str(number), number, 1_800_000_000 + number)
    plain = {n for n, text in enumerate(texts, 1) if not any("\n" in one for one in text)}
    assert plain <= found.keys()
    assert plain == set(jobs) or queue.malformed


@given(st.lists(st.tuples(st.integers(1, 3), HOSTILE), max_size=6))
def test_forge_the_tasks_of_an_array(pieces: list[tuple[int, str]]) -> None:
    """A record whose lines contradict each other is not believed, and nothing else suffers."""
    delimiter, folded = new_delimiter(), new_delimiter()
    mine = [waiting(4, "4", "org", "ann", "None")]
    array = [waiting(1, f"1_{task}", "org", "ann", "None") for task in (1, 4, 7)]
    forged = [waiting(number, text, text, "u", "r") for number, text in pieces]
    records = WaitingRecords(printed([*array, *forged, *mine], delimiter), delimiter)
    names = [(1, text) for _, text in pieces]
    assert len(ARRAY_FIELDS) == 2
    records.complete(printed(names, folded), folded)
    found = [job.job_id for job in records.queue().jobs]
    assert len(set(found)) == len(found)
    assert 4 in found


# -- sacct


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=5))
@example([("org", "ann"), ("x\n8" + STALE * 16, "root")])
def test_forge_a_record_of_accounting(texts: list[tuple[str, str]]) -> None:
    """No record comes out but those there are, each with its own texts."""

    def fields(number: int, account: str, user: str) -> tuple[object, ...]:
        head = ("COMPLETED", number, number, account, user, "all", 1_800_000_000, 1_800_000_100)
        tail = ("00:00:00", 4, "cpu=4", "a1", 1_800_000_000, 90, 60)
        return (*head, 1_800_000_160, *tail)

    delimiter = new_delimiter()
    lines = printed((fields(n, *text) for n, text in enumerate(texts, 1)), delimiter)
    read = [accounting_line(line, "cpu", delimiter) for line in lines]
    found = {one.job_id: one for one in read if isinstance(one, JobRecord)}
    assert len(found) == sum(isinstance(one, JobRecord) for one in read)
    for number, record in found.items():
        assert (record.account, record.user) == texts[number - 1]
        assert (record.nodes, record.processors) == (("a1",), 4)
    plain = {n for n, text in enumerate(texts, 1) if not any("\n" in one for one in text)}
    assert plain <= found.keys()
    assert len(found) == len(texts) or any(isinstance(one, Malformed) for one in read)


# -- sacctmgr and scontrol show assoc_mgr

SACCTMGR = """#!/bin/sh
case "$*" in
*user=*account=*) cat {asked};;
*assoc*) cat {listed};;
*account*) cat {coordinators};;
*configuration*) echo "DisableCoordDBD = no";;
esac
"""
SCONTROL = """#!/bin/sh
case "$*" in
*ping*) echo "Slurmctld(primary) at vm is UP";;
*assoc_mgr*) cat {in_force};;
*) echo "ClusterName = c1";;
esac
"""


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=HOSTILE, user=HOSTILE)
@example(name="x\n1|beta|9|99\n1|evil||98\n1|y", user="ann")
@example(name="x", user="ann\nClusterName=c1 Account=beta UserName= Partition= Priority=9 ID=3(1)")
def test_forge_an_account_or_its_priority(tmp_path: Path, name: str, user: str) -> None:
    """The coordinator of alpha has made an account of that name, and a user in it."""
    genuine = "0|root||1\n1|alpha||2\n1|beta|300|3\n"
    in_force = "ClusterName=c1 Account={} UserName={} Partition= Priority={} ID={}\n"
    files = {
        "listed": genuine + f"2|{name}||4\n",
        "asked": genuine + ("2|x||4\n" if name == "x" else ""),
        "coordinators": f"alpha|daemon\n{name}|daemon\nbeta|\n",
        "in_force": in_force.format("beta", "", 300, 3) + in_force.format("x", f"{user}(7)", 0, 5),
    }
    for file, text in files.items():
        (tmp_path / file).write_text(text, errors="replace")
    paths = {file: shlex.quote(str(tmp_path / file)) for file in files}
    for program, script in (("sacctmgr", SACCTMGR), ("scontrol", SCONTROL)):
        (tmp_path / program).write_text(script.format(**paths))
        (tmp_path / program).chmod(0o755)
    slurm = CommandLineSlurm(Connection(timeout_seconds=20, bin_directory=tmp_path))
    stored = slurm.account_priorities()
    assert stored.keys() - {"x"} == {"root", "alpha", "beta"}
    assert (stored["beta"].own, stored["alpha"].own) == (300, None)
    assert slurm.coordinators().by_account.keys() <= stored.keys()
    assert slurm.priorities_in_force(["beta", "x"]).get("beta", 300) == 300


# -- what has no text of users in it, if it had


@given(HOSTILE)
def test_end_the_daemon_by_a_line_that_nobody_expects(text: str) -> None:
    """Readers of single lines return something or a malformed line, and raise nothing."""
    readers: tuple[Callable[[str], object], ...] = (
        *(factors_line, value_line, coordinators_line, in_force_line, access.read_rights),
        *(text_config.node_line, text_config.partition_line, text_config.qos_line),
        *(text_config.controller, text_config.configuration, text_config.user_number),
        lambda line: text_config.priority_settings(text_config.configuration(line)),
        lambda line: refusals(line, ["8", "33_[4-9]"]),
    )
    for line in (text, f"NodeName={text} CfgTRES={text}", f"PartitionName=p Nodes={text}"):
        for read in readers:
            read(line)
    in_one_line = " ".join(text.split())
    for jobs in ("8", "33_[4-9]"):
        found = refusals(f"{in_one_line} for job {jobs}", ["8", "33_[4-9]"])
        assert found.keys() <= {jobs}


@given(HOSTILE)
def test_have_an_order_carried_out_that_a_name_holds(text: str) -> None:
    """What scontrol and sacctmgr are fed is one line of one order, or nothing."""
    try:
        target = target_of(text)
    except ValueError:
        return
    assert target.isprintable()
    assert " " not in target


def test_fill_the_standard_input_of_scontrol_by_a_line_end(tmp_path: Path) -> None:
    (tmp_path / "scontrol").write_text("#!/bin/sh\ncat\n")
    (tmp_path / "scontrol").chmod(0o755)
    commands = SlurmCommands(timeout_seconds=5, bin_directory=tmp_path)
    orders = ["update JobId=8 Nice=0\nupdate JobId=9 Nice=0"]
    with pytest.raises(ValueError, match="order of one line"):
        commands.feed("scontrol", orders)


# -- many writes


def test_make_others_wait_by_thousands_of_nices() -> None:
    """However many writes one user causes, the others' are in the same cycle, and soon."""
    many, limits = 30_000, Limits(writes=10_000, raises_of_user=2_000)
    hostile = [urgency.waiting(number, 5_000_000, user="eve") for number in range(1, many + 1)]
    others = [urgency.waiting(many + number, 10, user=f"user{number}") for number in range(1, 101)]
    pending = [*hostile, *others]
    writes = [urgency.write(one.job_id, 1_000_000 - one.job_id % 600, "nice") for one in pending]
    chosen = most_urgent(writes, pending, limits)
    by_key = {push.key: place for place, push in enumerate(chosen)}
    assert max(by_key[str(one.job_id)] for one in others) <= limits.raises_of_user + len(others)
    assert len(chosen) == limits.raises_of_user + len(others)
