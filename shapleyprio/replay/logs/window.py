"""Reads what was executed in a window, and nothing else, from the daemon's store.

A window that began with an empty system would find the jobs fair that made others wait at its
begin, since it would not see them. So every run counts with what was executed of it in the window:

- What ran when the window began is released and was started then, with the rest of its processing
  time and of its limit. All of it fits, so that in the consortium's schedule it goes on as it did.
- What waited then is released a second later: behind what ran.
- What still runs at the window's end ends there.

The parts, and what they are worth at the window's end, are thus those of the ledger.

A pool over several clusters is one game, so its windows are those of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shapleyprio.fairness.pool import Stay
from shapleyprio.replay.logs.clusters import consortium_named
from shapleyprio.replay.logs.stored import log_of_ledgers, members_of
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.nodes import kept_to_clusters
from shapleyprio.replay.workloads.workload import Consortium, Window, Workload, workload_of
from shapleyprio.store import Store, Watermark


@dataclass(frozen=True, slots=True)
class Past:
    """A window of a cluster, or of all clusters of a pool.

    Attributes:
        log: what was executed in it.
        window: no longer than the store goes back; without length before there is anything.
    """

    log: Log
    window: Window

    def consortium(self, names: Iterable[str], parents: Mapping[str, str]) -> Consortium:
        """Returns whose the jobs and processors are, as the store has it.

        Args:
            names: of the organizations that count; those that have left since count behind them.
            parents: organization -> its parent, of those that have one.

        Raises:
            WorkloadError: no job belongs to any of them.
        """
        members = dict.fromkeys((*names, *members_of(self.log)))
        return consortium_named(self.log, members, parents)

    def workload(self, consortium: Consortium) -> Workload:
        """Returns the jobs of a consortium, each kept to its cluster.

        Raises:
            WorkloadError: there are none, or there are no processors.
        """
        taken = workload_of(self.log, consortium, window=self.window)
        return kept_to_clusters(self.log, consortium, taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSpan:
    """From when to when all that was executed is stored of the ledgers that are one game.

    Attributes:
        ledgers: names; those of the clusters of a pool.
        begin, end: seconds since the epoch; equal before there is anything.
        pool: its name, if it is over several clusters; else empty.
        without: other ledgers of the pool of which too little is stored to count.
    """

    ledgers: tuple[str, ...]
    begin: int
    end: int
    pool: str = ""
    without: tuple[str, ...] = ()


def read_past(url: str, ledger: str, length: int) -> Past:
    """Reads the window that ends where accounting is known to be complete.

    Args:
        url: of the store.
        ledger: whose runs, with those of the other clusters of its pool.
        length: of the window, in seconds.

    Raises:
        StoreError: the store cannot be read.
    """
    with Store.open(url) as store:
        known = known_span(store, ledger)
        begin = max(known.end - length, known.begin)
        return past_between(store, known.ledgers, begin, known.end)


def known_span(store: Store, ledger: str, until: int | None = None) -> KnownSpan:
    """Returns of which ledgers, and from when to when, all that was executed is stored.

    A cluster counts from when it came into the pool. One whose accounts end longer before this
    one's than `Stay.stale_after`, or which came into the pool later, does not count.

    Args:
        store: with all of them.
        ledger: whose game it is.
        until: second before which it has to have ended; None for any.
    """
    stay, watermark, begin, end = _known(store, ledger, until)
    if stay is None or watermark is None or len(stay.clusters) == 1:
        return KnownSpan(ledgers=(ledger,), begin=begin, end=end)
    spans = {ledger: (begin, end)}
    for other in sorted({*stay.clusters} - {ledger}):
        theirs, account, first, last = _known(store, other, until)
        same = theirs is not None and theirs.pool == stay.pool
        counted = account is not None and account.weight == watermark.weight
        if same and counted and first < end and last >= end - stay.stale_after:
            spans[other] = first, last
    last = min(end for _, end in spans.values())
    return KnownSpan(
        ledgers=tuple(sorted(spans)),
        begin=min(max(begin for begin, _ in spans.values()), last),
        end=last,
        pool=stay.pool,
        without=tuple(sorted({*stay.clusters} - spans.keys())),
    )


def _known(
    store: Store, ledger: str, until: int | None
) -> tuple[Stay | None, Watermark | None, int, int]:
    with store.cluster(ledger).reading() as view:
        stay, watermark = view.pools.stay(), view.ledger.watermark()
    if watermark is None:
        return stay, None, 0, 0
    end = watermark.observed_until if until is None else min(watermark.observed_until, until)
    begin = max(watermark.opened, watermark.pruned_until, stay.since if stay else 0)
    return stay, watermark, min(begin, end), end


def past_between(store: Store, ledgers: Iterable[str], begin: int, end: int) -> Past:
    """Reads a window.

    Args:
        store: with the ledgers.
        ledgers: names; several are one game.
        begin: second since the epoch, within the known span.
        end: likewise.
    """
    log = log_of_ledgers(store.name, map(store.cluster, ledgers), (begin, end))
    return Past(log, Window(start=begin, length=end - begin))
