"""Cycles on a cluster that is as large as there are, with what Slurm's commands print of it.

``python -m shapleyprio.lab.bench.cycle.scale FOLDER`` runs a cycle for each line that it reads, and
prints what it took; a process of its own, to know its processor time and its memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

from shapleyprio.common.wording import DAY
from shapleyprio.common.workers import PYTHON
from shapleyprio.config import Config
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.lab.bench.cycle.printed_slurm import CLUSTER, OPENED, PrintedCluster, make_commands
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, of_runs
from shapleyprio.lab.bench.peak import peak_megabytes
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.port import Connection, Controller
from shapleyprio.slurm.running import Moment
from shapleyprio.store import Store

PENDING = 100_000
RUNNING = 50_000
ORGANIZATIONS = 100
NODES = 5_000

RUNS = 7
POLL_SECONDS = 30
CHANGES = 80
"""In each cycle so many jobs start, as many end, and as many are submitted."""

MOST_WRITES = 10_000
FIRST_SECONDS_BELOW = 10.0
STEADY_SECONDS_BELOW = 1.0
MEGABYTES_BELOW = 300.0


def measure_scale(asked: BenchParameters) -> list[Measurement]:
    """Measures the first cycle, and cycles after every waiting job has got its points.

    The first ones write the priorities of all jobs. One more shows whether something was left,
    another lets what was found out first be forgotten.
    """
    folder, in_all = asked.folder, -(-PENDING // MOST_WRITES) + 2 + RUNS
    progress = asked.bar("cycles", in_all)
    make_commands(folder)
    cluster = PrintedCluster(
        folder,
        pending=PENDING,
        running=RUNNING,
        organizations=ORGANIZATIONS,
        nodes=NODES,
        kept_seconds=3600,
    )
    command = [*PYTHON, "-m", "shapleyprio.lab.bench.cycle.scale", str(folder)]
    config = {
        "organization": [
            {"name": name, "accounts": [name], "partitions": [name]}
            for name in cluster.organization_names
        ],
        "fairness": {"since": datetime.fromtimestamp(OPENED - DAY, UTC).isoformat()},
        "push": {"most_writes": MOST_WRITES, "most_raises_of_user": MOST_WRITES},
    }
    with subprocess.Popen(
        [*command, json.dumps(config)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for done in range(1, in_all + 1):
            cluster.advance(POLL_SECONDS, CHANGES)
            process.stdin.write("\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("a cycle failed")
            answers.append(json.loads(line))
            progress(done)
        process.stdin.close()
    steady = answers[-RUNS:]
    if any(answer["written"] != CHANGES for answer in steady):
        raise RuntimeError(f"the steady cycles wrote other than {CHANGES} priorities: {steady}")
    what = f"{PENDING:,} pending, {RUNNING:,} running jobs, {ORGANIZATIONS} organizations"
    first = f"processor time of the first cycle: {what}, {NODES:,} nodes"
    later = f"of a later one: {CHANGES} jobs started, ended and were submitted"
    seconds = [answer["seconds"] for answer in steady]
    found = (
        (first, [answers[0]["seconds"]], "s", FIRST_SECONDS_BELOW),
        (later, seconds, "s", STEADY_SECONDS_BELOW),
        ("peak memory of that", [steady[-1]["megabytes"]], "MB", MEGABYTES_BELOW),
    )
    return [
        of_runs("scale", each, values, unit=unit, below=below)
        for each, values, unit, below in found
    ]


class PrintedSlurm(CommandLineSlurm):
    """What was printed, of which the clock goes on by the pause between cycles, however long."""

    def controller(self) -> Controller:
        """Returns the controller's state, as if nobody had set the clock."""
        found = super().controller()
        return replace(found, seen=Moment("printed", found.time))


def main(folder: Path, config: Config) -> None:
    """Runs a cycle for each line of standard input, and prints what it took as JSON."""
    slurm = PrintedSlurm(Connection(bin_directory=folder / "bin"))
    with Store.open(f"sqlite:///{folder / 'scale.db'}", create=True) as store:
        cycle = Cycle(config, slurm, store.cluster(CLUSTER))
        for _ in sys.stdin:
            began = process_time()
            report = cycle.run()
            answer = {
                "seconds": process_time() - began,
                "written": report.pushed.applied,
                "megabytes": peak_megabytes(),
            }
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Config.model_validate_json(sys.argv[2]))
