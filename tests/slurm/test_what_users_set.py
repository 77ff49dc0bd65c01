"""Whatever can be set of a job: no pending job and no record is missing because of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.testbed.errors import TestbedError
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.port import Connection, Slurm

pytestmark = pytest.mark.real_slurm

CPUS = 4
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
}
"""Options of sbatch -> values."""

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
}
"""Keys of ``scontrol update`` -> values."""

MANY = 100
"""Fewer are accepted by no release; if this is not reached, nothing was tried."""


@pytest.fixture(scope="module")
def cluster(prepared_database: Path) -> Iterator[PrivateSlurm]:
    """A cluster on which a job keeps all others waiting."""
    spec = ClusterSpec(
        name="fuzzed",
        partitions={"a": ("a1",), "b": ("b1",)},
        cpus_per_node=CPUS,
        speed=1,
        extra={
            "AccountingStorageEnforce": "associations,limits",
            "Licenses": "lic:4",
            "MaxJobCount": "5000",
        },
    )
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder), spec, prepared=prepared_database) as cluster,
    ):
        cluster.add_accounts({"physics": None})
        cluster.submit("physics", 3000, processors=2 * CPUS)
        yield cluster


@pytest.fixture
def slurm(cluster: PrivateSlurm) -> Iterator[Slurm]:
    yield connect(Connection(environment=cluster.environment, timeout_seconds=REAL_SECONDS))
    cluster.run("scancel", "--state=PENDING", f"--user={cluster.paths.user}")
    cluster.wait_until(lambda: not waiting(cluster), real_seconds=REAL_SECONDS, what="an end")


def waiting(cluster: PrivateSlurm) -> set[int]:
    """The records of pending jobs, of which squeue prints nothing but the number."""
    return set(map(int, cluster.run("squeue", "-h", "-a", "-t", "PD", "-r", "-o", "%A").split()))


def assert_none_is_missing(cluster: PrivateSlurm, slurm: Slurm) -> None:
    numbers = waiting(cluster)
    queue = slurm.pending()
    assert (queue.malformed, queue.more_malformed) == ([], 0)
    assert {job.job_id for job in queue.jobs} == numbers
    records = list(slurm.records_of(sorted(numbers)))
    assert [record for record in records if not isinstance(record, JobRecord)] == []


def test_a_job_submitted_with_any_option_is_in_the_queue(
    cluster: PrivateSlurm, slurm: Slurm
) -> None:
    for option, values in OPTIONS.items():
        for value in values:
            words = f"--{option}={value}" if value or values is TEXTS else f"--{option}"
            with suppress(TestbedError):
                cluster.submit("physics", 1, processors=CPUS, extra=[words])
    assert len(waiting(cluster)) > MANY
    assert_none_is_missing(cluster, slurm)


@pytest.mark.parametrize("of_array", [False, True], ids=["job", "task"])
def test_a_job_changed_in_any_way_is_in_the_queue(
    cluster: PrivateSlurm, slurm: Slurm, *, of_array: bool
) -> None:
    array = "0-3%2" if of_array else None
    accepted = 0
    for key, values in CHANGES.items():
        for value in values:
            job = cluster.submit("physics", 1, processors=CPUS, array=array)
            name = f"{job}_2" if of_array else str(job)
            with suppress(TestbedError):
                cluster.run("scontrol", "update", f"JobId={name}", f"{key}={value}")
                accepted += 1
    assert accepted > MANY
    assert_none_is_missing(cluster, slurm)
