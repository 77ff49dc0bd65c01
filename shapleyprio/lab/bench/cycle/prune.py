"""A store with a long past whose horizon is cut short: what a cycle and the pruning take then."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from sqlalchemy import make_url

from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.lab.bench.cycle.ingest import OF_RECORDS, fill
from shapleyprio.lab.bench.cycle.workloads import CLUSTER, DAY, NOW, days_of
from shapleyprio.lab.bench.measure import Measurement, of_runs, seconds_of
from shapleyprio.slurm.port import Controller
from shapleyprio.store import ClusterStore, Store, StoreError, Transaction

SHORT = DAY
CYCLE_BELOW = 60.0
TRANSACTION_BELOW = 10.0


def prune(url: str, records: int, progress: Callable[[int], None]) -> Iterator[Measurement]:
    """Fills the store at the URL, cuts the horizon to a day, and prunes.

    Args:
        url: of an empty database.
        records: how many.
        progress: called with how many are accounted.

    Raises:
        StoreError: the database cannot be used, or is not empty.
    """
    where = f"{make_url(url).get_backend_name()}: {records:,} runs"
    most = (days_of(records) + 2) * DAY
    is_target = records == OF_RECORDS
    with Store.open(url, create=True) as opened:
        store = opened.cluster(CLUSTER)
        with store.reading() as view:
            if view.ledger.watermark() is not None:
                raise StoreError("the benchmark needs an empty database")
        filling = seconds_of(lambda: deque(map(progress, fill(store, records, most)), maxlen=0))
        yield of_runs("prune", f"{where} are accounted", [filling], unit="s", below=None)
        cutting = seconds_of(lambda: store.transact(_cut))
        below = CYCLE_BELOW if is_target else None
        what = "the horizon is cut to a day"
        yield of_runs("prune", f"{where}: {what}", [cutting], unit="s", below=below)
        seconds = list(_pruned(store))
    total = sum(seconds)
    yield of_runs("prune", f"{where} are pruned, in all", [total], unit="s", below=None)
    below = TRANSACTION_BELOW if is_target else None
    yield of_runs("prune", f"{where}: one of these transactions", seconds, unit="s", below=below)


def _cut(transaction: Transaction) -> None:
    opened = _open(transaction)
    opened.look(Controller(time=NOW, accounting_backlog=0, submitted=0), overlap=0)
    opened.close(NOW, observed_until=NOW)


def _pruned(store: ClusterStore) -> Iterator[float]:
    """Prunes, and yields the seconds that each transaction takes."""
    pruned = 0

    def prune_some() -> None:
        nonlocal pruned
        pruned = store.transact(lambda transaction: _open(transaction).prune(overlap=0))

    while True:
        seconds = seconds_of(prune_some)
        if not pruned:
            return
        yield seconds


def _open(transaction: Transaction) -> OpenLedger:
    return OpenLedger(transaction, horizon=SHORT, opens=NOW, ask_holders=dict)
