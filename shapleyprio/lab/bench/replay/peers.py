"""Other simulators of schedules, side by side with the replay: the same jobs, the same rules.

``python -m shapleyprio.lab.bench.replay.peers LOG JOBS PROCESSORS FILE`` writes the first jobs of a
log as SWF.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import shapleyprio
from shapleyprio.common.errors import ReplayError
from shapleyprio.common.workers import PYTHON
from shapleyprio.lab.bench import peak
from shapleyprio.lab.bench.fairness.contended import LOGS, LogFile
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, Ran, of_runs, run_apart
from shapleyprio.replay.logs.reading import read_log

PROGRAM = Path(shapleyprio.__file__).with_name("__main__.py")
OF_LOGS = {"LPC": 70, "HPC2N": 240}
"""Name of the log -> processors."""

JOBS = 10_000
RUNS = 3
BACKFILL = {"fcfs": "none", "easy": "easy"}
"""Rule -> what `replay --backfill` calls it."""

SAME = {"fcfs"}
"""Rules that mean the same to all. Under EASY a job that AccaSim lets pass may hold up the first
one, since its nodes are reserved and not its processors."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another simulator that pip installs.

    Attributes:
        name: what it is called.
        driver: a file of Python, given a log in SWF, the number of processors, a rule, and a folder
            into which it writes which job started when.
        packages: what pip installs for it.
        rules: those that it has.
    """

    name: str
    driver: Path
    packages: tuple[str, ...]
    rules: tuple[str, ...]


HERE = Path(__file__).parent
PEERS = (
    Peer("AccaSim", HERE / "peer_accasim.py", ("accasim==1.1.3", "setuptools<81"), tuple(BACKFILL)),
    Peer("Lapis", HERE / "peer_lapis.py", ("lapis-sim==0.4.2",), ("fcfs",)),
)


@dataclass(frozen=True, slots=True)
class PeerCase:
    """What all are to do.

    Attributes:
        log: its name.
        file: its jobs in SWF.
        processors: of the system.
        rule: by which jobs start.
    """

    log: str
    file: Path
    processors: int
    rule: str


def measure_peers(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures all, in turn, each from the reading of the log to the written schedule.

    Logs that are not there are left out. pip installs the other simulators.

    Raises:
        ReplayError: one of them cannot be installed.
    """
    logs, folder = asked.real_logs, asked.folder
    there = [one for one in LOGS if one.name in OF_LOGS and (logs / one.file).exists()]
    pythons = {peer.name: _install(peer, folder / peer.name) for peer in PEERS}
    each = sum(1 + len(_with(rule)) for rule in BACKFILL)
    done = asked.bar("runs", len(there) * each * RUNS)
    turn = 0
    for log in there:
        file = _first_jobs(logs, log, folder)
        for rule in BACKFILL:
            case = PeerCase(log.name, file, OF_LOGS[log.name], rule)
            ran: dict[str, list[Ran]] = {}
            for _ in range(RUNS):
                for name, command in _commands(case, pythons, folder).items():
                    ran.setdefault(name, []).append(run_apart(command))
                    turn += 1
                    done(turn)
            yield from _found(case, ran, folder)


def _with(rule: str) -> list[Peer]:
    """Returns the simulators that have a rule."""
    return [peer for peer in PEERS if rule in peer.rules]


def _install(peer: Peer, place: Path) -> Path:
    """Makes an environment with another simulator, and returns its Python."""
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    command = [str(python), "-I", "-m", "pip", "install", "--quiet", *peer.packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise ReplayError(f"{peer.packages[0]} cannot be installed; pip says: {why}")
    return python


def _first_jobs(logs: Path, log: LogFile, folder: Path) -> Path:
    """Returns a file with the first jobs of a log."""
    file = folder / f"{log.name}.swf"
    words = [str(logs / log.file), str(JOBS), str(OF_LOGS[log.name]), str(file)]
    run_apart([*PYTHON, "-m", "shapleyprio.lab.bench.replay.peers", *words])
    return file


def _commands(case: PeerCase, pythons: Mapping[str, Path], folder: Path) -> Mapping[str, list[str]]:
    """Returns name -> a command that simulates the case."""
    processors = str(case.processors)
    ours = [str(PROGRAM), "replay", str(case.file), "--deal-users", "1"]
    ours += ["--processors", processors, "--policy", "fcfs", "--wide", "rigid"]
    ours += ["--backfill", BACKFILL[case.rule], "--schedule", str(folder / "schedule.csv")]
    commands = {"replay": [*PYTHON, peak.__file__, *ours]}
    for peer in _with(case.rule):
        words = [str(peer.driver), str(case.file), processors, case.rule, str(folder / peer.name)]
        commands[peer.name] = [str(pythons[peer.name]), "-I", peak.__file__, *words]
    return commands


def _different(case: PeerCase, peer: Peer, folder: Path) -> int:
    """Returns how many jobs did not start at the same second, before the last one was released.

    The replay ends then. Seconds count from the first start.
    """
    with (folder / "schedule.csv").open(encoding="utf-8") as lines:
        ours = {int(row["job"]): int(row["start"]) for row in csv.DictReader(lines)}
    with (folder / peer.name / f"sched-{case.file.name}").open(encoding="utf-8") as lines:
        theirs = {int(job): int(start) for job, start in csv.reader(lines, delimiter=";")}
    end = int(case.file.read_text(encoding="utf-8").splitlines()[-1].split()[1])
    ours, theirs = _from_the_first(ours, end), _from_the_first(theirs, end)
    return sum(ours.get(job) != theirs.get(job) for job in ours.keys() | theirs.keys())


def _from_the_first(starts: Mapping[int, int], end: int) -> dict[int, int]:
    first = min(starts.values())
    return {job: start - first for job, start in starts.items() if start - first < end}


def _found(case: PeerCase, ran: Mapping[str, list[Ran]], folder: Path) -> Iterator[Measurement]:
    what = f"{case.log}, {case.rule}"
    for name, runs in ran.items():
        speeds = [JOBS / run.seconds for run in runs]
        found = of_runs("peers", f"{what}, {name}", speeds, unit="jobs/s")
        yield replace(found, worst=min(speeds))
        megabytes = [float(run.last_line) for run in runs]
        yield of_runs("peers", f"{what}, {name}: peak memory", megabytes, unit="MB")
    for peer in _with(case.rule):
        yield of_runs(
            "peers",
            f"{what}, {peer.name}: jobs of {JOBS:,} that start at different seconds",
            [_different(case, peer, folder)],
            unit="jobs",
            below=1 if case.rule in SAME else None,
        )


def write_first_jobs(log: str, jobs: int, processors: int, write: Callable[[str], object]) -> None:
    """Writes the first jobs of a log that fit, numbered from 1, as lines of SWF.

    Args:
        log: the file.
        jobs: how many.
        processors: of the system.
        write: gets each line.
    """
    read = read_log(log)
    fitting = read.processors <= processors
    columns = (read.release, read.processing_time, read.processors, read.limit)
    rows = sorted(zip(*(column[fitting].tolist() for column in columns), strict=True))[:jobs]
    begin = rows[0][0]
    for number, (release, time, wide, limit) in enumerate(rows, start=1):
        asked = max(limit, time)
        fields = (number, release - begin, -1, time, wide, -1, -1, wide, asked, -1, 1, 1, 1)
        write(" ".join(map(str, (*fields, -1, 1, 1, -1, -1))) + "\n")


if __name__ == "__main__":
    with Path(sys.argv[4]).open("w", encoding="utf-8") as output:
        write_first_jobs(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), output.write)
