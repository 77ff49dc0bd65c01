"""What Slurm 22.05.8 printed in a federation of c1 and c2: each job counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapleyprio.fairness.runs import JobRecord, run_of
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.port import Connection
from shapleyprio.slurm.text.accounting import FIELDS, accounting_line
from tests.slurm.test_command_line import Programs, say, waiting

C1 = """\
67108865|67108865|alpha|1795397698|1795397698|1795397718|20|00:00:00|COMPLETED|2|billing=2,cpu=2,node=1|a1
67108866|67108866|alpha|1795397698|None|1795397699|0|00:00:00|REVOKED|2||None assigned
67108867|67108867|beta|1795397703|1795397719|1795397724|5|00:00:00|COMPLETED|2|billing=2,cpu=2,node=1|a1
134217729|134217729|beta|1795397703|None|1795397719|0|00:00:00|REVOKED|2||None assigned
67108869|67108868_0|alpha|1795397703|1795397725|1795397729|4|00:00:00|COMPLETED|2|billing=2,cpu=2,node=1|a1
"""
C2 = """\
67108865|67108865|alpha|1795397698|1795397698|1795397698|0|00:00:00|REVOKED|2||None assigned
67108866|67108866|alpha|1795397698|1795397699|1795397719|20|00:00:00|COMPLETED|2|billing=2,cpu=2,node=1|b1
67108867|67108867|beta|1795397703|None|1795397719|0|00:00:00|REVOKED|2||None assigned
134217729|134217729|beta|1795397703|1795397719|1795397724|5|00:00:00|COMPLETED|2|billing=2,cpu=2,node=1|b1
"""
PRINTED = (
    *("JobIDRaw", "JobID", "Account", "Submit", "Start", "End", "ElapsedRaw", "Suspended"),
    *("State", "AllocCPUS", "AllocTRES", "NodeList"),
)
RAN = {67108865: 20, 67108866: 20, 67108867: 5, 134217729: 5, 67108869: 4}
"""Job -> for how many seconds; two of them at c2."""

WAITING = {
    "c1": {67108871: "c1 c1 c1,c2", 134217729: "c1 c2 c1,c2", 67108869: "c1 c1 c1"},
    "c2": {67108871: "c2 c1 c1,c2", 134217729: "c2 c2 c1,c2", 134217730: "c2 c2 c2"},
}
"""Cluster -> pending job -> cluster, origin and clusters that it may run on."""


def records(printed: str) -> list[JobRecord]:
    """What the daemon reads of these rows."""
    found = []
    for line in printed.splitlines():
        row = dict(zip(PRINTED, line.split("|"), strict=True))
        cells = {"User": "ann", "Partition": "all", "TimelimitRaw": "10", **row}
        cells["Eligible"] = row["Submit"]
        record = accounting_line("".join(f"{cells[name]}\x1f" for name in FIELDS), "cpu", "\x1f")
        assert isinstance(record, JobRecord), record
        found.append(record)
    return found


def test_a_job_counts_at_the_cluster_where_it_ran_and_its_revoked_rows_nowhere() -> None:
    runs = [run_of(record, {}) for record in records(C1) + records(C2)]
    ran = {run.key.job_id: (run.end or 0) - run.begin for run in runs if run is not None}
    assert ran == RAN
    assert sum(run is not None for run in runs) == len(RAN)


@pytest.mark.parametrize("order", [(C1, C2), (C2, C1)])
def test_the_exports_of_both_clusters_have_each_run_once(
    order: tuple[str, str], tmp_path: Path
) -> None:
    files = [tmp_path / "first.sacct", tmp_path / "second.sacct"]
    for file, rows in zip(files, order, strict=True):
        file.write_text("|".join(PRINTED) + "\n" + rows)
    log = read_log([str(file) for file in files])
    assert dict(zip(log.job.tolist(), log.processing_time.tolist(), strict=True)) == RAN
    assert len(log.job) == len(RAN)


@pytest.mark.parametrize(("cluster", "counted"), [("c1", {67108871, 67108869}), ("c2", None)])
def test_a_waiting_job_counts_at_its_origin(
    cluster: str, counted: set[int] | None, tmp_path: Path
) -> None:
    programs = Programs(tmp_path)
    programs.scontrol()
    programs.install("sprio", ":")
    t = "1795397703"
    own = ("all", "normal", "10", "0", t, "2", "1:00", t)
    listed = "; ".join(
        waiting(job, str(job), *own).rpartition(";")[0] + "; echo" for job in WAITING[cluster]
    )
    siblings = "\n".join(f"{job}  {names}" for job, names in WAITING[cluster].items())
    programs.install(
        "squeue", f'case "$*" in *SiblingsViable*) {say(siblings)};; *) {listed};; esac'
    )
    slurm = CommandLineSlurm(Connection(bin_directory=tmp_path, timeout_seconds=20))
    queue = slurm.pending()
    found = {job.job_id for job in queue.jobs}
    assert found == (counted or {134217729, 134217730})
    origins = {job.job_id: cluster for job, cluster in queue.elsewhere}
    assert origins == ({134217729: "c2"} if cluster == "c1" else {67108871: "c1"})


def test_without_a_federation_nobody_asks_for_siblings(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    programs.scontrol()
    programs.install("sprio", ":")
    t = "1795397703"
    programs.install("squeue", waiting(8, "8", "all", "normal", "10", "0", t, "2", "1:00", t))
    slurm = CommandLineSlurm(Connection(bin_directory=tmp_path, timeout_seconds=20))
    assert [job.job_id for job in slurm.pending().jobs] == [8]
    assert len(programs.calls("squeue")) == 1
