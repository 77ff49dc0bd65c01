"""One replay of Ref by workers of a Dask cluster on this machine, beside one core alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

from shapleyprio.lab.bench.measure import MakeBar, Measurement, of_runs
from shapleyprio.lab.bench.replay.replay_workloads import SECONDS, made_up
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.policies.dask_cluster import check_dask_packages

ORGANIZATIONS = (14, 16)
FEW_ORGANIZATIONS = 3
WORKERS = 2
"""Each of one core."""


def measure_dask(bar: MakeBar) -> Iterator[Measurement]:
    """Measures Ref on one core, and how many times as fast the workers are.

    Args:
        bar: makes a progress bar.

    Raises:
        DaskError: its packages are missing.
        RuntimeError: the workers have decided otherwise.
    """
    check_dask_packages("")
    distributed = import_module("distributed")
    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        run_policy(made_up(FEW_ORGANIZATIONS), "ref", dask=client)
        for k in ORGANIZATIONS:
            workload, show = made_up(k), bar(f"ref, k = {k}", 2 * SECONDS)
            alone = run_policy(workload, "ref", cores=1, progress=show)
            spread = run_policy(workload, "ref", dask=client, progress=partial(_behind, show))
            if (alone.start != spread.start).any() or alone.contribution != spread.contribution:
                raise RuntimeError(f"{WORKERS} workers decide otherwise for {k} organizations")
            what = f"ref, {k} organizations"
            yield of_runs("dask", f"{what}, one core", [alone.seconds], unit="s")
            faster = alone.seconds / spread.seconds
            yield of_runs("dask", f"{what}, {WORKERS} workers: so fast", [faster], unit="times")


def _behind(show: Callable[[int], None], done: int) -> None:
    show(SECONDS + done)
