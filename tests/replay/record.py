"""Records what ``sacct --json`` prints, and the text that it prints of the same jobs.

``python -m tests.replay.record`` boots a private Slurm of the release that is installed, lets jobs
come into all states that matter, and writes into ``tests/replay/recorded``. Of the JSON
the commands, folders and steps are left out.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.replay.logs.column_names import ASK
from shapleyprio.slurm.command_line.commands import FIXED
from shapleyprio.slurm.releases import Release
from tests.slurm.record import ACCOUNTING_SECONDS, ACCOUNTS, LONG, Scenario

FOLDER = Path(__file__).parent / "recorded"
_OF_THE_MACHINE = ("working_directory", "submit_line", "script", "stdin", "stdout", "stderr")


def record(cluster: PrivateSlurm) -> str:
    """Lets jobs run; returns the release."""
    release = Release.parse(cluster.run("squeue", "--version").strip())
    assert release is not None
    cluster.add_accounts(ACCOUNTS)
    begin = cluster.now()
    scenario = Scenario(cluster)
    scenario.play()
    cluster.run("scontrol", "resume", str(scenario.jobs["suspended"]))
    for name in ("suspended", "requeued", "blocks"):
        cluster.run("scancel", str(scenario.jobs[name]))
    unlimited = cluster.submit("biology", LONG, partition="pa", extra=["--time=UNLIMITED"])
    time.sleep(ACCOUNTING_SECONDS)
    cluster.run("scancel", str(unlimited))
    cluster.submit("biology", LONG, partition="pa")
    time.sleep(ACCOUNTING_SECONDS)
    utc = ("env", "TZ=UTC", *(f"{name}={value}" for name, value in FIXED.items()))
    day = f"--starttime={datetime.fromtimestamp(begin, UTC):%Y-%m-%d}"
    text = cluster.run(*utc, *ASK.split(), day)
    # with SLURM_TIME_FORMAT the plugin of 22.05 does not understand its own sacct
    words = ("env", "TZ=UTC", "sacct", "--allusers", "--duplicates", "--json", day)
    printed = json.loads(cluster.run(*words))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{release.series}.sacct").write_text(text)
    kept = ",\n".join(json.dumps(_anonymous(job)) for job in printed["jobs"])
    (FOLDER / f"{release.series}.json").write_text(f'{{"jobs": [\n{kept}\n]}}\n')
    return release.series


def _anonymous(job: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [] if name == "steps" else value
        for name, value in job.items()
        if not name.startswith(_OF_THE_MACHINE)
    }


def main() -> None:
    """Boots, records, and shows which release it was."""
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder), ClusterSpec()) as cluster,
    ):
        print(record(cluster), file=sys.stderr)


if __name__ == "__main__":
    main()
