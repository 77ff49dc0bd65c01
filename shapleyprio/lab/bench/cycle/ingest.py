"""Fills a store with accounting records, in a process of its own to know its memory.

``python -m shapleyprio.lab.bench.cycle.ingest URL RECORDS`` prints how many are done after every
day, and at the end a line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from shapleyprio.common.wording import DAY
from shapleyprio.common.workers import PYTHON
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.lab.bench.cycle.workloads import (
    CLUSTER,
    CONFIG,
    HOLDERS,
    NOW,
    RECORDS_A_DAY,
    day_of_records,
    days_of,
)
from shapleyprio.lab.bench.measure import Measurement, of_runs, run_apart, seconds_of
from shapleyprio.lab.bench.peak import peak_megabytes
from shapleyprio.slurm.text.accounting import accounting_line
from shapleyprio.slurm.text.values import SEPARATOR
from shapleyprio.store import ClusterStore, Store

SECONDS_BELOW = 120.0
MEGABYTES_BELOW = 500.0
COPY_BELOW = 5.0
OF_RECORDS = 1_000_000
"""The targets are meant for so many records."""


def ingest(url: str, records: int, progress: Callable[[int], None]) -> list[Measurement]:
    """Fills the store at the URL, copies it, and measures time and memory.

    Args:
        url: of an empty store.
        records: how many.
        progress: called with how many are done.
    """
    command = [*PYTHON, "-m", "shapleyprio.lab.bench.cycle.ingest", url, str(records)]
    answer = json.loads(run_apart(command, progress).last_line)
    what = f"{records:,} finished records into SQLite, a day in one transaction"
    found = (
        (what, "seconds", "s", SECONDS_BELOW),
        ("peak memory of that", "megabytes", "MB", MEGABYTES_BELOW),
        ("copying that store for a dry run", "copy", "s", COPY_BELOW),
    )
    is_target = records == OF_RECORDS
    return [
        of_runs("ingest", each, [answer[key]], unit=unit, below=below if is_target else None)
        for each, key, unit, below in found
    ]


def fill(
    store: ClusterStore, records: int, horizon: int | None = CONFIG.fairness.horizon
) -> Iterator[int]:
    """Accounts the records of the past in the order of its days; yields how many are done."""
    done = 0
    for days_ago in range(days_of(records), 0, -1):
        today = min(RECORDS_A_DAY, records - done)
        lines = day_of_records(days_ago, today)
        evening = NOW - (days_ago - 1) * DAY
        with store.transaction() as transaction:
            opened = OpenLedger(
                transaction,
                horizon=horizon,
                opens=NOW - (days_of(records) + 2) * DAY,
                ask_holders=dict,
            )
            for kind, holders in HOLDERS.items():
                opened.observe_holders(kind, holders, evening)
            opened.ingest((accounting_line(line, "cpu", SEPARATOR) for line in lines), evening)
            opened.close(evening, observed_until=evening)
        done += today
        yield done


def main(url: str, records: int) -> None:
    """Fills a store and prints how it goes."""
    began = perf_counter()
    with Store.open(url, create=True) as store:
        for done in fill(store.cluster(CLUSTER), records):
            print(done, flush=True)
    seconds = perf_counter() - began
    answer = {
        "seconds": seconds,
        "megabytes": peak_megabytes(),
        "copy": seconds_of(lambda: copy(url)),
    }
    print(json.dumps(answer), flush=True)


def copy(url: str) -> None:
    """Copies the store as a dry run does."""
    store = Store.open_existing(url)
    assert store is not None
    with store, TemporaryDirectory() as folder:
        store.cluster(CLUSTER).copy(Path(folder, "copy.db"), [CLUSTER])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
