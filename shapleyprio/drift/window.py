"""Reads what was executed in a window, and nothing else, from the daemon's store.

A window that began with an empty system would find the jobs fair that made others wait at its
begin, since it would not see them. So every run counts with what was executed of it in the window:

- What ran when the window began is released and was started then, with the rest of its processing
  time and of its limit. All of it fits, so that in the consortium's schedule it goes on as it did.
- What waited then is released a second later: behind what ran.
- What still runs at the window's end ends there.

The parts, and what they are worth at the window's end, are thus those of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shapleyprio.replay.log import Log
from shapleyprio.replay.stored import log_of_runs
from shapleyprio.replay.workload import Window
from shapleyprio.store import AllocatedRun, Store, View


@dataclass(frozen=True, slots=True)
class Past:
    """A window of a cluster.

    Attributes:
        log: what was executed in it.
        window: no longer than the store goes back; without length before there is anything.
    """

    log: Log
    window: Window


def read_past(url: str, cluster: str, length: int) -> Past:
    """Reads the window that ends where accounting is known to be complete.

    Args:
        url: of the store.
        cluster: whose runs.
        length: of the window, in seconds.

    Raises:
        StoreError: the store cannot be read.
    """
    with Store.open(url) as store, store.cluster(cluster).reading() as view:
        begin, end = known_span(view)
        return past_between(view, store.name, max(end - length, begin), end)


def known_span(view: View) -> tuple[int, int]:
    """Returns from when to when all that was executed is stored; empty before there is anything."""
    watermark = view.watermark()
    if watermark is None:
        return 0, 0
    end = watermark.observed_until
    return min(max(watermark.opened, watermark.pruned_until), end), end


def past_between(view: View, source: str, begin: int, end: int) -> Past:
    """Reads a window.

    Args:
        view: of the cluster's rows.
        source: what to call where they come from.
        begin: second since the epoch, within the known span.
        end: likewise.
    """
    runs = (
        cut
        for placed in view.runs_alive_after(begin)
        for cut in executed_between(placed, begin, end)
    )
    log = log_of_runs(source, runs)
    owned = {row.organization: row.processors for row in view.latest_standings()}
    return Past(replace(log, owned=owned), Window(start=begin, length=end - begin))


def executed_between(placed: AllocatedRun, begin: int, end: int) -> Iterator[AllocatedRun]:
    """Yields what was executed of a run in [begin, end), as a run of its own, if anything was.

    Its release is not before the window, and after the begin unless it ran then.
    """
    run, placements = placed
    first = max(run.begin, begin)
    behind = min(second for second in (run.end, run.paused_at, end) if second is not None)
    if behind <= first:
        return
    release = begin if run.begin <= begin else max(run.release, begin + 1)
    limit = None if run.limit is None else max(run.limit - (first - run.begin), 1)
    yield (
        replace(run, release=release, limit=limit, begin=first, end=behind),
        tuple(
            replace(place, begin=first)
            for place in placements
            if place.begin <= first and (place.end is None or place.end > first)
        ),
    )
