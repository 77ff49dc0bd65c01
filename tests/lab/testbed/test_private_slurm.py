from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.testbed.machine import TestbedError
from shapleyprio.lab.testbed.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Boot = Callable[[ClusterSpec], PrivateSlurm]

pytestmark = pytest.mark.real_slurm

PATIENCE_SECONDS = 90.0  # real ones, on a busy machine
EPOCH = 1_772_438_400


def accounted(slurm: PrivateSlurm, job: int) -> tuple[str, int]:
    """State and elapsed seconds in the accounting database."""
    row = slurm.run("sacct", "-nPX", "-j", str(job), "-o", "State,ElapsedRaw").strip()
    state, _, elapsed = row.partition("|")
    return state, int(elapsed or -1)


def completed(slurm: PrivateSlurm, job: int, real_seconds: float = PATIENCE_SECONDS) -> int:
    wait_until(
        lambda: accounted(slurm, job)[0] == "COMPLETED",
        real_seconds=real_seconds,
        what=f"job {job} to be accounted",
    )
    return accounted(slurm, job)[1]


def processes_of(directory: Path) -> list[str]:
    """Every process that has the directory in its environment, arguments or open files."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = [*process.environ().values(), *process.cmdline()]
            links = [str(link.readlink()) for link in Path(f"/proc/{process.pid}/fd").iterdir()]
            if any(str(directory) in text for text in (*words, *links)):
                found.append(f"{process.pid} {process.name()}")
    return found


@contextmanager
def booted(spec: ClusterSpec, prepared: Path) -> Iterator[PrivateSlurm]:
    """A cluster with two accounts, in a short directory."""
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder, "c"), spec, prepared=prepared) as slurm,
    ):
        slurm.add_accounts({"physics": None, "particles": "physics"})
        yield slurm


@pytest.fixture(scope="module")
def slurm(prepared_database: Path) -> Iterator[PrivateSlurm]:
    spec = ClusterSpec(name="one", partitions={"pa": ["a1"], "pb": ["b1", "b2"]})
    with booted(spec, prepared_database) as slurm:
        yield slurm


def test_a_job_runs_and_is_accounted(slurm: PrivateSlurm) -> None:
    job = slurm.submit("particles", 2, processors=2, partition="pb", job_name="two seconds")
    assert 2 <= completed(slurm, job) <= PATIENCE_SECONDS
    before = int(time.time())
    assert before <= slurm.now() <= time.time()


def test_stop_leaves_no_process(boot_slurm: Boot) -> None:
    slurm = boot_slurm(ClusterSpec(speed=60))
    slurm.add_accounts({"physics": None})
    slurm.submit("physics", 60_000)
    slurm.submit("physics", 60_000, extra=["--export=NONE"])
    wait_until(
        lambda: slurm.run("squeue", "-h", "-t", "R").count("\n") == 2,
        real_seconds=PATIENCE_SECONDS,
        what="two running jobs",
    )
    assert len(processes_of(slurm.directory)) > 8
    slurm.stop()
    assert processes_of(slurm.directory) == []
    slurm.stop()


def test_nothing_is_left_when_its_owner_is_killed(
    prepared_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("k")
    code = f"""
        import time
        from pathlib import Path
        from shapleyprio.lab.testbed.cluster import ClusterSpec, PrivateSlurm
        slurm = PrivateSlurm(Path({str(directory)!r}), ClusterSpec(),
                             prepared=Path({str(prepared_database)!r}))
        slurm.start()
        print("up", flush=True)
        time.sleep(60)
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    wait_until(
        lambda: processes_of(directory) == [],
        real_seconds=PATIENCE_SECONDS,
        what="an empty machine",
    )


def test_an_interrupt_in_a_with_block_stops_the_cluster(prepared_database: Path) -> None:
    directory = prepared_database.parents[0] / "interrupted"
    slurm = PrivateSlurm(directory, ClusterSpec(), prepared=prepared_database)
    with pytest.raises(KeyboardInterrupt), slurm:
        raise KeyboardInterrupt
    assert processes_of(directory) == []


def test_the_controller_survives_a_kill(slurm: PrivateSlurm) -> None:
    job = slurm.submit("physics", 10)
    slurm.wait_until(
        lambda: slurm.run("squeue", "-h", "-j", str(job), "-o", "%T").strip() == "RUNNING",
        real_seconds=PATIENCE_SECONDS,
        what="the job to start",
    )
    # a job that runs and is saved as waiting is started again, which its node refuses
    slurm.run("scontrol", "update", f"JobId={job}", "Comment=survivor")
    state = slurm.directory / "state" / "job_state"
    wait_until(
        lambda: state.exists() and b"survivor" in state.read_bytes(),
        real_seconds=PATIENCE_SECONDS,
        what="the controller to save the job",
    )
    slurm.kill("slurmctld")
    with pytest.raises(TestbedError, match="scontrol ping: rc 1"):
        slurm.run("scontrol", "ping")
    slurm.restart("slurmctld")
    assert 10 <= completed(slurm, job) <= PATIENCE_SECONDS


def test_accounting_survives_a_kill(slurm: PrivateSlurm) -> None:
    slurm.kill("slurmdbd")
    job = slurm.submit("physics", 1)
    with pytest.raises(TestbedError, match="Connection refused"):
        slurm.run("sacct")
    slurm.restart("slurmdbd")
    assert 1 <= completed(slurm, job) <= PATIENCE_SECONDS


def test_a_frozen_controller_answers_once_thawed(slurm: PrivateSlurm) -> None:
    slurm.freeze("slurmctld")
    with pytest.raises(TestbedError, match="no answer within 1 s"):
        slurm.run("squeue", timeout=1)
    slurm.thaw("slurmctld")
    assert "JOBID" in slurm.run("squeue")


def test_clusters_run_side_by_side(slurm: PrivateSlurm, boot_slurm: Boot) -> None:
    second = boot_slurm(ClusterSpec(name="two"))
    assert "one" in slurm.run("scontrol", "show", "config")
    assert "two" in second.run("scontrol", "show", "config")


@pytest.fixture(scope="module")
def accelerated(prepared_database: Path) -> Iterator[PrivateSlurm]:
    """A cluster whose minute is a second; last, for it computes even when nobody asks it."""
    with booted(ClusterSpec(speed=60, epoch=EPOCH), prepared_database) as slurm:
        yield slurm


def test_the_accelerated_clock_starts_where_it_is_set(accelerated: PrivateSlurm) -> None:
    assert 0 <= accelerated.now() - EPOCH < 60 * 3 * PATIENCE_SECONDS


def test_an_accelerated_hour_is_a_minute(accelerated: PrivateSlurm) -> None:
    before, clock, began = time.monotonic(), accelerated.now(), time.monotonic()
    job = accelerated.submit("physics", 600)
    elapsed = completed(accelerated, job)
    took = time.monotonic() - began
    passed = accelerated.now() - clock
    assert 600 <= elapsed <= passed
    assert 9.5 <= took <= PATIENCE_SECONDS + 10
    assert passed <= 60 * (time.monotonic() - before) + 60


def test_python_shares_the_accelerated_clock_and_its_events_do_too(
    accelerated: PrivateSlurm,
) -> None:
    code = "import threading, time\nthreading.Event().wait(60)\ntime.sleep(60)\nprint(time.time())"
    (accelerated.directory / "waits_two_minutes.py").write_text(code)
    began, clock = time.monotonic(), accelerated.now()
    printed = subprocess.run(
        [sys.executable, "-m", "waits_two_minutes"],
        env={
            **accelerated.environment,
            "PYTHONPATH": f"{accelerated.directory}:{Path.cwd()}",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    ).stdout
    assert 2 <= time.monotonic() - began < PATIENCE_SECONDS  # of the machine's clock it takes 120
    assert clock + 120 <= float(printed) <= accelerated.now() + 1
