"""Whatever can be set of a job: none is missing because of it, and its processors are as asked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from shapleyprio.fairness.runs import JobRecord, Run, run_of
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.testbed.machine import TestbedError
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.port import Connection, Slurm

pytestmark = pytest.mark.real_slurm

CPUS = 64
SIZES = {"a1": CPUS, "b1": CPUS}
REAL_SECONDS = 60

NUMBERS = ("0", "1", "-1", "+1", "1-4", "65533", "65534", "525601", "100000000", "2147480000")
LARGE = ("2147483645", "2147483647", "4294967292", "4294967293", "4294967294", "4294967295")
"""Around the numbers by which Slurm means something else."""

LIMITS = ("365-00:00:00", "365-00:01:00", "9999-00:00:00", "71582787", "71582788", "UNLIMITED")
TIMES = ("2037-12-31", "2038-01-20", "2106-02-07", "2106-02-08", "2200-01-01", "now+4294967295")
TEXTS = ("", "a|b", "a b", "a\nb", "\x1f", "\u0663", "%j", "x" * 1000, "1 2\n3|4|", "'\"`$(id)")

OPTIONS = {
    "time": (*NUMBERS, *LARGE, *LIMITS),
    "time-min": (*NUMBERS, *LIMITS),
    "begin": (*TIMES, "now+1", "now+3000000000", "1970-01-02"),
    "deadline": TIMES,
    "nice": (*NUMBERS, *LARGE),
    "ntasks": (*NUMBERS, *LARGE),
    "nodes": ("1-4", "1-1000000", "65533"),
    "cpus-per-task": (*NUMBERS, *LARGE),
    "mem": (*NUMBERS, "1000000T"),
    "mem-per-cpu": ("0", "1"),
    "array": ("7", "0-3%2", "0-10:3", "1,3,5-50:7%1", "0-3%4294967295", "0-3%999999999999"),
    "partition": ("all,a", "a,b", "all"),
    "job-name": TEXTS,
    "comment": TEXTS,
    "wckey": TEXTS,
    "constraint": TEXTS,
    "mail-user": TEXTS,
    "dependency": ("singleton", "afterany:1", "afterok:1?afterany:1"),
    "licenses": ("lic:2", "lic:1,lic:1"),
    "nodelist": ("a1", "a1,b1"),
    "priority": (*NUMBERS, *LARGE),
    "switches": ("9@100", "4294967293@400-00:00:00"),
    "delay-boot": LARGE,
    "signal": ("9@65535", "B:10@1"),
    "hold": ("",),
    "exclusive": ("",),
    "contiguous": ("",),
    "account": ("chemistry", "nobodys", *TEXTS),
    "qos": ("high", "normal", *TEXTS),
    "reservation": ("tomorrow", "tomorrow,tomorrow", *TEXTS),
    "gres": ("gpu:1", "gpu:4", "gpu:5", "gpu:old:1", "gpu:4294967295", "none", *TEXTS),
    "gpus": (*NUMBERS, *LARGE),
}
"""Options of sbatch -> values."""

OF_COMPONENTS = ("time", "begin", "nice", "job-name", "comment", "account", "qos", "gres", "hold")
"""Options that are also tried at the components of a heterogeneous job."""

CHANGES = {
    "TimeLimit": (*NUMBERS, *LARGE, *LIMITS),
    "TimeMin": (*NUMBERS, *LIMITS),
    "StartTime": (*TIMES, "now+1"),
    "EligibleTime": TIMES,
    "Deadline": TIMES,
    "Nice": (*NUMBERS, *LARGE),
    "Priority": (*NUMBERS, *LARGE),
    "NumCPUs": (*NUMBERS, *LARGE),
    "NumNodes": ("1-4", "1-1000000"),
    "NumTasks": (*NUMBERS, *LARGE),
    "CPUsPerTask": LARGE,
    "ReqCores": LARGE,
    "ArrayTaskThrottle": (*NUMBERS, *LARGE),
    "Partition": ("all,a", "a"),
    "Name": TEXTS,
    "Comment": TEXTS,
    "WCKey": TEXTS,
    "Features": TEXTS,
    "Licenses": ("lic:2", ""),
    "Dependency": ("singleton", "afterany:1", ""),
    "ExcNodeList": ("a1",),
    "DelayBoot": LARGE,
    "Switches": ("9@100", "4294967293@400-00:00:00"),
    "Account": ("chemistry", "nobodys", *TEXTS),
    "QOS": ("high", *TEXTS),
    "ReservationName": ("tomorrow", *TEXTS),
    "Gres": ("gpu:1", "gpu:5", "gpu:4294967295"),
}
"""Keys of ``scontrol update`` -> values."""

MANY = 100
"""Fewer are accepted by no release; if this is not reached, nothing was tried."""


FORGED = (
    "x Nodes=b1 CPU_IDs=0-9 Mem=0 GRES= ",
    "x\nJobId=1 Nodes=a1,b1 CPU_IDs=0-9 Mem=0 GRES= ",
    " Nodes=b[1-9] CPU_IDs=0 Mem=0 GRES= ",
)
"""Texts that pass for what Slurm says of a job's nodes."""

TEXT_FIELDS = ("job-name", "comment", "wckey", "mail-user", "mcs-label", "chdir")
"""Options for any text, which `scontrol show job` repeats."""

UNEVEN = ("--distribution=arbitrary", "--nodelist=a1,a1,b1")
"""Asks for two processors of one node and one of the other."""

HELD = {
    ("--nodes=2", "--ntasks=2"): {"a1": 1, "b1": 1},
    ("--nodes=2", "--ntasks=6", "--ntasks-per-node=3"): {"a1": 3, "b1": 3},
    ("--nodes=2", "--ntasks=2", "--cpus-per-task=4"): {"a1": 4, "b1": 4},
    ("--nodes=2", "--ntasks=2", "--gres=gpu:2"): {"a1": 1, "b1": 1},
    ("--nodes=2", "--ntasks=2", "--account=chemistry", "--qos=high"): {"a1": 1, "b1": 1},
    ("--ntasks=5", "--nodelist=b1"): {"b1": 5},
}
"""Options of sbatch -> node -> processors for which they ask."""


@pytest.fixture(scope="module")
def cluster(prepared_database: Path) -> Iterator[PrivateSlurm]:
    """A cluster of two nodes with accounts, QOS, GPUs, licenses and a reservation to ask for."""
    spec = ClusterSpec(
        name="fuzzed",
        partitions={"a": ("a1",), "b": ("b1",)},
        cpus_per_node=CPUS,
        gres={"a1": "gpu:4", "b1": "gpu:4"},
        speed=1,
        extra={
            "AccountingStorageEnforce": "associations,limits,qos",
            "Licenses": "lic:4",
            "MaxJobCount": "5000",
        },
    )
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder), spec, prepared=prepared_database) as cluster,
    ):
        cluster.add_accounts({"physics": None, "chemistry": None})
        change = ("sacctmgr", "-i")
        cluster.run(*change, "add", "qos", "high")
        cluster.run(*change, "modify", "account", "physics,chemistry", "set", "qos=normal,high")
        when = ("reservationname=tomorrow", "starttime=now+1day", "duration=60")
        cluster.run("scontrol", "create", "reservation", *when, "nodes=a1", "users=root")
        yield cluster


@pytest.fixture
def slurm(cluster: PrivateSlurm) -> Iterator[Slurm]:
    yield connect(Connection(environment=cluster.environment, timeout_seconds=REAL_SECONDS))
    cluster.run("scancel", f"--user={cluster.paths.user}")
    cluster.wait_until(
        lambda: not cluster.run("squeue", "-h"), real_seconds=REAL_SECONDS, what="an end"
    )


@pytest.fixture
def full(cluster: PrivateSlurm, slurm: Slurm) -> None:
    """A job keeps all others waiting."""
    cluster.submit("physics", 3000, processors=2 * CPUS)
    cluster.wait_until(lambda: not waiting(cluster), real_seconds=REAL_SECONDS, what="a start")


def in_state(cluster: PrivateSlurm, state: str) -> set[int]:
    """The records of such jobs, of which squeue prints nothing but the number."""
    return set(map(int, cluster.run("squeue", "-h", "-a", "-t", state, "-r", "-o", "%A").split()))


def waiting(cluster: PrivateSlurm) -> set[int]:
    return in_state(cluster, "PD")


def assert_none_is_missing(cluster: PrivateSlurm, slurm: Slurm) -> None:
    numbers = waiting(cluster)
    queue = slurm.pending()
    assert (queue.malformed, queue.more_malformed) == ([], 0)
    assert {job.job_id for job in queue.jobs} == numbers
    records = list(slurm.records_of(sorted(numbers)))
    assert [record for record in records if not isinstance(record, JobRecord)] == []


def test_a_job_that_runs_holds_what_it_asked_for(cluster: PrivateSlurm, slurm: Slurm) -> None:
    def submit(*options: str, **more: str) -> int:
        return cluster.submit("physics", 600, processors=3, extra=options, **more)

    def submit_text(text: str) -> str:
        return str(submit(*UNEVEN, *(f"--{field}={text}" for field in TEXT_FIELDS)))

    uneven = {"a1": 2, "b1": 1}
    asked = {submit_text(text): uneven for text in TEXTS}
    asked |= {str(submit(*options)): held for options, held in HELD.items()}
    array = submit(*UNEVEN, array="0-1")
    asked |= {f"{array}_{task}": uneven for task in range(2)}
    wide = submit("--nodelist=a1", ":", "--ntasks=4", "--nodelist=b1")
    asked |= {f"{wide}+0": {"a1": 3}, f"{wide}+1": {"b1": 4}}
    forged = {submit_text(text) for text in FORGED}
    runs: list[Run] = []

    def known() -> bool:
        records = slurm.records_of(sorted(in_state(cluster, "R")))
        found = [run_of(one, SIZES) for one in records if isinstance(one, JobRecord)]
        runs[:] = [run for run in found if run is not None]
        return {run.label for run in runs} == asked.keys() | forged

    cluster.wait_until(known, real_seconds=REAL_SECONDS, what="accounting to know what runs")
    held = slurm.processors_of(runs)
    found = {run.label: dict(held[run.key]) for run in runs if run.key in held}
    assert {label: found.get(label) for label in asked} == asked
    assert [found[label] for label in forged & found.keys() if found[label] != uneven] == []


@pytest.mark.usefixtures("full")
def test_a_job_submitted_with_any_option_is_in_the_queue(
    cluster: PrivateSlurm, slurm: Slurm
) -> None:
    for option, values in OPTIONS.items():
        for value in values:
            word = f"--{option}={value}" if value or TEXTS[1] in values else f"--{option}"
            components = [":", "--ntasks=1", word] if option in OF_COMPONENTS else []
            for words in ([word], [word, *components])[: 1 + bool(components)]:
                with suppress(TestbedError):
                    cluster.submit("physics", 1, processors=CPUS, extra=words)
    assert len(waiting(cluster)) > MANY
    assert_none_is_missing(cluster, slurm)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("separator", ["", "_", "+"], ids=["job", "task", "component"])
def test_a_job_changed_in_any_way_is_in_the_queue(
    cluster: PrivateSlurm, slurm: Slurm, separator: str
) -> None:
    accepted = 0
    for key, values in CHANGES.items():
        for name, value in zip(submit_each(cluster, len(values), separator), values, strict=True):
            with suppress(TestbedError):
                cluster.run("scontrol", "update", f"JobId={name}", f"{key}={value}")
                accepted += 1
    assert accepted > MANY
    assert_none_is_missing(cluster, slurm)


def submit_each(cluster: PrivateSlurm, count: int, separator: str) -> list[str]:
    """So many jobs, tasks of an array or components of a heterogeneous job; returns their names."""
    if separator == "":
        return [str(cluster.submit("physics", 1, processors=CPUS)) for _ in range(count)]
    array = f"0-{count - 1}%2" if separator == "_" else None
    more = [":", "--ntasks=1"] * (count - 1) if separator == "+" else []
    job = cluster.submit("physics", 1, processors=CPUS, extra=more, array=array)
    return [f"{job}{separator}{number}" for number in range(count)]
