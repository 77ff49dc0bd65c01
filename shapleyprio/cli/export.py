"""`shapleyprio export`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.logs import log_warnings
from shapleyprio.cli.options.refusals import (
    refuse,
    refuse_missing_directories,
    refuse_the_same_file,
)
from shapleyprio.cli.options.shared import config_option
from shapleyprio.cli.options.types import INSTANT
from shapleyprio.common.errors import OutputError
from shapleyprio.common.wording import dates, listed, whole
from shapleyprio.config import Config, connect, load_config
from shapleyprio.daemon.ledgers import cluster_of, stored_ledgers
from shapleyprio.daemon.steering.dry_run import accounted_afresh
from shapleyprio.replay.logs.exports.anonymizing import Anonymizer, key_in
from shapleyprio.replay.logs.exports.records import Manifest
from shapleyprio.replay.logs.exports.rows import ExportSpan
from shapleyprio.replay.logs.exports.writing import export
from shapleyprio.store import ClusterStore, Store, StoreError


@click.command
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@config_option
@click.option(
    "--since",
    type=INSTANT,
    metavar="DATE",
    help="Leave out what had ended by then.  [default: nothing]",
)
@click.option(
    "--until",
    type=INSTANT,
    metavar="DATE",
    help="Leave out what began from then on.  [default: nothing]",
)
@click.option(
    "--live",
    is_flag=True,
    help="Read Slurm's accounting instead of the store, with the present owners and sizes.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--anonymize", is_flag=True, help="Replace all names, and say what is left.")
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --anonymize: file with the key; it is created if missing. With the same key "
    "a name becomes the same in every export.  [default: a random key that is not kept]",
)
@click.option(
    "--shift-time",
    is_flag=True,
    help="With --anonymize: move all times into the past, by whole weeks that the key chooses.",
)
def command(
    file: Path,
    config_path: Path,
    since: int | None,
    until: int | None,
    *,
    live: bool,
    force: bool,
    anonymize: bool,
    key_file: Path | None,
    shift_time: bool,
) -> None:
    """Export accounting, with nodes, accounts and owners, into FILE.

    Beside the jobs that were executed it has nodes with their sizes and partitions, the tree of
    accounts, who owned what, which rule and channel steered, pauses and jobs that were put first,
    each since when; weight, horizon and Slurm's release. The commands replay, audit, report,
    experiment and trial read it, and need no --organizations. docs/export.md describes the file for
    other programs.

    Dates are local unless they have a zone. The store keeps runs for the time that the key
    service.keep_runs sets; it is only read.
    """
    refuse(
        (
            not anonymize and (key_file is not None or shift_time),
            "--key and --shift-time go with --anonymize",
        ),
        (
            since is not None and until is not None and since >= until,
            "--since must be before --until",
        ),
    )
    refuse_the_same_file(("FILE", file), ("--config", config_path), ("--key", key_file))
    refuse_missing_directories(("FILE", file))
    if file.exists() and not force:
        raise OutputError(f"{file}: already exists; --force overwrites it")
    config = load_config(config_path)
    anonymizer = Anonymizer(key_in(key_file), shift=shift_time) if anonymize else None
    names = [organization.name for organization in config.organizations]
    parents = config.parents
    with termination_unwinds(), _ledgers(config, since, live=live) as ledgers:
        span = ExportSpan(since, until)
        written = export(file, ledgers, names, span, anonymizer, parents=parents)
    click.echo(f"{file}: {_summary(written)}")
    if anonymizer is not None:
        kept = f"the key is in {key_file}: keep it secret" if key_file else "the key was not kept"
        click.echo(f"names were replaced, and {kept}; the file still says")
        for left in anonymizer.left:
            click.echo(f"- {left}")


@contextmanager
def _ledgers(config: Config, since: int | None, *, live: bool) -> Iterator[Sequence[ClusterStore]]:
    """Opens what is to be exported: the cluster's ledgers, and those of others in its pools."""
    if live:
        log_warnings()
        slurm = connect(config)
        with accounted_afresh(config, slurm, cluster_of(config, slurm), since) as ledgers:
            yield ledgers
        return
    store = Store.open_existing(config.store.url)
    if store is None:
        raise StoreError(
            f"store {Store.name_of(config.store.url)}: there is none yet; --live reads Slurm's "
            "accounting instead"
        )
    with store:
        yield list(_with_pools(store, stored_ledgers(config, store)))


def _with_pools(store: Store, ledgers: Sequence[ClusterStore]) -> Iterator[ClusterStore]:
    names = dict.fromkeys(ledger.cluster for ledger in ledgers)
    for ledger in ledgers:
        with ledger.reading() as view:
            stay = view.pools.stay()
        names |= dict.fromkeys(stay.clusters if stay else ())
    known = store.clusters()
    return (store.cluster(name) for name in names if name in known)


def _summary(written: Manifest) -> str:
    first = min(ledger.complete_from for ledger in written.ledgers)
    last = max(ledger.complete_until for ledger in written.ledgers)
    return (
        f"{whole(written.rows['runs.jsonl'])} jobs of {len(written.organizations)} organizations, "
        f"executed from {dates(first, last)} on "
        f"{listed([ledger.name for ledger in written.ledgers])}"
    )
