"""`shapleyprio ownership`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli.common import GroupOfCommands, termination_unwinds, user
from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option, pool_option, together
from shapleyprio.cli.options.types import ALWAYS, INSTANT
from shapleyprio.cli.shown.ownership_tables import (
    listing_as_json,
    objections,
    outcome_as_json,
    render_outcome,
    render_ownership,
)
from shapleyprio.cli.shown.tables import standard_output
from shapleyprio.common.wording import visible
from shapleyprio.config import Config, connect, load_config
from shapleyprio.config.membership import Membership, configured_membership
from shapleyprio.daemon.accounting.ownership import (
    KINDS,
    CorrectedOwnership,
    Correction,
    Holders,
    correct,
    find,
    find_organization,
    holders_in,
    read_ownership,
)
from shapleyprio.daemon.ledgers import cluster_of, segment_meant, stored_cluster
from shapleyprio.daemon.pushing.cut_off import journal_of
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.steering.dry_run import private_copy
from shapleyprio.fairness.tenure import Kind, Tenures
from shapleyprio.slurm.layout import Layout
from shapleyprio.store import ClusterStore, Store

Choice = Callable[[Config, Membership, Tenures], Holders]
"""Chooses who is to hold what."""

since_option = click.option(
    "--since",
    required=True,
    type=INSTANT,
    metavar="DATE",
    help=f"When it takes effect: a date, a date and time (local unless it has a zone), or "
    f"{ALWAYS!r}.",
)

correction_options = together(
    [
        since_option,
        click.option("--yes", is_flag=True, help="Make the change; otherwise it is only shown."),
        config_option,
        pool_option,
        json_option,
    ]
)


@click.group(cls=GroupOfCommands, invoke_without_command=True)
@config_option
@pool_option
@json_option
@click.pass_context
def command(
    context: click.Context, config_path: Path, pool: str | None, *, json_file: Path | None
) -> None:
    """Show who owned which account and node since when, or correct it.

    Without a command it lists every known account and node with all its holders, oldest first,
    the partitions that were ever left out, and all corrections.
    """
    if context.invoked_subcommand is not None:
        return
    config = load_config(config_path)
    with Store.open(config.store.url) as store:
        ownership = read_ownership(stored_cluster(config, store, pool))
    names = [organization.name for organization in config.organizations]
    without_any = ownership.tenures.without_any(names)
    if write_json(json_file, listing_as_json(ownership, without_any)):
        render_ownership(standard_output(), ownership, without_any)


@command.command("set")
@click.argument("name", metavar="NODE|ACCOUNT")
@click.argument("organization")
@click.option("--kind", type=click.Choice(KINDS), help="Which is meant, if both have the name.")
@correction_options
def set_(
    name: str, organization: str, kind: Kind | None, config_path: Path, **options: Any
) -> None:
    """Give NODE or ACCOUNT to ORGANIZATION from a date on.

    NODE may be a host list such as n[1-16]; ORGANIZATION may be nobody. The past is recounted: the
    ledger becomes what it would be if the node or account had belonged to it since. Without --yes
    this is a preview; with it the correction is recorded. Stop the daemon first.
    """

    def choose(config: Config, _members: Membership, tenures: Tenures) -> Holders:
        configured = [member.name for member in config.organizations]
        holder = find_organization(organization, configured, tenures)
        found, names = find(tenures, name, kind)
        return {found: dict.fromkeys(names, holder)}

    _correct(config_path, choose, **options)


@command.command
@correction_options
def recount(config_path: Path, **options: Any) -> None:
    """Count since a date as if the configuration had always been what it is now.

    Every account and node of the cluster belongs to the organization that the configuration names,
    and accounts and partitions are left out as it says. With --since always the ledger is that of a
    new store. Without --yes this is a preview; with it the correction is recorded. Stop the daemon
    first.
    """

    def choose(_config: Config, members: Membership, _tenures: Tenures) -> Holders:
        return holders_in(members)

    _correct(config_path, choose, **options)


def _correct(
    config_path: Path,
    choose: Choice,
    *,
    pool: str | None,
    since: int,
    yes: bool,
    json_file: Path | None,
) -> None:
    whole = load_config(config_path)
    slurm = connect(whole)
    segment = segment_meant(whole, cluster_of(whole, slurm), pool)
    config, ledger = segment.configured(whole), segment.ledger
    layout, at = segment.layout(slurm.layout()), slurm.controller().time
    members = configured_membership(config, layout)

    def run(store: ClusterStore) -> tuple[Holders, CorrectedOwnership]:
        holders = choose(config, members, read_ownership(store).tenures)
        correction = Correction(
            holders=holders,
            since=since,
            at=at,
            user=user(),
            processors=_processors(config, layout),
            partitions_of=layout.partitions_of_nodes(),
            organizations=[organization.name for organization in config.organizations],
            longest_age=config.estimation.longest_age,
        )
        return holders, correct(store, correction)

    if yes:
        with (
            journal_of(config, create=False) as journal,
            Store.open(config.store.url) as opened,
            Lease(
                opened.cluster(ledger), seconds=config.service.lease, journal=journal
            ).held() as ours,
        ):
            holders, found = run(ours)
    else:
        with termination_unwinds(), private_copy(config.store.url, [ledger]) as (copy, _):
            holders, found = run(copy)
    if write_json(json_file, outcome_as_json(found, done=yes)):
        render_outcome(standard_output(), found, done=yes)
        for line in objections(holders, members):
            click.echo(visible(line))


def _processors(config: Config, layout: Layout) -> Mapping[str, int]:
    tres = config.fairness.tres
    return {name: node.tres.get(tres, 0) for name, node in layout.nodes.items()}
