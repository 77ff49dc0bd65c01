"""Fills a store with accounting records, in a process of its own to know its memory.

``python -m shapleyprio.lab.bench.cycle.ingest URL RECORDS`` prints how many are done after every
day, and at the end a line of JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
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
from shapleyprio.lab.bench.measure import Measurement, seconds_of
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
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last = "{}"
        for line in process.stdout:
            last = line
            if line.strip().isdigit():
                progress(int(line))
    if process.returncode:
        raise RuntimeError(f"ingesting records ended with exit code {process.returncode}")
    answer = json.loads(last)
    what = f"{records:,} finished records into SQLite, a day in one transaction"
    return [
        _measurement(what, answer["seconds"], "s", SECONDS_BELOW, records),
        _measurement("peak memory of that", answer["megabytes"], "MB", MEGABYTES_BELOW, records),
        _measurement("copying that store for a dry run", answer["copy"], "s", COPY_BELOW, records),
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


def _measurement(what: str, value: float, unit: str, below: float, records: int) -> Measurement:
    return Measurement(
        name="ingest",
        what=what,
        value=value,
        unit=unit,
        worst=value,
        below=below if records == OF_RECORDS else None,
    )


def main(url: str, records: int) -> None:
    """Fills a store and prints how it goes."""
    began = perf_counter()
    with Store.open(url, create=True) as store:
        for done in fill(store.cluster(CLUSTER), records):
            print(done, flush=True)
    seconds = perf_counter() - began
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = {
        "seconds": seconds,
        "megabytes": kibibytes * 1024 / 1e6,
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
