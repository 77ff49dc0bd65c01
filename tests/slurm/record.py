"""Records what Slurm's commands print, for the tests of what reads it.

``python -m tests.slurm.record`` boots a private Slurm of the release that is installed, lets jobs
come into all states that matter, and writes what the adapter's own commands print into
``tests/slurm/recorded/RELEASE``, RELEASE being for instance 24.11.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.slurm.command_line.adapter import RECORDS, SACCT, SPRIO, WAITING
from shapleyprio.slurm.command_line.associations import COORDINATORS, IN_FORCE, STORED_ACCOUNTS
from shapleyprio.slurm.command_line.commands import FIXED
from shapleyprio.slurm.command_line.config import QOS
from shapleyprio.slurm.releases import Release
from shapleyprio.slurm.text.squeue import ARRAY_FIELDS, format_of, task_format
from shapleyprio.slurm.text.values import SEPARATOR

FOLDER = Path(__file__).parent / "recorded"
PATIENCE_SECONDS = 180
ACCOUNTING_SECONDS = 8
"""After so long accounting has heard of everything."""

LONG = 36_000
ACCOUNTS = {"physics": None, "biology": None, "particles": "physics"}
SETTINGS = {
    "PriorityWeightAge": "0",
    "PriorityWeightPartition": "1000000",
    "PriorityWeightQOS": "1",
    "PriorityWeightAssoc": "1",
    "PriorityFlags": "NO_NORMAL_QOS,NO_NORMAL_ASSOC",
}
PRIORITIES = f"""\
modify account where name=physics,particles cluster={ClusterSpec().name} set priority=300000
modify user where name=root account=biology cluster={ClusterSpec().name} set priority=77
add coordinator account=biology name=root
"""
"""What sacctmgr is to do; particles lies below physics, and nothing is set at biology itself."""


class Scenario:
    """Jobs in all states that matter, by the names that tests call them by.

    Args:
        cluster: running and empty.
    """

    def __init__(self, cluster: PrivateSlurm) -> None:
        self._cluster = cluster
        self.jobs: dict[str, int] = {}

    def play(self) -> None:
        """Submits them and lets things happen to them."""
        self._submit("finished", "pa", 1, processors=2)
        self._submit("on_two_nodes", "pb", 1, processors=8)
        self._until("no job", lambda: not self._states())
        self._submit("suspended", "pa", LONG, processors=4)
        self._submit("requeued", "pa", LONG, processors=4)
        self._submit("blocks", "pb", LONG, processors=8)
        self._until("three running jobs", lambda: self._states() == ["RUNNING"] * 3)
        time.sleep(3)
        self._scontrol("requeue", str(self.jobs["requeued"]))
        requeued = self.jobs["requeued"]
        # once: every update of its start puts it off for a moment
        self._until("the requeue", lambda: self._cluster.starts_again(requeued))
        self._until("the requeued job to run", self._requeued_runs)
        self._submit("waits", "pb", 60, account="particles", nice=5)
        self._submit("stepped", "pb", 60, array="1-40:3%2")
        self._submit("stepped_and_split", "pb", 60, array="0-60:3")
        self._submit("differing", "pb", 60, array="0-9")
        self._submit("held_task", "pb", 60, array="0-5")
        self._submit("held", "pb", 60, extra=["--hold"])
        self._submit("depends", "pb", 60, extra=[f"--dependency=afterok:{self.jobs['waits']}"])
        self._submit("in_two_partitions", "pa,pb", 60, extra=["--begin=now+1hour"])
        self._submit("later", "pb", 60, extra=["--begin=now+1hour"])
        self._submit("cancelled", "pb", 60)
        self._submit("with_site_factor", "pb", 60)
        het = ["sbatch", "--parsable", "--account=biology", "--partition=pb"]
        answer = self._cluster.run(*het, "--ntasks=2", ":", "--ntasks=1", "--wrap=true")
        self.jobs["heterogeneous"] = int(answer)
        time.sleep(ACCOUNTING_SECONDS)
        self._cluster.run("scancel", str(self.jobs["cancelled"]))
        self._scontrol("suspend", str(self.jobs["suspended"]))
        array = self.jobs["differing"]
        self._update(f"{array}_2", "Nice=-7")
        self._update(f"{array}_[4-5]", "Nice=-9")
        self._update(f"{array}_[0-1,3,6-9]", "SiteFactor=33")
        self._update(str(self.jobs["with_site_factor"]), "SiteFactor=13")
        self._scontrol("hold", f"{self.jobs['held_task']}_3")
        self._scontrol("hold", f"{self.jobs['stepped_and_split']}_0")
        time.sleep(ACCOUNTING_SECONDS)

    def _submit(
        self,
        name: str,
        partition: str,
        seconds: int,
        *,
        account: str = "physics",
        processors: int = 1,
        nice: int | None = None,
        array: str | None = None,
        extra: list[str] | None = None,
    ) -> None:
        self.jobs[name] = self._cluster.submit(
            account,
            seconds,
            processors=processors,
            partition=partition,
            nice=nice,
            array=array,
            extra=extra or [],
        )

    def _states(self) -> list[str]:
        return self._cluster.run("squeue", "-h", "-o", "%T").split()

    def _requeued_runs(self) -> bool:
        shown = ("squeue", "-h", "-j", str(self.jobs["requeued"]), "-o", "%T")
        return self._cluster.run(*shown).strip() == "RUNNING"

    def _until(self, what: str, predicate: object) -> None:
        assert callable(predicate)
        self._cluster.wait_until(predicate, real_seconds=PATIENCE_SECONDS, what=what)

    def _scontrol(self, *words: str) -> None:
        self._cluster.run("scontrol", *words)

    def _update(self, target: str, setting: str) -> None:
        self._scontrol("update", f"JobId={target}", setting)


class Recorder:
    """Keeps what commands print, and a list of them.

    Args:
        cluster: that is asked.
        folder: for the files; emptied.
    """

    def __init__(self, cluster: PrivateSlurm, folder: Path) -> None:
        self._environment = {**cluster.environment, **FIXED}
        self._folder = folder
        self._listed: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            file.unlink()

    def keep(self, name: str, *command: str) -> None:
        """Keeps the standard output of a command, or what it complains of if there is none."""
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False
        )
        (self._folder / f"{name}.txt").write_text(done.stdout or done.stderr)
        kept = f"standard {'output' if done.stdout else 'error'}, rc {done.returncode}"
        shown = shlex.join(command).replace(SEPARATOR, "\\x1f")
        self._listed.append(f"{name}.txt ({kept})\n    {shown}\n")

    def close(self, version: str, jobs: dict[str, int]) -> None:
        """Writes what was recorded, and how."""
        head = f"Recorded from {version} by `python -m tests.slurm.record`\n"
        settings = " ".join(f"{name}={value}" for name, value in FIXED.items())
        head += f"Environment: {settings}\n\n"
        (self._folder / "README.txt").write_text(head + "".join(self._listed))
        (self._folder / "jobs.json").write_text(json.dumps(jobs, indent=2) + "\n")


def record(cluster: PrivateSlurm) -> Path:
    """Records everything; returns the folder."""
    version = cluster.run("squeue", "--version").strip()
    release = Release.parse(version)
    assert release is not None
    cluster.add_accounts(ACCOUNTS)
    cluster.run("sacctmgr", "-i", "add", "qos", "high")
    cluster.run("sacctmgr", "-i", "modify", "qos", "high", "set", "priority=100")
    cluster.run("sacctmgr", "-i", stdin=PRIORITIES)
    since = cluster.now()
    scenario = Scenario(cluster)
    scenario.play()
    recorder = Recorder(cluster, FOLDER / release.series)
    keep = recorder.keep
    keep("version", "squeue", "--version")
    keep("squeue_tasks", "squeue", *WAITING, "--array", "-O", task_format(SEPARATOR))
    keep("squeue_folded", "squeue", *WAITING, "-O", format_of(ARRAY_FIELDS, SEPARATOR))
    keep("sprio", "sprio", *SPRIO)
    sacct = ("sacct", *SACCT, *RECORDS, "--local", f"--delimiter={SEPARATOR}", "-S", f"uts{since}")
    keep("sacct", *sacct)
    keep("sdiag", "sdiag")
    keep("scontrol_ping_up", "scontrol", "ping")
    keep("scontrol_config", "scontrol", "show", "config")
    keep("scontrol_nodes", "scontrol", "show", "node", "-a", "-o")
    keep("scontrol_partitions", "scontrol", "show", "partition", "-a", "-o")
    keep("sacctmgr_qos", "sacctmgr", *QOS)
    where = (f"cluster={cluster.spec.name}", "user=")
    keep("sacctmgr_accounts", "sacctmgr", *STORED_ACCOUNTS, *where)
    keep("sacctmgr_coordinators", "sacctmgr", *COORDINATORS)
    keep("sacctmgr_configuration", "sacctmgr", "show", "configuration")
    keep("scontrol_assoc_mgr", "scontrol", *IN_FORCE, f"accounts={','.join(ACCOUNTS)}")
    array = scenario.jobs["differing"]
    gone = f"JobId={scenario.jobs['finished']},4000000,{array}_[8-11]"
    keep("scontrol_update_refused", "scontrol", "update", gone, "SiteFactor=33")
    keep("squeue_unknown_option", "squeue", "--unheard-of")
    keep("sacct_unknown_option", "sacct", "--unheard-of")
    keep("sacct_unknown_field", "sacct", "-o", "Unheard")
    cluster.kill("slurmdbd")
    cluster.submit("physics", 60, partition="pb")
    time.sleep(ACCOUNTING_SECONDS)
    keep("sdiag_slurmdbd_down", "sdiag")
    keep("sacct_slurmdbd_down", *sacct)
    cluster.kill("slurmctld")
    keep("scontrol_ping_down", "scontrol", "ping")
    recorder.close(version, scenario.jobs)
    return FOLDER / release.series


def main() -> None:
    """Boots, records, and shows where."""
    spec = ClusterSpec(extra=SETTINGS)
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder), spec) as cluster,
    ):
        where = record(cluster)
    print(f"{len(list(where.iterdir()))} files in {os.path.relpath(where)}", file=sys.stderr)


if __name__ == "__main__":
    main()
