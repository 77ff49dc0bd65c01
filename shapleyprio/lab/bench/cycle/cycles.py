"""Cycles over a long queue."""

from __future__ import annotations

from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.lab.bench.cycle.workloads import CLUSTER, CONFIG, BusyCluster
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, of_runs, seconds_of
from shapleyprio.store import Store

PENDING = 10_000
RUNNING = 1_000
RUNS = 7
SECONDS_BELOW = 1.0
POLL_SECONDS = 30


def measure_cycle(asked: BenchParameters) -> list[Measurement]:
    """Measures cycles that write nothing and cycles that write everything."""
    progress = asked.bar("cycles", 2 * RUNS)
    cluster = BusyCluster(pending=PENDING, running=RUNNING)
    with Store.open(f"sqlite:///{asked.folder / 'cycles.db'}", create=True) as store:
        cycle = Cycle(CONFIG, cluster, store.cluster(CLUSTER))
        cluster.advance(cluster.now + POLL_SECONDS)
        cycle.run()
        quiet = []
        for done in range(1, RUNS + 1):
            quiet.append(_timed(cycle, cluster, writes=0))
            progress(done)
        stormy = []
        for done in range(1, RUNS + 1):
            cluster.change_places(done)
            stormy.append(_timed(cycle, cluster, writes=PENDING))
            progress(RUNS + done)
    queue = f"{PENDING:,} pending and {RUNNING:,} running jobs"
    changed = f"every organization changes rank: {PENDING:,} writes"
    return [
        of_runs("cycle", f"{queue}, {what}", seconds, unit="s", below=SECONDS_BELOW)
        for what, seconds in (("order unchanged", quiet), (changed, stormy))
    ]


def _timed(cycle: Cycle, cluster: BusyCluster, *, writes: int) -> float:
    cluster.advance(cluster.now + POLL_SECONDS)
    written = []
    seconds = seconds_of(lambda: written.append(cycle.run().pushed.applied))
    if written != [writes]:
        raise RuntimeError(f"the cycle wrote {written[0]} priorities instead of {writes}")
    return seconds
