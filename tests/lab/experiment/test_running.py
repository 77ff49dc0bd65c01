"""Running cells: every one once, in any process, and again only what was not finished."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing import active_children
from pathlib import Path

import psutil
import pytest

from shapleyprio.common.errors import OutputError, Remedy, ReplayError
from shapleyprio.lab.experiment.cells import ExperimentError, Row, WindowsParameters
from shapleyprio.lab.experiment.general import windows_experiment
from shapleyprio.lab.experiment.keeping import ResultCache
from shapleyprio.lab.experiment.running import run
from shapleyprio.lab.testbed.processes import wait_until
from tests.lab.experiment.examples import (
    Dying,
    Failing,
    experiment_of,
    runs_in,
    squares,
    write_log,
)
from tests.processes import has_ended

ROOT = Path(__file__).parents[3]

SLOW = """
import sys
from pathlib import Path
from shapleyprio.lab.experiment.keeping import ResultCache
from shapleyprio.lab.experiment.running import run
from tests.lab.experiment.slow import slow_experiment

if __name__ == "__main__":
    made = slow_experiment()
    try:
        run(made, cores=2, kept=ResultCache.of(Path(sys.argv[1]), made))
    except KeyboardInterrupt:
        print("interrupted")
"""


def rows_of(count: int) -> list[Row]:
    return [
        {"number": number, "how": how, "value": float(number**power)}
        for number in range(count)
        for how, power in (("square", 2), ("cube", 3))
    ]


@contextmanager
def nothing_left() -> Iterator[None]:
    """Neither a process nor a thread of what runs meanwhile."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before
    assert not active_children()


@pytest.mark.parametrize("cores", [1, 2])
def test_rows_come_in_the_order_of_the_cells_however_many_cores(tmp_path: Path, cores: int) -> None:
    reported: list[tuple[int, int]] = []
    with nothing_left():
        rows = run(
            squares(tmp_path / "trail", 4),
            cores,
            progress=lambda finished, kept: reported.append((finished, kept)),
        )
    assert rows == rows_of(4)
    assert reported == [(finished, 0) for finished in range(5)]
    assert runs_in(tmp_path / "trail") == [0, 1, 2, 3]


def test_what_is_kept_is_not_run_again(tmp_path: Path) -> None:
    trail, directory = tmp_path / "trail", tmp_path / "kept"
    made = squares(trail, 3)
    first = run(made, cores=1, kept=ResultCache.of(directory, made))
    (directory / "cells" / "square-1.json").unlink()
    reported: list[tuple[int, int]] = []
    again = run(
        made,
        cores=1,
        kept=ResultCache.of(directory, made),
        progress=lambda finished, kept: reported.append((finished, kept)),
    )
    assert again == first == rows_of(3)
    assert runs_in(trail) == [0, 1, 1, 2]
    assert reported == [(2, 2), (3, 2)]


def test_more_cells_of_the_same_experiment_go_on_where_it_ended(tmp_path: Path) -> None:
    trail, directory = tmp_path / "trail", tmp_path / "kept"
    for count in (2, 4):
        made = squares(trail, count)
        run(made, cores=1, kept=ResultCache.of(directory, made))
    assert runs_in(trail) == [0, 1, 2, 3]


def test_a_cell_that_fails_ends_the_run_and_leaves_what_was_finished(tmp_path: Path) -> None:
    trail, directory = tmp_path / "trail", tmp_path / "kept"
    made = experiment_of([*squares(trail, 2).cells, Failing()])
    with pytest.raises(ReplayError, match="nobody can run this"):
        run(made, cores=1, kept=ResultCache.of(directory, made))
    assert len(list((directory / "cells").iterdir())) == 2


def test_processes_ignore_the_current_directory_and_this_one_does_not_begin_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('imported from the current directory')")
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    assert run(squares(tmp_path / "trail", 2), cores=2)
    assert dict(os.environ) == before


def test_an_error_comes_back_from_another_process() -> None:
    with nothing_left(), pytest.raises(ReplayError, match="nobody can run this"):
        run(experiment_of([Failing("one"), Failing("two")]), cores=2)


def test_a_process_that_dies_is_reported_in_one_line() -> None:
    with pytest.raises(ExperimentError, match="killed from outside") as caught:
        run(experiment_of([Dying(1), Dying(2)]), cores=2)
    assert caught.value.remedy is Remedy.FEWER_CORES


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_after_a_kill_no_process_is_left_and_finished_cells_are_kept(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    program, directory = tmp_path / "program.py", tmp_path / "kept"
    program.write_text(SLOW)
    command = [sys.executable, str(program), str(directory)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    cells = directory / "cells"
    while not list(cells.glob("quick*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(signal_number)
    process.wait()
    wait_until(
        lambda: all(map(has_ended, children)), real_seconds=60, what="the end of its processes"
    )
    kept = [json.loads(file.read_text())["rows"] for file in cells.glob("*.json")]
    assert kept == [[{"how": "quick", "number": 0, "value": 0.0}]]


def runs_cells(process: psutil.Process) -> bool:
    return any("spawn_main" in word for word in process.cmdline())


def holds_ctrl_c_back(process: psutil.Process) -> bool:
    status = Path(f"/proc/{process.pid}/status").read_text()
    (blocked,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
    return bool(int(blocked, 16) >> (signal.SIGINT - 1) & 1)


def test_ctrl_c_while_processes_start_is_the_parents_alone(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "kept")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as a terminal sends it to all processes of its session
    )
    while not (children := list(filter(runs_cells, psutil.Process(process.pid).children()))):
        assert process.poll() is None
        time.sleep(0.01)
    assert all(map(holds_ctrl_c_back, children))  # before Python has begun in them
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate() == ("interrupted\n", "")


# what a directory refuses


def test_another_experiment_is_refused(tmp_path: Path) -> None:
    ResultCache.of(tmp_path / "kept", experiment_of([], name="one"))
    with pytest.raises(ExperimentError, match="cells of experiment one, not two"):
        ResultCache.of(tmp_path / "kept", experiment_of([], name="two"))


def test_another_seed_is_refused(tmp_path: Path) -> None:
    trail = tmp_path / "trail"
    made = squares(trail, 1)
    run(made, cores=1, kept=ResultCache.of(tmp_path / "kept", made))
    other = squares(trail, 1, seed=1)
    with pytest.raises(OutputError, match=r"square-0\.json: .* other parameters"):
        run(other, cores=1, kept=ResultCache.of(tmp_path / "kept", other))


def test_another_version_is_refused(tmp_path: Path) -> None:
    ResultCache.of(tmp_path / "kept", experiment_of([]))
    manifest = tmp_path / "kept" / "experiment.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": "0.0.9"}))
    with pytest.raises(ExperimentError, match=r"cells of version 0\.0\.9"):
        ResultCache.of(tmp_path / "kept", experiment_of([]))


def test_a_log_that_has_changed_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("before")
    ResultCache.of(tmp_path / "kept", experiment_of([], inputs=[log]))
    log.write_text("after")
    with pytest.raises(ExperimentError, match=r"another log\.swf"):
        ResultCache.of(tmp_path / "kept", experiment_of([], inputs=[log]))


def test_a_policy_of_a_users_own_that_has_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, module = write_log(tmp_path / "busy.swf"), tmp_path / "kept_by.py"
    monkeypatch.delitem(sys.modules, "kept_by", raising=False)
    monkeypatch.chdir(tmp_path)
    parameters = WindowsParameters(policies=("kept_by:function@1h", "fcfs", "fairshare:7d"))
    for text, refused in (("def function(state): ...", False), ("function = print", True)):
        module.write_text(text)
        made = windows_experiment([str(log)], parameters)
        with pytest.raises(ExperimentError, match="kept_by") if refused else nullcontext():
            ResultCache.of(tmp_path / "kept", made)


def test_somebody_elses_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ExperimentError, match="is not empty"):
        ResultCache.of(tmp_path, experiment_of([]))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    made = squares(tmp_path / "trail", 1)
    kept = ResultCache.of(tmp_path / "kept", made)
    damaged = tmp_path / "kept" / "cells" / "square-0.json"
    damaged.write_text("{")
    with pytest.raises(OutputError, match=f"{damaged}: .*remove it to go on"):
        run(made, cores=1, kept=kept)
