"""A log larger than the memory that is free ends with one line, not by swapping or a kill."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapleyprio.common.errors import Remedy
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs import columns, files, memory
from shapleyprio.replay.logs.memory import free_memory
from shapleyprio.replay.logs.reading import read_log

MIB = 1 << 20
HEADER = b"JobIDRaw|Submit|Start|ElapsedRaw|AllocCPUS|NodeList\n"
LINE = b"7|1767225600|1767225660|60|4|n1\n"


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Linux shows its control groups; nothing is there."""
    monkeypatch.setattr(memory, "CONTROL_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "OWN_CONTROL_GROUPS", tmp_path / "own")
    return tmp_path / "groups"


def group(folder: Path, **contents: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_where_no_control_group_has_a_limit_the_machine_s_memory_counts(
    groups: Path, tmp_path: Path
) -> None:
    without = free_memory()
    assert without is not None
    assert without > 0
    (tmp_path / "own").write_text("0::/user.slice/session\n")
    group(groups / "user.slice", memory__max="max\n", memory__current="7\n", memory__stat="")
    found = free_memory()
    assert found is not None
    assert found > MIB


def test_the_tightest_control_group_around_counts_and_what_it_only_caches_does_not(
    groups: Path, tmp_path: Path
) -> None:
    (tmp_path / "own").write_text("3:cpu,cpuacct:/\n0::/job/step/unseen\n")
    stat = f"anon 5\nfile {9 * MIB}\nactive_file {MIB}\ninactive_file {2 * MIB}\n"
    group(groups / "job", memory__max=f"{8 * MIB}\n", memory__current="0\n", memory__stat="")
    group(
        groups / "job/step",
        memory__max="max\n",
        memory__high=f"{9 * MIB}\n",
        memory__current=f"{6 * MIB}\n",
        memory__stat=stat,
    )
    assert free_memory() == (9 - 6 + 3) * MIB
    group(groups / "job", memory__current=f"{7 * MIB}\n")
    assert free_memory() == MIB


def test_the_first_version_of_control_groups_is_known(groups: Path, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("4:memory:/slurm/job_7\n1:cpu:/other\n")
    group(
        groups / "memory/slurm/job_7",
        memory__limit_in_bytes=f"{5 * MIB}\n",
        memory__usage_in_bytes=f"{4 * MIB}\n",
        memory__stat=f"active_file 3\ntotal_active_file {MIB}\ntotal_inactive_file 0\n",
    )
    group(groups / "memory/slurm", memory__limit_in_bytes="9223372036854771712\n")
    assert free_memory() == 2 * MIB


def test_reading_stops_where_the_memory_gets_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_bytes(HEADER + LINE * 100)
    monkeypatch.setattr(columns, "PIECE", 500)
    monkeypatch.setattr(files, "BLOCK", 64)
    monkeypatch.setattr(memory, "free_memory", lambda: MIB)
    with pytest.raises(LogError, match="larger than the memory that is free") as caught:
        read_log(str(log))
    assert caught.value.remedy is Remedy.PART_OF_LOG


@pytest.fixture
def limited() -> Iterator[Path]:
    """A real control group in which 700 MiB may be taken."""
    roots = (("memory", "memory.limit_in_bytes"), (".", "memory.max"), ("unified", "memory.max"))
    for mount, limit in roots:
        made = memory.CONTROL_GROUPS / mount / f"shapleyprio-test-{os.getpid()}"
        try:
            made.mkdir()
        except OSError:
            continue
        try:
            (made / limit).write_text(f"{700 * MIB}")
        except OSError:
            made.rmdir()
            continue
        yield made
        made.rmdir()
        return
    pytest.skip("no control group can be made here")


def test_a_replay_in_a_control_group_ends_with_one_line_before_the_group_is_full(
    limited: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.sacct"

    def run(jobs: int, program: str) -> subprocess.CompletedProcess[str]:
        with log.open("wb") as file:
            file.write(HEADER)
            for _ in range(jobs // 1000):
                file.write(LINE * 1000)
        join = f"import os; open({str(limited / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        return subprocess.run(
            [sys.executable, "-c", join + program], check=False, capture_output=True, text=True
        )

    reads = (
        f"from shapleyprio.replay.logs.reading import read_log; print(len(read_log('{log}').job))"
    )
    short = run(100_000, reads)
    assert (short.stdout, short.stderr) == ("100000\n", "")
    words = ["replay", str(log), "--deal-users", "1"]
    long = run(4_000_000, f"from shapleyprio.cli import main; main({words})")
    assert long.returncode == 2, long.stderr
    assert long.stderr.startswith(f"shapleyprio: {log}: is larger than the memory that is free (")
    assert len(long.stderr.splitlines()) == 1
