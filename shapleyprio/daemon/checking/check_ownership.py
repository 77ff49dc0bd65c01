"""Holds the configuration against what the store has counted for whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shapleyprio.common.wording import DAY, clock_time
from shapleyprio.config import Config
from shapleyprio.config.membership import Membership, host_list_of
from shapleyprio.daemon.accounting.moves import together
from shapleyprio.daemon.accounting.ownership import holders_in
from shapleyprio.fairness.tenure import Move, Tenures
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.store import Store, StoreError

RECENT_SECONDS = 7 * DAY
"""What changed hands is pointed out for so long."""


def check_ownership(
    config: Config, cluster: str, members: Membership, now: int
) -> Iterator[Finding]:
    """Yields a notice of what changed hands lately, or will in the next cycle.

    Likewise of a beginning of the ledger that was configured when there was one already, and of a
    ledger that is another cluster's.

    A store that is not there yet, or cannot be read, has nothing to say to this.

    Args:
        config: with the store.
        cluster: its name.
        members: who holds what by the configuration.
        now: seconds since the epoch.
    """
    try:
        store = Store.open_existing(config.store.url)
        if store is None:
            return
        with store, store.cluster(cluster).reading() as view:
            tenures = view.ledger.tenures()
            watermark = view.ledger.watermark()
    except StoreError:
        return
    if watermark is not None:
        yield from _opening(config.fairness.since, watermark.opened)
    yield from _namesake(cluster, tenures, members)
    yield from _findings(
        tenures.moves(now - RECENT_SECONDS),
        "since {}",
        "if that is wrong, `shapleyprio ownership set` corrects it from any date on",
    )
    yield from _findings(
        _next(tenures, members, now),
        "from the daemon's next cycle on",
        "if it was so before, `shapleyprio ownership recount --since DATE` counts it from then on",
    )


def _opening(since: int | None, opened: int) -> Iterator[Finding]:
    if since is not None and since != opened:
        yield Finding(
            Severity.NOTICE,
            "fairness.since",
            f"has no effect: a ledger is open already, and counts work since {clock_time(opened)}",
            "another store (`store.url`) would open a new ledger, without the history of this one",
        )


def _namesake(cluster: str, tenures: Tenures, members: Membership) -> Iterator[Finding]:
    known = {tenure.name for tenure in tenures if tenure.kind == "node"}
    if known and members.nodes and known.isdisjoint(members.nodes):
        yield Finding(
            Severity.WARNING,
            "ClusterName",
            f"the store has other nodes for {cluster!r} ({host_list_of(sorted(known))}): they may "
            "be another cluster's of the same ClusterName, and the two would be mixed up",
            "give each cluster a ClusterName of its own, or this one another store, unless all "
            "nodes are new",
        )


def _findings(moves: Iterable[Move], since: str, remedy: str) -> Iterator[Finding]:
    for what, change, second in together(moves):
        message = f"{change} {since.format(clock_time(second))}"
        yield Finding(Severity.NOTICE, what, message, remedy)


def _next(tenures: Tenures, members: Membership, now: int) -> Iterator[Move]:
    """Yields what the next cycle will find in other hands than the store has it."""
    for kind, holders in holders_in(members).items():
        for name, after in holders.items():
            rows = tenures.of(kind, name)
            if rows and rows[-1].organization != after:
                before = rows[-1].organization
                yield Move(kind=kind, name=name, before=before, after=after, since=now)
