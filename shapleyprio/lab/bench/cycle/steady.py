"""Cycles over a short queue, with a short past and a long one in the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.lab.bench.cycle.workloads import CLUSTER, CONFIG, NOW, BusyCluster, day_of_records
from shapleyprio.lab.bench.measure import Measurement, of_runs, seconds_of
from shapleyprio.slurm.text.accounting import accounting_line
from shapleyprio.slurm.text.values import SEPARATOR
from shapleyprio.store import Store

SMALL = 10_000
"""Records of the short past; of the long one there are as many as were ingested."""

PENDING = 500
RUNNING = 500
RUNS = 31
POLL_SECONDS = 30
RATIO_BELOW = 1.5
"""Room for noise: the cost must not grow with the past."""


def steady(
    small_url: str, large_url: str, large: int, progress: Callable[[int], None]
) -> list[Measurement]:
    """Measures the same cycles on two stores, in turn.

    Args:
        small_url: a store of `SMALL` records of the past.
        large_url: one of `large` records.
        large: how many.
        progress: called with how many rounds are done, of `RUNS`.
    """
    past = _last_hour()
    seconds: dict[str, list[float]] = {small_url: [], large_url: []}
    with Store.open(small_url) as small_store, Store.open(large_url) as large_store:
        stages = {
            url: (cluster, Cycle(CONFIG, cluster, store.cluster(CLUSTER)))
            for url, store in ((small_url, small_store), (large_url, large_store))
            for cluster in [BusyCluster(pending=PENDING, running=RUNNING, past=past)]
        }
        for _, cycle in stages.values():
            cycle.run()
        for done in range(1, RUNS + 1):
            for url, (cluster, cycle) in stages.items():
                cluster.advance(cluster.now + POLL_SECONDS)
                seconds[url].append(seconds_of(cycle.run))
            progress(done)
    ratio = median(seconds[large_url]) / median(seconds[small_url])
    what = "long past against short past"
    queue = f"{PENDING} pending and {RUNNING} running jobs, a past of"
    return [
        of_runs("steady", f"{queue} {SMALL:,} runs", seconds[small_url], unit="s"),
        of_runs("steady", f"{queue} {large:,} runs", seconds[large_url], unit="s"),
        replace(of_runs("steady", what, [ratio], unit="times", below=RATIO_BELOW), runs=RUNS),
    ]


def _last_hour() -> list[JobRecord]:
    """Returns the records that every cycle reads again because of the overlap."""
    records = (accounting_line(line, "cpu", SEPARATOR) for line in day_of_records(1))
    return [
        record
        for record in records
        if isinstance(record, JobRecord)
        and record.end is not None
        and record.end >= NOW - CONFIG.service.overlap
    ]
