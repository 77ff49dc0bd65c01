"""Holds the configuration against the live cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from shapleyprio.common.wording import count, names_shown
from shapleyprio.config import Config
from shapleyprio.config.membership import (
    claims_of,
    configured_membership,
)
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.checking.check_host import check_addresses
from shapleyprio.daemon.checking.check_membership import (
    check_claims,
    check_members,
    check_nodes,
    check_ownership,
    check_processors,
)
from shapleyprio.daemon.checking.check_pool import check_pool
from shapleyprio.daemon.checking.check_priorities import (
    check_channel,
    check_guarantees,
    check_left_out_partitions,
    check_weights,
)
from shapleyprio.daemon.checking.check_table import check_table
from shapleyprio.daemon.estimation.worker import REMEDY, numpy_is_missing
from shapleyprio.fairness.rules import RULES
from shapleyprio.slurm.channels import CHANNELS, Claims
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout
from shapleyprio.slurm.port import AdapterInUse, Controller, PendingQueue, Slurm, SlurmError
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
    yield from check_claims(members, layout)
    owners: set[str] = set()
    for segment in segments:
        own, part = segment.configured(config), segment.layout(layout)
        shape = configured_membership(own, part)
        owners |= set(shape.nodes.values())
        for finding in (
            *_weight(own),
            *check_nodes(shape),
            *check_ownership(own, segment.ledger, shape, controller.time),
            *check_processors(own, shape, part),
            *check_guarantees(own.guarantees, shape, part),
        ):
            yield finding if segment.is_whole else finding.of(f"pool {segment.name}")
    yield from check_members(config, members, owners)
    yield from check_weights(config, layout)
    yield from check_channel(config, claims, layout)
    yield from check_left_out_partitions(config)
    yield from _inquiries(config, slurm, layout, claims)
    yield from _privilege(config, slurm)
    queue = _ask(slurm.pending, "the queue")
    if isinstance(queue, Finding):
        yield queue
        return
    yield from _queue(config, claims, queue)
    yield from _unknown_accounts(layout, queue)
    if config.push.table is not None:
        yield from check_table(config.push.table, layout, controller.time)


def _packages(config: Config) -> Iterator[Finding]:
    if RULES[config.fairness.rule].estimates and numpy_is_missing():
        yield Finding(
            Severity.WARNING,
            "fairness.rule",
            f"{config.fairness.rule!r} estimates contributions, for which numpy is missing here: "
            "directcontr ranks in its place",
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
    if found := layout.of_unknown_accounts(job.account for job in queue.jobs):
        yield Finding(
            Severity.WARNING,
            f"accounts {names_shown(found)}",
            f"accounting does not know them; {count(sum(found.values()), 'pending job')} of theirs "
            "do not count",
            "add the accounts with sacctmgr, or cancel the jobs (`squeue -o '%i %u'` shows their "
            "users)",
        )
