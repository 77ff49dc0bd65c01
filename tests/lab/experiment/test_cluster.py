"""Cells on Dask: on a scheduler with workers, and on workers that a scripted Slurm starts."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from shapleyprio.common.errors import ReplayError
from shapleyprio.lab.experiment.cluster import on_dask
from shapleyprio.lab.experiment.running import on_cores, run
from shapleyprio.replay.errors import DaskError
from shapleyprio.replay.policies import dask_cluster
from tests.lab.experiment.examples import Failing, experiment_of, runs_in, squares

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

SBATCH = """#!/bin/sh
# runs a copy of the job's script at once, in the background: the script is deleted then
[ "$1" = --test-only ] && exit 0
cp "$1" "$(dirname "$0")/script"
sh "$(dirname "$0")/script" > "$(dirname "$0")/printed" 2>&1 &
echo $! >> "$(dirname "$0")/pids"
echo "Submitted batch job $!"
"""

SCANCEL = """#!/bin/sh
kill "$@"
"""


def test_cells_run_on_the_workers_of_a_scheduler(tmp_path: Path) -> None:
    made = squares(tmp_path / "trail", 5)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as workers:
        rows = run(made, on_dask(workers.scheduler_address, workers=1))
        assert runs_in(tmp_path / "trail") == [0, 1, 2, 3, 4]
        assert rows == run(made, on_cores(1))
        with pytest.raises(ReplayError, match="nobody can run this"):
            run(experiment_of([Failing()]), on_dask(workers.scheduler_address, workers=1))


@pytest.mark.usefixtures("python_beyond_a_blank")
def test_workers_are_started_as_jobs_of_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra `cluster` is not installed")
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.chdir(tmp_path)
    config = import_module("dask.config")
    with config.set({"jobqueue.slurm.local-directory": str(tmp_path)}):
        try:
            rows = run(squares(tmp_path / "trail", 3), on_dask("slurm", workers=1))
        finally:
            print((tmp_path / "printed").read_text())  # why there is no worker
    assert [row["value"] for row in rows] == [0.0, 0.0, 1.0, 1.0, 4.0, 8.0]
    assert len((tmp_path / "pids").read_text().split()) == 1


def test_what_slurm_refuses_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra `cluster` is not installed")
    refusing = tmp_path / "sbatch"
    refusing.write_text("#!/bin/sh\necho 'allocation failure: Invalid account' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    expected = r"Dask on Slurm: a worker's job is refused \(allocation failure: Invalid account\)"
    with pytest.raises(DaskError, match=expected):
        run(squares(tmp_path / "trail", 3), on_dask("slurm", workers=1))
    refusing.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DaskError, match="sbatch cannot be run"):
        run(squares(tmp_path / "trail", 3), on_dask("slurm", workers=1))


def test_without_a_scheduler_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1)
    with pytest.raises(DaskError, match=r"answers at tcp://127\.0\.0\.1:9 "):
        run(experiment_of([Failing()]), on_dask("tcp://127.0.0.1:9", workers=1))


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(dask_cluster, "import_module", missing)
    with pytest.raises(DaskError, match=r"pip install 'shapleyprio\[cluster\]'"):
        on_dask("slurm", workers=1)
