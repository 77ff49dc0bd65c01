"""Stands in for Slurm's commands: prints a large cluster as text, the way these print it.

``make_commands`` writes the texts' reader as squeue, sacct, sprio, scontrol, sdiag and sacctmgr; a
`PrintedCluster` writes the texts. What is written by scontrol is there when it is read back.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from shapleyprio.common.workers import PYTHON
from shapleyprio.slurm.text.accounting import FIELDS
from shapleyprio.slurm.text.squeue import OWN_FIELDS, OWN_SEPARATOR, TEXT_FIELDS
from shapleyprio.slurm.text.values import SEPARATOR

CLUSTER = "bench"
OPENED = 1_767_225_600
"""When the jobs were submitted that wait at first."""

COMMANDS = ("squeue", "sacct", "sprio", "scontrol", "sdiag", "sacctmgr")
NODE_PROCESSORS = 64
LONG_AGO_SECONDS = 7200
"""So long ago the jobs began that run at first, all at once: who is served how well by then does
not change within some cycles."""

_READER = """import fcntl, os, sys
folder, program, *words = sys.argv[1:]

def text(name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()

def after(option):
    return words[words.index(option) + 1]

if program == "scontrol" and not words:
    with open(os.path.join(folder, "orders"), "ab") as orders:
        for line in sys.stdin.buffer:
            fcntl.flock(orders, fcntl.LOCK_EX)
            orders.write(line)
            orders.flush()
            fcntl.flock(orders, fcntl.LOCK_UN)
            print(flush=True)
    sys.exit()
if program == "sacct":
    delimiter = next(word.partition("=")[2] for word in words if word.startswith("--delimiter="))
    none = "-X" not in words or "-j" in words or int(after("-E")[3:]) < int(text("oldest"))
    found = b"" if none else text("sacct").replace(b"\\x1f", delimiter.encode())
elif program == "squeue":
    delimiter = after("-O").rpartition(":0")[2] if "--array" in words else ""
    found = text("squeue").replace(b"\\x1f", delimiter.encode()) if delimiter else b""
elif program == "sprio":
    values = dict(line.split(b" ") for line in text("sprio").splitlines())
    for line in text("orders").splitlines():
        _, job, value = line.split(b" ")
        if job[6:] in values:
            values[job[6:]] = value[11:]
    last = b" 0 0.1\\n" if "%B" in after("-o") else b"\\n"
    found = b"".join(b"%b %b%b" % (job, value, last) for job, value in values.items())
else:
    plain = [word for word in words if not word.startswith("-")]
    found = text("-".join([program, *plain[:2]]))
sys.stdout.buffer.write(found)
"""


def make_commands(folder: Path) -> Path:
    """Makes the commands in a folder; returns the folder that they are in."""
    commands = folder / "bin"
    commands.mkdir()
    reader = folder / "reader.py"
    reader.write_text(_READER, encoding="utf-8")
    for name in COMMANDS:
        # a first line that names Python cannot name one in a path with a blank
        words = shlex.join([*PYTHON, "-S", str(reader), str(folder), name])
        (commands / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        (commands / name).chmod(0o755)
    return commands


@dataclass(slots=True)
class _Job:
    number: int
    organization: int
    nodes: str
    submit: int
    start: int | None = None
    end: int | None = None
    points: int = 0

    @property
    def processors(self) -> int:
        return 1 + self.organization


class PrintedCluster:
    """A cluster whose jobs wait, run and end at a pace of their own.

    Args:
        folder: for the texts.
        pending: jobs that wait.
        running: jobs that run.
        organizations: each with an account and a partition of its own.
        nodes: shared out among them evenly.
        kept_seconds: for so long jobs that have ended are printed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        pending: int,
        running: int,
        organizations: int,
        nodes: int,
        kept_seconds: int,
    ) -> None:
        self.now = OPENED
        self._folder = folder
        self._organizations = organizations
        self._nodes = nodes
        self._kept_seconds = kept_seconds
        self._random = Random(1)  # noqa: S311  # the same jobs every time are what is wanted
        self._last = 0
        self._running = deque(self._new() for _ in range(running))
        self._pending = deque(self._new() for _ in range(pending))
        self._ended: deque[_Job] = deque()
        for job in self._running:
            job.start = OPENED - LONG_AGO_SECONDS
        self._orders = folder / "orders"
        self._orders.touch()
        self._write_layout()
        self._write_queue()

    @property
    def organization_names(self) -> list[str]:
        """Names of all organizations, which are those of their accounts and partitions as well."""
        return [f"organization{number}" for number in range(self._organizations)]

    def advance(self, seconds: int, jobs: int) -> None:
        """Lets time pass, in which so many jobs end, as many start, and as many are submitted."""
        self.now += seconds
        by_number = {str(job.number): job for job in self._pending}
        for line in self._orders.read_text(encoding="utf-8").splitlines():
            _, target, value = line.split(" ")
            if job := by_number.get(target.partition("=")[2]):
                job.points = int(value.partition("=")[2])
        self._orders.write_text("", encoding="utf-8")
        for _ in range(jobs):
            ended = self._running.popleft()
            ended.end = self.now - 1
            self._ended.append(ended)
            started = self._pending.popleft()
            started.start = self.now - 1
            self._running.append(started)
            self._pending.append(self._new())
        while self._ended and (self._ended[0].end or 0) < self.now - self._kept_seconds:
            self._ended.popleft()
        self._write_queue()

    def _new(self) -> _Job:
        """Makes a job that waits; organizations ask for more processors, the later they come."""
        self._last += 1
        node = self._last % (self._nodes - 1)
        two = self._random.random() < 0.1
        return _Job(
            self._last,
            self._random.randrange(self._organizations),
            f"node[{node:05}-{node + 1:05}]" if two else f"node{node:05}",
            self.now - LONG_AGO_SECONDS - 60,
        )

    def _write_queue(self) -> None:
        self._write("sdiag", f"sdiag output at now ({self.now})\n{_SDIAG}")
        self._write("squeue", "".join(self._queue_line(job) for job in self._pending))
        self._write("sprio", "".join(f"{job.number} {job.points}\n" for job in self._pending))
        known = (*self._ended, *self._running, *self._pending)
        self._write("sacct", "".join(self._record_line(job) for job in known))

    def _queue_line(self, job: _Job) -> str:
        name = f"organization{job.organization}"
        values = {
            "JobID": job.number,
            "JobArrayID": job.number,
            "Account": name,
            "UserName": f"user{job.number % 997}",
            "Partition": "all",
            "QOS": "normal",
            "PriorityLong": 1000 + job.points,
            "Nice": 0,
            "SubmitTime": job.submit,
            "NumCPUs": job.processors,
            "Reason": "Priority",
            "TimeLimit": "1-00:00:00",
            "EligibleTime": job.submit,
        }
        own = OWN_SEPARATOR.join(str(values[field]) for field in OWN_FIELDS)
        texts = "".join(f"{values[field]}{SEPARATOR}" for field in TEXT_FIELDS)
        return f"{own}{SEPARATOR}{texts}\n"

    def _record_line(self, job: _Job) -> str:
        started, tres = job.start is not None, f"billing={job.processors},cpu={job.processors}"
        elapsed = 0 if job.start is None else (job.end or self.now) - job.start
        values = {
            "JobIDRaw": job.number,
            "JobID": job.number,
            "Account": f"organization{job.organization}",
            "User": f"user{job.number % 997}",
            "Partition": "all",
            "Submit": job.submit,
            "Start": job.start or "Unknown",
            "End": job.end or "Unknown",
            "ElapsedRaw": elapsed,
            "Suspended": "00:00:00",
            "State": "COMPLETED" if job.end else "RUNNING" if started else "PENDING",
            "AllocCPUS": job.processors if started else 0,
            "AllocTRES": f"{tres},mem=16G,node=1" if started else "",
            "NodeList": job.nodes if started else "None assigned",
            "Eligible": job.submit,
            "TimelimitRaw": 1440,
        }
        return "".join(f"{values[field]}{SEPARATOR}" for field in FIELDS) + "\n"

    def _write_layout(self) -> None:
        self._write("oldest", str(OPENED - LONG_AGO_SECONDS))
        self._write("scontrol-ping", "Slurmctld(primary) at head is UP\n")
        self._write("scontrol-show-config", _CONFIG)
        self._write("scontrol-show-node", "".join(self._node_lines()))
        self._write("scontrol-show-partition", "".join(self._partition_lines()))
        self._write("sacctmgr-show-qos", "normal|0\n")
        accounts = enumerate(self.organization_names, start=2)
        lines = (f"1|{name}||{number}\n" for number, name in accounts)
        self._write("sacctmgr-show-assoc", "0|root||1\n" + "".join(lines))

    def _node_lines(self) -> Iterator[str]:
        for number in range(self._nodes):
            has = f"cpu={NODE_PROCESSORS},mem=256000M,billing={NODE_PROCESSORS}"
            yield _NODE.format(name=f"node{number:05}", has=has, cpus=NODE_PROCESSORS)

    def _partition_lines(self) -> Iterator[str]:
        yield f"PartitionName=all Nodes=node[00000-{self._nodes - 1:05}] PriorityJobFactor=1\n"
        each = self._nodes // self._organizations
        for number, name in enumerate(self.organization_names):
            nodes = f"node[{number * each:05}-{number * each + each - 1:05}]"
            yield f"PartitionName={name} Nodes={nodes} PriorityJobFactor=1\n"

    def _write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text, encoding="utf-8")


_SDIAG = "Jobs submitted: 1\nDBD Agent queue size: 0\n"

_CONFIG = f"""ClusterName = {CLUSTER}
SLURM_VERSION = 24.11.5
AccountingStorageEnforce = associations
PriorityType = priority/multifactor
PriorityCalcPeriod = 00:05:00
PriorityMaxAge = 7-00:00:00
PriorityWeightAge = 0
KillWait = 30 sec
SlurmUser = slurm(64030)
"""

_NODE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=32 CPUAlloc=48 CPUEfctv={cpus} CPUTot={cpus} "
    "CPULoad=47.90 AvailableFeatures=a,b ActiveFeatures=a,b Gres=(null) NodeAddr={name} "
    "NodeHostName={name} Version=24.11.5 OS=Linux 6.1.0 RealMemory=256000 AllocMem=192000 "
    "FreeMem=60000 Sockets=2 Boards=1 State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A "
    "MCS_label=N/A Partitions=all BootTime=1767000000 SlurmdStartTime=1767000100 "
    "LastBusyTime=1767225600 ResumeAfterTime=None CfgTRES={has} "
    "AllocTRES=cpu=48,mem=192000M CapWatts=n/a CurrentWatts=0 AveWatts=0\n"
)
