"""Holds who has which accounts and nodes against the live cluster and what the store counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from shapleyprio.common.wording import DAY, clock_time, listed
from shapleyprio.config import Config
from shapleyprio.config.membership import Membership, Unknown, host_list_of
from shapleyprio.daemon.accounting.moves import together
from shapleyprio.daemon.accounting.ownership import holders_in
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY, Move, Tenures
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout
from shapleyprio.store import Store, StoreError


def check_claims(members: Membership, layout: Layout) -> Iterator[Finding]:
    """Looks for names that Slurm does not know, and for accounts that nobody claims."""
    for unknown in members.unknown:
        yield _not_in_slurm(unknown, layout)
    if orphans := [account for account, name in members.accounts.items() if name == NOBODY]:
        yield Finding(
            Severity.WARNING,
            f"accounts {listed(orphans)}",
            "belong to no organization: their jobs get no priority, queue behind all others and "
            "earn the owners of the nodes nothing",
            "add them to the `accounts` of an organization, or to fairness.leave_out_accounts",
        )


def check_nodes(members: Membership) -> Iterator[Finding]:
    """Looks for nodes of several owners, and of none."""
    by_claimants: dict[tuple[str, ...], list[str]] = {}
    for node, claimants in members.contested.items():
        by_claimants.setdefault(claimants, []).append(node)
    for claimants, nodes in by_claimants.items():
        yield Finding(
            Severity.ERROR,
            f"nodes {host_list_of(nodes)}",
            f"owned by {' and '.join(claimants)}; for now they count for {claimants[0]}",
            "leave each to one organization; one that lists them under `nodes` outranks those "
            "that list their partition",
        )
    if orphans := [node for node, owner in members.nodes.items() if owner == NOBODY]:
        yield Finding(
            Severity.WARNING,
            f"nodes {host_list_of(orphans)}",
            "have no owner: work done there is the contribution of no organization",
            "add them to the `nodes` or `partitions` of their owner",
        )


def _not_in_slurm(unknown: Unknown, layout: Layout) -> Finding:
    near = unknown.nearest(layout)
    listing = {
        "account": "`sacctmgr show account`",
        "partition": "`scontrol show partition`",
        "node": "`scontrol show node`",
    }[unknown.kind]
    return Finding(
        Severity.ERROR,
        f"fairness.leave_out_{unknown.kind}s"
        if unknown.organization == LEFT_OUT
        else f"organization {unknown.organization}",
        f"Slurm has no {unknown.kind} {unknown.name}",
        f"did you mean {near!r}?" if near else f"correct the name; {listing} lists them",
    )


def check_members(
    config: Config, members: Membership, owners: Collection[str]
) -> Iterator[Finding]:
    """Looks for organizations without accounts or nodes; these are the owners."""
    parents = config.parents
    heads_that_own = {parents.get(owner, owner) for owner in owners}
    for organization in config.organizations:
        subject, name = f"organization {organization.name}", organization.name
        is_parent = name in parents.values()
        if not is_parent and name not in {*owners, *members.accounts.values()}:
            yield Finding(
                Severity.WARNING,
                subject,
                "owns no node and no account: nothing counts for it",
                "list its `accounts`, and its `nodes` or `partitions`; "
                "`shapleyprio ownership recount --since DATE` then counts the past for it",
            )
            continue
        if parents.get(name, name) not in heads_that_own:
            yield Finding(
                Severity.WARNING,
                subject,
                "owns no node of the cluster: it contributes nothing and comes last",
                "list its `nodes` or `partitions`, unless intended",
            )
        if not organization.accounts and not is_parent:
            yield Finding(
                Severity.NOTICE,
                subject,
                "has no accounts: it lends its nodes and runs no jobs of its own",
                "list its `accounts`, unless intended",
            )


def check_processors(config: Config, members: Membership, layout: Layout) -> Iterator[Finding]:
    """Looks for nodes that offer nothing of what is counted."""
    tres = config.fairness.tres
    bare = [name for name, node in layout.nodes.items() if not node.tres.get(tres)]
    offered = sorted({name for node in layout.nodes.values() for name in node.tres})
    if bare and len(bare) == len(layout.nodes):
        yield Finding(
            Severity.ERROR,
            "fairness.weight",
            f"no node offers {tres}, so nothing would ever be counted",
            f"choose what the nodes offer: {', '.join(offered)}",
        )
    elif owned := [node for node in bare if members.nodes[node] != NOBODY]:
        yield Finding(
            Severity.NOTICE,
            f"nodes {host_list_of(owned)}",
            f"offer no {tres}: work done there does not count",
            "choose another fairness.weight, unless intended",
        )


RECENT_SECONDS = 7 * DAY
"""What changed hands is pointed out for so long."""


def check_ownership(
    config: Config, cluster: str, members: Membership, now: int
) -> Iterator[Finding]:
    """Yields a notice of what changed hands lately, or will in the next cycle.

    Likewise of a beginning of the ledger that was configured when there was one already.

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
