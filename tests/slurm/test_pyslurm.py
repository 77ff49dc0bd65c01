"""The adapter that asks pyslurm in a worker process, with a stand-in for pyslurm."""

from __future__ import annotations

import ast
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

import shapleyprio
from shapleyprio.common.workers import PYTHON
from shapleyprio.slurm.adapters import ADAPTERS, connect
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.command_line.orders import OUT_OF_TIME
from shapleyprio.slurm.port import (
    AdapterInUse,
    Connection,
    Controller,
    SlurmRefusedError,
    SlurmUnavailableError,
)
from shapleyprio.slurm.pyslurm.adapter import PyslurmSlurm
from tests.slurm import pyslurm_stand_in
from tests.slurm.test_command_line import Programs

ROOT = Path(shapleyprio.__file__).parents[1]
DEADLINE = 1.5
LONG = 30.0
CONTROLLER = Controller(time=1_780_000_000, accounting_backlog=3, submitted=41, changed=5)


START = "from shapleyprio.slurm.pyslurm.__main__ import main; main()"


class StandIn:
    """The folder from which the worker imports its pyslurm, and that of Slurm's commands."""

    def __init__(self, folder: Path) -> None:
        self.library = folder / "library"
        self.library.mkdir()
        source = Path(pyslurm_stand_in.__file__).read_text()
        (self.library / "pyslurm.py").write_text(source)
        (folder / "bin").mkdir()
        self.programs = Programs(folder / "bin")
        self.programs.scontrol("update*) exit 0;;", "-*) cat >/dev/null;;")
        self.does()

    def does(self, **events: object) -> None:
        partial = self.library / "new"
        partial.write_text(json.dumps(events))
        partial.rename(self.library / "does.json")

    def connection(self, timeout_seconds: float = LONG) -> Connection:
        return Connection(timeout_seconds=timeout_seconds, bin_directory=self.programs.directory)

    def worker(self) -> Sequence[str]:
        return (*PYTHON, "-c", f"import sys; sys.path.insert(0, {str(self.library)!r}); {START}")

    def slurm(self, timeout_seconds: float = LONG, *, falls_back: bool = False) -> PyslurmSlurm:
        return PyslurmSlurm(
            self.connection(timeout_seconds), falls_back=falls_back, worker=self.worker()
        )

    def calls(self) -> list[str]:
        log = self.library / "log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


def worker_of(slurm: PyslurmSlurm) -> subprocess.Popen[str]:
    process = slurm._pyslurm._worker._process
    assert process is not None
    return process


# -- what is asked of whom


def test_the_controller_is_asked_through_pyslurm(stand_in: StandIn) -> None:
    slurm = stand_in.slurm()
    assert slurm.controller() == CONTROLLER
    assert slurm.cluster() == pyslurm_stand_in.CLUSTER
    assert slurm.adapter() == AdapterInUse(name="pyslurm")
    assert stand_in.programs.calls("") == []


def test_jobs_are_written_through_pyslurm_and_zeros_with_them(stand_in: StandIn) -> None:
    assert stand_in.slurm().write("nice", {"8": -5, "9": 0}) == {}
    assert {"8 {'nice': -5}", "9 {'nice': 0}"} < set(stand_in.calls())
    assert stand_in.programs.calls("") == []


def test_where_an_array_is_among_the_jobs_commands_write_all_in_their_order(
    stand_in: StandIn,
) -> None:
    assert stand_in.slurm().write("site_factor", {"8": 5, "33_[4-9]": 6, "9": 7}) == {}
    assert stand_in.calls() == []
    assert stand_in.programs.calls("scontrol")


def test_what_there_is_no_time_for_is_left(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.slurm.pyslurm.adapter.MOST_JOBS", 2)
    slurm = stand_in.slurm()
    slurm.controller()  # the worker has started
    stand_in.does(**{"modify 9": "slow"})
    slurm._timeout_seconds = pyslurm_stand_in.SLOW_SECONDS / 2
    refused = slurm.write("nice", {str(job): 1 for job in range(8, 13)})
    assert refused == dict.fromkeys(("10", "11", "12"), OUT_OF_TIME)


def test_the_worker_begins_no_write_once_others_may_write(stand_in: StandIn) -> None:
    slurm = stand_in.slurm()
    slurm.controller()  # the worker has started
    stand_in.does(**{"modify 9": "slow"})
    refused = slurm.write("nice", {"9": 1, "10": 1}, lambda: pyslurm_stand_in.SLOW_SECONDS / 2)
    assert refused == {"10": OUT_OF_TIME}
    assert not [call for call in stand_in.calls() if call.startswith("10 ")]


def test_a_job_that_slurm_refuses_is_named_and_the_others_are_written(stand_in: StandIn) -> None:
    stand_in.does(**{"modify 9": "Invalid job id specified"})
    refused = stand_in.slurm().write("nice", {"8": -5, "9": -6, "10": 2**31})
    assert refused.keys() == {"9", "10"}
    assert refused["9"] == "Invalid job id specified"
    assert "8 {'nice': -5}" in stand_in.calls()


def test_writing_stops_when_the_controller_is_away(stand_in: StandIn) -> None:
    stand_in.does(**{"modify 9": "Unable to contact slurm controller (connect failure)"})
    with pytest.raises(SlurmUnavailableError, match="slurmctld does not answer"):
        stand_in.slurm().write("nice", {"8": -5, "9": -6, "10": -7})
    assert "8 {'nice': -5}" in stand_in.calls()
    assert "modify 10" not in stand_in.calls()


def test_a_backup_controller_answers_for_the_primary(stand_in: StandIn) -> None:
    slurm = stand_in.slurm()
    slurm.controller()
    stand_in.does(**{"ping 0": "Unable to contact slurm controller (connect failure)"})
    assert slurm.controller() == CONTROLLER
    assert "ping 1" in stand_in.calls()


def test_what_the_document_leaves_to_commands_starts_no_worker(stand_in: StandIn) -> None:
    slurm = stand_in.slurm()
    for ask in (
        slurm.qos_priorities,
        slurm.layout,
        slurm.pending,
        lambda: slurm.values_of("nice", [1]),
        lambda: list(slurm.records(0, 1)),
    ):
        with pytest.raises(SlurmUnavailableError):  # there is no sacctmgr, squeue, sacct
            ask()
    assert slurm._pyslurm._worker._process is None


def test_only_the_worker_imports_pyslurm() -> None:
    importing = set()
    for file in Path(shapleyprio.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == "pyslurm" for name in names):
                importing.add(file.relative_to(ROOT).as_posix())
    assert importing == {"shapleyprio/slurm/pyslurm/__main__.py"}


# -- where pyslurm does not fit


UNFIT: dict[str, dict[str, object]] = {
    "cannot be imported here .libslurmfull.so is missing.": {
        "cannot_import": "libslurmfull.so is missing"
    },
    "built for Slurm 25.11, the cluster's is 26.05.5": {"built_for": (25, 11, 2)},
    "ended with signal 9": {"diag": "die"},
}


@pytest.mark.parametrize("why", UNFIT)
def test_where_pyslurm_does_not_fit_that_is_an_error_with_the_way_out(
    stand_in: StandIn, why: str
) -> None:
    stand_in.does(**UNFIT[why])
    with pytest.raises(SlurmRefusedError, match=f'{why}.*set slurm.adapter to "auto"') as refused:
        stand_in.slurm().controller()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("why", UNFIT)
def test_or_the_commands_are_asked_instead(stand_in: StandIn, why: str) -> None:
    stand_in.does(**UNFIT[why])
    stand_in.programs.install(
        "sdiag",
        "echo 'sdiag output at Monday (1780000000)'; echo 'DBD Agent queue size: 3'\n"
        "echo 'Jobs submitted: 41'; echo '  REQUEST_UPDATE_JOB  ( 3001) count:5  ave_time:306'",
    )
    slurm = stand_in.slurm(falls_back=True)
    for _ in range(2):
        assert slurm.controller() == CONTROLLER
    used = slurm.adapter()
    assert (used.name, used.instead_of) == ("command_line", "pyslurm")
    assert re.search(why, used.why)
    asked = len(stand_in.calls())
    assert slurm.write("nice", {"8": -5}) == {}
    assert len(stand_in.calls()) == asked
    assert stand_in.programs.calls("scontrol")


def test_a_controller_that_is_away_is_no_reason_to_fall_back(stand_in: StandIn) -> None:
    stand_in.does(config="Unable to contact slurm controller (connect failure)")
    slurm = stand_in.slurm(falls_back=True)
    with pytest.raises(SlurmUnavailableError, match="slurmctld does not answer"):
        slurm.controller()
    stand_in.does()
    assert slurm.controller() == CONTROLLER
    assert slurm.adapter().name == "pyslurm"


def test_the_configuration_knows_the_adapters() -> None:
    assert set(ADAPTERS) == {"command_line", "pyslurm", "auto"}
    assert connect(Connection(), "pyslurm").adapter().name == "pyslurm"
    assert type(connect(Connection())) is CommandLineSlurm


# -- the worker


def test_a_worker_that_hangs_is_killed_in_time_and_replaced(stand_in: StandIn) -> None:
    stand_in.does(diag="hang")
    slurm = stand_in.slurm(DEADLINE)
    beats = []
    done = threading.Event()

    def beat() -> None:
        while not done.wait(0.05):
            beats.append(time.monotonic())

    beating = threading.Thread(target=beat)
    beating.start()
    began = time.monotonic()
    with pytest.raises(SlurmUnavailableError, match=f"longer than {DEADLINE:g} s"):
        slurm.controller()
    took = time.monotonic() - began
    done.set()
    beating.join()
    assert DEADLINE <= took < DEADLINE + 30
    assert len(beats) > DEADLINE / 0.05 / 4  # nobody else stood still
    assert slurm._pyslurm._worker._process is None
    stand_in.does()
    slurm._pyslurm._time_limit = LONG
    assert slurm.controller() == CONTROLLER


def test_a_worker_that_was_killed_is_replaced_at_the_next_question(stand_in: StandIn) -> None:
    slurm = stand_in.slurm()
    slurm.controller()
    first = worker_of(slurm)
    first.kill()
    first.wait()
    assert slurm.controller() == CONTROLLER
    assert worker_of(slurm).pid != first.pid


def test_what_a_library_prints_is_no_answer(stand_in: StandIn) -> None:
    stand_in.does(diag="chat", config="chat")
    assert stand_in.slurm().controller() == CONTROLLER


def test_a_worker_goes_with_its_adapter(stand_in: StandIn) -> None:
    slurm = stand_in.slurm()
    slurm.controller()
    process = worker_of(slurm)
    del slurm
    gc.collect()
    assert process.wait(60) == -signal.SIGKILL


def test_a_worker_does_not_outlive_a_killed_daemon(stand_in: StandIn) -> None:
    program = (
        "import sys, time\n"
        "from shapleyprio.slurm.port import Connection\n"
        "from shapleyprio.slurm.pyslurm.adapter import PyslurmSlurm\n"
        f"slurm = PyslurmSlurm(Connection(), worker={stand_in.worker()!r})\n"
        "slurm.controller()\n"
        "print(slurm._pyslurm._worker._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as daemon:
        assert daemon.stdout is not None
        worker = int(daemon.stdout.readline())
        daemon.kill()
    deadline = time.monotonic() + LONG
    while psutil.pid_exists(worker) and psutil.Process(worker).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)
