"""A store with a long past: filled with accounting records, and pruned when all has become old.

``python -m shapleyprio.lab.bench.cycle.prune URL RECORDS`` fills one in a process of its own, whose
memory is measured. It prints how many are done after every day, and at the end a line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from sqlalchemy import make_url

from shapleyprio.common.wording import DAY
from shapleyprio.common.workers import PYTHON
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.steering.pruning import prune_runs
from shapleyprio.lab.bench.cycle.workloads import (
    CLUSTER,
    CONFIG,
    HOLDERS,
    NOW,
    ORGANIZATIONS,
    RECORDS_A_DAY,
    day_of_records,
    days_of,
)
from shapleyprio.lab.bench.measure import (
    BenchParameters,
    Measurement,
    of_runs,
    run_apart,
    seconds_of,
)
from shapleyprio.lab.bench.peak import peak_megabytes
from shapleyprio.slurm.port import Controller
from shapleyprio.slurm.text.accounting import accounting_line
from shapleyprio.slurm.text.values import SEPARATOR
from shapleyprio.store import (
    ClusterStore,
    CycleRow,
    NewPush,
    PushState,
    StandingRow,
    Store,
    StoreError,
    Transaction,
)

SECONDS_BELOW = 120.0
MEGABYTES_BELOW = 500.0
COPY_BELOW = 5.0
OF_RECORDS = 1_000_000
"""The targets are meant for so many records."""


def measure_ingest(asked: BenchParameters) -> list[Measurement]:
    """Fills a store, copies it, and measures time and memory."""
    records, progress = asked.records, asked.bar("ingesting", asked.records)
    command = [*PYTHON, "-m", "shapleyprio.lab.bench.cycle.prune", _file(asked), str(records)]
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


def _file(asked: BenchParameters) -> str:
    return f"sqlite:///{asked.folder / 'past.db'}"


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


SHORT = DAY
CYCLES_AT_ONCE = 1_000
CYCLE_BELOW = 60.0
TRANSACTION_BELOW = 10.0


def measure_prune(asked: BenchParameters) -> Iterator[Measurement]:
    """Cuts the horizon of each store, or of an SQLite file."""
    for url in asked.stores or (_file(asked),):
        yield from prune(url, asked.records, asked.bar("accounting", asked.records))


def prune(url: str, records: int, progress: Callable[[int], None]) -> Iterator[Measurement]:
    """Fills the store at the URL, cuts the horizon to a day, and prunes all there is.

    Args:
        url: of an empty database.
        records: how many runs, and at least as many standings and pushes.
        progress: called with how many runs are accounted.

    Raises:
        StoreError: the database cannot be used, or is not empty.
    """
    where = f"{make_url(url).get_backend_name()}: {records:,}"
    most = (days_of(records) + 2) * DAY
    is_target = records == OF_RECORDS
    with Store.open(url, create=True) as opened:
        store = opened.cluster(CLUSTER)
        with store.reading() as view:
            if view.ledger.watermark() is not None:
                raise StoreError("the benchmark needs an empty database")
        for done in fill(store, records, most):
            progress(done)
        _keep_history(store, records)
        cutting = seconds_of(lambda: store.transact(_cut))
        below = CYCLE_BELOW if is_target else None
        what = f"{where} runs: the horizon is cut to a day"
        yield of_runs("prune", what, [cutting], unit="s", below=below)
        below = TRANSACTION_BELOW if is_target else None
        kept = f"{where} standings and as many pushes"
        for what, work in ((kept, _prune_history), (f"{where} runs", _prune_runs)):
            seconds = list(_pruned(store, work))
            yield of_runs("prune", f"{what} are pruned", [sum(seconds)], unit="s")
            one = f"{what}: one of these transactions"
            yield of_runs("prune", one, seconds, unit="s", below=below)


def _keep_history(store: ClusterStore, records: int) -> None:
    """Keeps cycles of a past beyond the horizon, with a push for each standing."""
    cycles = -(-records // len(ORGANIZATIONS))
    for first in range(1, cycles + 1, CYCLES_AT_ONCE):
        numbers = range(first, min(first + CYCLES_AT_ONCE, cycles + 1))
        with store.transaction() as transaction:
            for number in numbers:
                at = NOW - SHORT - cycles + number
                row = CycleRow(number=number, started=at, finished=at, outcome="ok")
                transaction.history.save_cycle(row)
            standings = [_standing(number, name) for number in numbers for name in ORGANIZATIONS]
            transaction.history.save_standings(standings)
            pushes = [_push(row) for row in standings]
            transaction.pushes.plan(pushes, PushState.APPLIED)


def _standing(cycle: int, organization: str) -> StandingRow:
    return StandingRow(
        cycle=cycle,
        organization=organization,
        t=cycle,
        contribution=0,
        utility=0,
        score=0,
        parts=0,
        priority=0,
        pending=0,
        running=0,
        processors=1,
    )


def _push(row: StandingRow) -> NewPush:
    return NewPush(
        cycle=row.cycle,
        channel="qos_priority",
        target=row.organization,
        key=row.organization,
        organization=row.organization,
        label=row.organization,
        original=0,
        old=row.cycle - 1,
        new=row.cycle,
        reason="balance 0",
        at=row.t,
    )


def _cut(transaction: Transaction) -> None:
    opened = OpenLedger(transaction, horizon=SHORT, opens=NOW, ask_holders=dict)
    opened.look(Controller(time=NOW, accounting_backlog=0, submitted=0), overlap=0)
    opened.close(NOW, observed_until=NOW)


def _prune_history(transaction: Transaction) -> int:
    return transaction.prune_history(NOW, pushes_before=NOW)


def _prune_runs(transaction: Transaction) -> int:
    return prune_runs(transaction, SHORT, overlap=0)


def _pruned(store: ClusterStore, work: Callable[[Transaction], int]) -> Iterator[float]:
    """Prunes, and yields the seconds that each transaction takes."""
    pruned = 0

    def prune_some() -> None:
        nonlocal pruned
        pruned = store.transact(work)

    while True:
        seconds = seconds_of(prune_some)
        if not pruned:
            return
        yield seconds
