"""Holds the configuration against the live cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from shapleyprio.common.wording import count, listed, names_shown
from shapleyprio.config import Config
from shapleyprio.config.membership import (
    Membership,
    Unknown,
    claims_of,
    configured_membership,
    host_list_of,
)
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.checking.check_addresses import check_addresses
from shapleyprio.daemon.checking.check_guarantees import check_guarantees
from shapleyprio.daemon.checking.check_ownership import check_ownership
from shapleyprio.daemon.checking.check_pool import check_pool
from shapleyprio.daemon.checking.check_table import check_table
from shapleyprio.daemon.estimation.packages import REMEDY, missing_packages
from shapleyprio.fairness.rules import RULES
from shapleyprio.fairness.scale import scale
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY
from shapleyprio.slurm.channels import CHANNELS, Claims
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.port import AdapterInUse, Controller, Layout, PendingQueue, Slurm, SlurmError
from shapleyprio.slurm.priority import SHORTEST_CALC_PERIOD, others_by_factor
from shapleyprio.slurm.releases import untested

CLOCK_SKEW_SECONDS = 5
BACKLOG_RECORDS = 1000
"""Records that wait for the accounting daemon; some always do while jobs come and go."""

Found = TypeVar("Found")


def check(config: Config, slurm: Slurm, now: int) -> list[Finding]:
    """Lists all findings about the configuration on this cluster, the worst first.

    Args:
        config: the configuration.
        slurm: the cluster; if it is away, that is a finding too.
        now: this host's clock, seconds since the epoch.
    """
    return sorted(
        _findings(config, slurm, now), key=lambda found: list(Severity).index(found.severity)
    )


def _findings(config: Config, slurm: Slurm, now: int) -> Iterator[Finding]:
    yield from _packages(config)
    controller = _ask(slurm.controller, "the controller")
    if isinstance(controller, Finding):
        yield controller
        return
    yield from _adapter(slurm.adapter())
    yield from _controller(controller, now)
    layout = _ask(slurm.layout, "the cluster's layout")
    if isinstance(layout, Finding):
        yield layout
        return
    members = configured_membership(config, layout)
    claims = claims_of(config.organizations, members.accounts, config.fairness.leave_out_partitions)
    yield from _cluster(config, layout)
    segments = segments_of(config, layout.cluster)
    yield from check_pool(config, layout, segments)
    yield from _release(layout)
    yield from check_addresses(config, layout)
    yield from _enforcement(config, layout)
    yield from _claims(members, layout)
    owners: set[str] = set()
    for segment in segments:
        own, part = segment.configured(config), segment.layout(layout)
        shape = configured_membership(own, part)
        owners |= set(shape.nodes.values())
        for finding in (
            *_weight(own),
            *_nodes(shape),
            *check_ownership(own, segment.ledger, shape, controller.time),
            *_processors(own, shape, part),
            *check_guarantees(own.guarantees, shape, part),
        ):
            yield finding if segment.is_whole else finding.of(f"pool {segment.name}")
    yield from _organizations(config, members, owners)
    yield from _weights(config, layout)
    yield from _channel(config, claims, layout)
    yield from _left_out_partitions(config)
    yield from _inquiries(config, slurm, layout, claims)
    yield from _privilege(config, slurm)
    queue = _ask(slurm.pending, "the queue")
    if isinstance(queue, Finding):
        yield queue
        return
    yield from _queue(config, claims, queue)
    yield from _unknown_accounts(layout, queue)
    if config.push.table is not None:
        yield from check_table(config.push.table, layout, claims, queue.jobs, controller.time)


def _packages(config: Config) -> Iterator[Finding]:
    if RULES[config.fairness.rule].estimates and (missing := missing_packages()):
        yield Finding(
            Severity.WARNING,
            "fairness.rule",
            f"{config.fairness.rule!r} estimates contributions, for which Python packages are "
            f"missing here ({', '.join(missing)}): directcontr ranks in its place",
            REMEDY,
        )


def _weight(config: Config) -> Iterator[Finding]:
    if RULES[config.fairness.rule].estimates and config.fairness.tres != "cpu":
        yield Finding(
            Severity.NOTICE,
            "fairness.weight",
            "pending jobs do not count in estimates of contributions: Slurm says how many CPUs "
            f"they ask for, not how many units of {config.fairness.weight}",
            'set fairness.rule to "directcontr", or fairness.weight to "cpus", unless this is '
            "meant",
        )


def _ask(question: Callable[[], Found], what: str) -> Found | Finding:
    try:
        return question()
    except SlurmError as error:
        return Finding(
            Severity.ERROR,
            "Slurm",
            f"{what} cannot be read: {error}",
            "fix that and check again: what depends on it was not checked",
        )


def _adapter(adapter: AdapterInUse) -> Iterator[Finding]:
    if adapter.why:
        yield Finding(
            Severity.NOTICE,
            "slurm.adapter",
            f"{adapter.name} is used instead of {adapter.instead_of}: {adapter.why}",
            f"make {adapter.instead_of} fit (docs/pyslurm.md), or set slurm.adapter to "
            f'"{adapter.name}"',
        )


def _controller(controller: Controller, now: int) -> Iterator[Finding]:
    skew = controller.time - now
    if abs(skew) > CLOCK_SKEW_SECONDS:
        yield Finding(
            Severity.WARNING,
            "clock",
            f"the controller's clock is {abs(skew)} s {'ahead of' if skew > 0 else 'behind'} "
            "this host's",
            "let both hosts follow the same time server (chrony, NTP)",
        )
    if controller.accounting_backlog > BACKLOG_RECORDS:
        yield Finding(
            Severity.WARNING,
            "accounting",
            f"{controller.accounting_backlog} records have not reached the accounting daemon yet, "
            "so balances lag behind",
            "look into the logs of slurmdbd and its database: are they up and fast enough?",
        )


def _cluster(config: Config, layout: Layout) -> Iterator[Finding]:
    if config.slurm.cluster not in {None, layout.cluster}:
        yield Finding(
            Severity.ERROR,
            "slurm.cluster",
            f"{config.slurm.cluster!r} is configured, but Slurm here is {layout.cluster!r}",
            "correct the key or leave it out",
        )


def _release(layout: Layout) -> Iterator[Finding]:
    if reason := untested(layout.version):
        yield Finding(
            Severity.WARNING,
            "Slurm",
            f"release {layout.version} {reason}",
            "try it with `shapleyprio daemon --once --dry-run` and look at what it would write",
        )


def _enforcement(config: Config, layout: Layout) -> Iterator[Finding]:
    if layout.enforces_accounts:
        return
    allowed = config.slurm.allow_unenforced_accounts
    yield Finding(
        Severity.WARNING if allowed else Severity.ERROR,
        "AccountingStorageEnforce",
        "lacks associations: any user can submit jobs to any account"
        + (
            ", which slurm.allow_unenforced_accounts allows"
            if allowed
            else ", so the daemon writes no priorities"
        ),
        "set AccountingStorageEnforce=associations in slurm.conf and restart slurmctld",
    )


def _claims(members: Membership, layout: Layout) -> Iterator[Finding]:
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


def _nodes(members: Membership) -> Iterator[Finding]:
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
        f"Slurm knows no {unknown.kind} {unknown.name}",
        f"did you mean {near!r}?" if near else f"correct the name; {listing} lists them",
    )


def _left_out_partitions(config: Config) -> Iterator[Finding]:
    channel = CHANNELS[config.push.channel]
    if config.fairness.leave_out_partitions and not channel.per_job:
        yield Finding(
            Severity.NOTICE,
            "fairness.leave_out_partitions",
            f"their jobs do not count, but still have the points of their {channel.carrier}, "
            f"since push.channel is {channel.name!r}",
            'unless this is meant, set push.channel = "site_factor", or give them accounts of '
            "their own and add these to fairness.leave_out_accounts",
        )


def _organizations(
    config: Config, members: Membership, owners: Collection[str]
) -> Iterator[Finding]:
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
                "list its `nodes` or `partitions`, unless this is meant",
            )
        if not organization.accounts and not is_parent:
            yield Finding(
                Severity.NOTICE,
                subject,
                "has no accounts: it lends its nodes and runs no jobs of its own",
                "list its `accounts`, unless this is meant",
            )


def _processors(config: Config, members: Membership, layout: Layout) -> Iterator[Finding]:
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
            "choose another fairness.weight, unless this is meant",
        )


def _weights(config: Config, layout: Layout) -> Iterator[Finding]:
    if layout.settings.type != "priority/multifactor":
        yield Finding(
            Severity.ERROR,
            "PriorityType",
            f"is {layout.settings.type or 'not set'}: Slurm starts jobs in the order of their "
            "submission, whatever is written",
            "set PriorityType=priority/multifactor in slurm.conf and restart slurmctld",
        )
        return
    channel, influence = CHANNELS[config.push.channel], config.push.influence
    factors = others_by_factor(layout, channel.factor)
    others = sum(factors.values())
    organizations = len(config.organizations)
    step = channel.step_in_points(layout, scale(organizations, others, influence), organizations)
    whole = step * max(organizations - 1, 1)
    by_weight = sorted(factors.items(), key=lambda item: -item[1])
    named = ", ".join(f"{name} {points}" for name, points in by_weight)
    added = f"other factors can add {others} points to a job ({named or 'none'})"
    if blocked := channel.blocked(layout):
        yield blocked
    elif step > others:
        if others:
            yield Finding(
                Severity.NOTICE,
                "priority weights",
                f"{added}, organizations are {step} apart: they order the jobs within an "
                "organization only",
                "set push.influence to fewer points if they should count between organizations",
            )
    elif influence is None:
        yield Finding(
            Severity.ERROR,
            "priority weights",
            f"{added}, organizations are only {step} apart: strict order cannot be kept",
            f"{channel.strict_remedy}, or set push.influence to a number of points",
        )
    else:
        drowned = others >= whole
        yield Finding(
            Severity.WARNING if drowned else Severity.NOTICE,
            "priority weights",
            f"{added}, organizations are {step} apart and {whole} from first to last: they can "
            f"{'drown the whole order' if drowned else 'put neighbors out of order'}",
            'raise push.influence or make it "strict", unless this is meant',
        )


def _channel(config: Config, claims: Claims, layout: Layout) -> Iterator[Finding]:
    if "INCR_ONLY" in layout.settings.flags:
        yield Finding(
            Severity.ERROR,
            "PriorityFlags",
            "has INCR_ONLY: a priority never falls, so an organization never loses its place",
            "remove INCR_ONLY from PriorityFlags in slurm.conf",
        )
    channel = CHANNELS[config.push.channel]
    yield from channel.demands(layout, claims)
    period = layout.settings.calc_period_seconds
    if channel.follows_late and not config.push.touch and period > SHORTEST_CALC_PERIOD:
        yield Finding(
            Severity.WARNING,
            "push.touch",
            f"is false, and PriorityCalcPeriod is {period} s: pending jobs follow the priority of "
            f"their {channel.carrier} only that often",
            "set push.touch = true, or PriorityCalcPeriod=00:01:00 in slurm.conf",
        )


def _inquiries(config: Config, slurm: Slurm, layout: Layout, claims: Claims) -> Iterator[Finding]:
    channel = CHANNELS[config.push.channel]
    found = _ask(lambda: list(channel.inquire(slurm, layout, claims)), "what the channel needs")
    yield from [found] if isinstance(found, Finding) else found


def _privilege(config: Config, slurm: Slurm) -> Iterator[Finding]:
    channel = config.push.channel
    missing = _ask(lambda: slurm.privilege(channel), "our privileges")
    if isinstance(missing, Finding):
        yield missing
    elif missing is not None:
        yield Finding(
            Severity.ERROR,
            "privileges",
            f"this user may not write through push.channel {channel!r}: {missing}",
            "let an administrator of Slurm grant it, or run as SlurmUser",
        )


def _queue(config: Config, claims: Claims, queue: PendingQueue) -> Iterator[Finding]:
    if queue.malformed:
        first = queue.malformed[0]
        yield Finding(
            Severity.WARNING,
            first.source,
            f"{len(queue.malformed)} of its lines could not be read: {first.reason}: "
            f"{first.text[:80]!r}",
            "please report this line together with your release of Slurm",
        )
    yield from CHANNELS[config.push.channel].stray_jobs(queue.jobs, claims)


def _unknown_accounts(layout: Layout, queue: PendingQueue) -> Iterator[Finding]:
    if found := layout.of_unknown_accounts(queue.jobs):
        yield Finding(
            Severity.WARNING,
            f"accounts {names_shown(found)}",
            f"accounting does not know them; {count(sum(found.values()), 'pending job')} of theirs "
            "do not count",
            "add the accounts with sacctmgr, or cancel the jobs (`squeue -o '%i %u'` shows their "
            "users)",
        )
