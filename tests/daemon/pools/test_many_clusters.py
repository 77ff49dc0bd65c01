"""Many clusters on one store, whose daemons work at the same moments."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.store import Store
from tests.daemon.consortium import Cluster, config
from tests.store.servers import on_each_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.store.servers import Databases

CLUSTERS = ["c1", "c2", "c3", "c4", "c5"]
CYCLES = 8
PATIENCE_SECONDS = 120


def live(name: str, store: Store, wait_for_others: Callable[[], object]) -> object:
    """Runs cycles of one cluster while jobs come and go, and returns its ledger at the end."""
    slurm = Cluster(name)
    chance = random.Random(name)
    with Lease(store.cluster(name), seconds=300).held() as ours:
        cycle = Cycle(config(), slurm, ours, clock=lambda: slurm.now)
        for _ in range(CYCLES):
            for _ in range(chance.randrange(4)):
                slurm.submit(
                    chance.choice(["physics", "biology", "guest"]),
                    processors=chance.randint(1, 8),
                    processing_time=chance.randint(1, 90),
                )
            slurm.wait(30)
            wait_for_others()
            cycle.run(dry_run=False)
            cycle.prune()
    with store.cluster(name).reading() as view:
        return view.ledger.watermark(), view.ledger.entries(), view.history.latest_standings()


@on_each_database
def test_no_cluster_loses_a_cycle_to_another(store: Store, databases: Databases) -> None:
    together = Barrier(len(CLUSTERS), timeout=PATIENCE_SECONDS)
    with ThreadPoolExecutor(len(CLUSTERS)) as threads:
        lives = [threads.submit(live, name, store, together.wait) for name in CLUSTERS]
        found = [each.result() for each in lives]
    with databases.store("sqlite") as alone:
        assert found == [live(name, alone, lambda: None) for name in CLUSTERS]
