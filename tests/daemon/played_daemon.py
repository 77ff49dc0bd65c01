"""`shapleyprio daemon` as a process of its own on a simulated cluster that never obeys.

``python -m tests.daemon.played_daemon RECORD ARGUMENTS...``. Each write is noted in the file
RECORD as soon as Slurm would have it, with the token by which it was made; what is written never
shows, so each cycle writes everything again.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from shapleyprio.cli import check, daemon, main
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.steering import composition
from shapleyprio.slurm.port import unchecked
from shapleyprio.store import ClusterStore, CycleRow, engine
from shapleyprio.store.repositories.history import History
from tests.daemon.consortium import NAME, NOW, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JOBS = 25
BATCH_SECONDS = 0.04
IDLE_SECONDS = 4
"""For so long a server waits for a process that is silent within a transaction."""
CLUSTER = "SHAPLEYPRIO_TEST_CLUSTER"
"""Variable with the name of the cluster, if it is not that of the tests' cluster."""
FREEZE = "SHAPLEYPRIO_TEST_FREEZE"
"""Variable that names a file: once it is there, the daemon freezes within a transaction."""


class NotedLease(Lease):
    """Shows the simulated cluster by which token it is written to."""

    last: NotedLease

    def __init__(self, store: ClusterStore, **options: Any) -> None:
        super().__init__(store, **options)
        NotedLease.last = self


class DeafCluster(Cluster):
    """Takes a while for each write and does none of them.

    Args:
        record: where writes are noted.
    """

    def __init__(self, record: Path) -> None:
        super().__init__(os.environ.get(CLUSTER, NAME))
        self._token = 0
        self._record = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.fill("guest")
        for _ in range(JOBS):
            self.submit("physics", processing_time=9)

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        for _ in values:
            check()
            self._token = NotedLease.last._token or self._token  # who has lost it has none
            os.write(self._record, f"{self._token}\n".encode())
            time.sleep(BATCH_SECONDS)
        return {}


def freeze_within_a_transaction(trigger: Path) -> None:
    """Stops this process like SIGSTOP from outside, when a cycle is being recorded."""
    save = History.save_cycle

    def save_and_freeze(rows: History, cycle: CycleRow) -> None:
        save(rows, cycle)
        if trigger.exists():
            os.kill(os.getpid(), signal.SIGSTOP)

    setattr(History, "save_cycle", save_and_freeze)  # noqa: B010  # as a test patches


if __name__ == "__main__":
    record, *arguments = sys.argv[1:]
    cluster = DeafCluster(Path(record))
    for module in (composition, daemon, check):
        setattr(module, "connect", lambda *_: cluster)  # noqa: B010
    setattr(check, "time", SimpleNamespace(time=lambda: NOW))  # noqa: B010
    setattr(composition, "numpy_is_missing", lambda: True)  # noqa: B010  # nobody asks for forecasts
    setattr(daemon, "Lease", NotedLease)  # noqa: B010
    setattr(engine, "IDLE_SECONDS", IDLE_SECONDS)  # noqa: B010
    if FREEZE in os.environ:
        freeze_within_a_transaction(Path(os.environ[FREEZE]))
    sys.argv = ["shapleyprio", *arguments]
    main()
