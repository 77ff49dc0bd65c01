"""The work of `shapleyprio report`: read a month out of the store, audit it, write the files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import click

from shapleyprio.cli.offline.in_force import read_in_force
from shapleyprio.cli.options.types import Month
from shapleyprio.cli.shown.progress import ProgressBar, progress_bars
from shapleyprio.cli.shown.standings import MOST_USERS
from shapleyprio.common.errors import OutputError, ReplayError
from shapleyprio.common.output import write_json
from shapleyprio.common.wording import dates, listed
from shapleyprio.config import Config
from shapleyprio.daemon.answering.waits import WaitsInPartition, by_place
from shapleyprio.daemon.ledgers import stored_ledgers
from shapleyprio.replay.audit.auditing import Audit, audit
from shapleyprio.replay.audit.findings import verdict
from shapleyprio.replay.audit.in_force import InForce
from shapleyprio.replay.audit.results import audit_as_json
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.logs.exports.reading import read_export
from shapleyprio.replay.logs.stored import users_after_end
from shapleyprio.replay.logs.window import KnownSpan, Past, known_span, past_between
from shapleyprio.reports import Page, write_page
from shapleyprio.reports.audit_page import audit_page
from shapleyprio.store import ClusterStore, Store, UserAfterEnd, Wait

WAITS_SHOWN = attrgetter(
    "organization", "partition", "started", "median", "ninth_decile", "longest"
)
"""Takes what the page shows of the waits in a partition."""

NOTHING_BEFORE = "The log does not hold the period before, so these figures stand alone."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMonth:
    """What a store knows of a month.

    Attributes:
        whose: name of the ledger, or of the pool if that is over several clusters.
        past: what was executed in the month, as far as the store holds it.
        before: the same of the month before; None where the store does not hold all of it.
        lacks: the part of the month that is missing, in words; empty if none is.
        after_end: whose jobs went on after their ends in it most.
        waits: how long the jobs had waited that started in it.
        in_force: who ordered the queue in it, and what changed hands.
    """

    whose: str
    past: Past
    before: Past | None
    lacks: str
    after_end: list[UserAfterEnd]
    waits: Sequence[WaitsInPartition]
    in_force: InForce


def write_reports(
    config: Config, config_path: Path, month: Month, directory: Path, *, cores: int
) -> None:
    """Writes the files of a month out of the daemon's store; `write_each` says how.

    Raises:
        ReplayError, StoreError, OutputError: likewise.
    """
    with Store.open(config.store.url) as store:
        ledgers = stored_ledgers(config, store)
        write_each(config, store, ledgers, ("--config", config_path), month, directory, cores=cores)


def write_reports_of_export(export: Path, month: Month, directory: Path, *, cores: int) -> None:
    """Writes the same out of an export, with its organizations.

    Raises:
        ReplayError, StoreError, OutputError: likewise.
    """
    found = read_export(str(export))
    names, parents = found.manifest.organizations, found.manifest.parents
    tables = [{"name": name, "parent": parents.get(name)} for name in names]
    config = Config.model_validate({"organization": tables})
    with Store.open(found.url, called=str(export)) as store:
        ledgers = [store.cluster(name) for name in found.manifest.games]
        write_each(config, store, ledgers, (export,), month, directory, cores=cores)


def write_each(
    config: Config,
    store: Store,
    ledgers: Sequence[ClusterStore],
    source: tuple[str | Path, ...],
    month: Month,
    directory: Path,
    *,
    cores: int,
) -> None:
    """Writes the files of a month, one set for each of the ledgers; prints their names.

    Of a ledger that has nothing of the month one line says so, if there is another one.

    Args:
        config: whose organizations count, as do those that have left since.
        store: with the ledgers.
        ledgers: each of a cluster, or with others of its pool.
        source: the words of the command that name what was read.
        month: to report.
        directory: of the files.
        cores: to compute on.

    Raises:
        ReplayError: nothing of the month is stored, or no report can be made of it.
        StoreError: the store cannot be read.
        OutputError: a file cannot be written.
    """
    nothing: list[ReplayError] = []
    for ledger in ledgers:
        try:
            stored = read_month(store, month, ledger.cluster)
            _write_report(config, source, month, directory, stored, cores=cores)
        except ReplayError as error:
            nothing.append(error)
            if len(nothing) == len(ledgers):
                raise
            click.echo(f"shapleyprio: {ledger.cluster}: {error}", err=True)


def _write_report(
    config: Config,
    source: tuple[str | Path, ...],
    month: Month,
    directory: Path,
    stored: StoredMonth,
    *,
    cores: int,
) -> None:
    with progress_bars() as bar:
        compared = stored.in_force.compared
        found = audit_of(config, stored.past, cores, compared, bar=bar)
        earlier = earlier_audit(config, stored.before, cores, compared, bar=bar)
    words = ("shapleyprio", "report", *source, "--month", month)
    page = audit_page(
        stored.past.log,
        found,
        options={"month": str(month), "cluster": stored.whose},
        command=shlex.join(map(str, (*words, "--output", directory))),
        title=f"How fair was {month.in_words}? {stored.whose}",
        earlier=earlier,
        continued=True,
        lacks=(
            *([stored.lacks] if stored.lacks else []),
            *([NOTHING_BEFORE] if earlier is None else []),
        ),
        after_end=stored.after_end,
        waits=[WAITS_SHOWN(one) for one in stored.waits],
        in_force=stored.in_force,
    )
    files = write_files(page, stored, found, directory, f"{stored.whose.replace('/', '-')}-{month}")
    click.echo(f"{stored.whose}, {dates(stored.in_force.begin, stored.in_force.end)}:")
    click.echo(verdict(found))
    for line in stored.in_force.sentences():
        click.echo(line)
    if stored.lacks:
        click.echo(stored.lacks)
    for file in files:
        click.echo(file)


def read_month(store: Store, month: Month, ledger: str) -> StoredMonth:
    """Reads a month of a ledger, or of its whole pool, and the one before, out of the store.

    Raises:
        ReplayError: nothing of the month is stored.
        StoreError: the store cannot be read.
    """
    known = known_span(store, ledger, until=month.end)
    begin, end = max(month.begin, known.begin), known.end
    if begin >= end:
        all_of_it = known_span(store, ledger)
        raise ReplayError(
            f"{store.name}: holds nothing from {month}; it holds work from "
            f"{dates(all_of_it.begin, all_of_it.end)}"
        )
    earlier = month.previous
    before = (
        past_between(store, known.ledgers, earlier.begin, earlier.end)
        if earlier.begin >= known.begin
        else None
    )
    ledgers = [store.cluster(name) for name in known.ledgers]
    return StoredMonth(
        whose=known.pool or ledger,
        past=past_between(store, known.ledgers, begin, end),
        before=before,
        lacks=_lacks(known, month, begin),
        after_end=users_after_end(ledgers, begin, end, MOST_USERS),
        waits=_waits(ledgers, begin, end),
        in_force=read_in_force(ledgers, begin, end),
    )


def _waits(ledgers: Sequence[ClusterStore], begin: int, end: int) -> Sequence[WaitsInPartition]:
    """Reads how long the jobs had waited that started then; several ledgers are named."""
    found: list[Wait] = []
    for ledger in ledgers:
        with ledger.reading() as view:
            waits = view.runs.waits(begin, end)
        of = f"{ledger.cluster}: " if len(ledgers) > 1 else ""
        found += [wait._replace(partition=of + wait.partition) for wait in waits]
    return by_place(found, (), end)


def _lacks(known: KnownSpan, month: Month, begin: int) -> str:
    """Names the part of a month that is missing; empty if none is."""
    found = []
    if known.without:
        found.append(f"It leaves out {listed(known.without)}: the store holds too little there.")
    if (begin, known.end) != (month.begin, month.end):
        of_all = f" of {listed(known.ledgers)}" if known.pool else ""
        found.append(f"Of this month the store holds only {dates(begin, known.end)}{of_all}.")
    return " ".join(found)


def earlier_audit(
    config: Config, before: Past | None, cores: int, compared: Sequence[str], *, bar: ProgressBar
) -> Audit | None:
    """Audits the month before; None where the store does not hold it, or no job ran in it."""
    if before is None:
        return None
    try:
        return audit_of(config, before, cores, compared, bar=bar)
    except WorkloadError:
        return None


def audit_of(
    config: Config, past: Past, cores: int, compared: Sequence[str], *, bar: ProgressBar
) -> Audit:
    """Audits what was executed.

    Raises:
        ReplayError: that was nothing of any organization, or numbers get too large.
    """
    names = [one.name for one in config.organizations]
    workload = past.workload(past.consortium(names, config.parents))
    return audit(
        workload,
        compared=compared,
        cores=cores,
        bar=lambda policy: bar(policy, workload.window.length),
    )


def write_files(
    page: Page, stored: StoredMonth, found: Audit, directory: Path, stem: str
) -> list[Path]:
    """Writes the page and its figures; returns their names.

    Raises:
        OutputError: a file cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{directory}: cannot be created ({error.strerror}); name another directory"
        ) from None
    files = [directory / f"{stem}.html", directory / f"{stem}.json"]
    write_page(page, files[0])
    waits = [one.as_json() for one in stored.waits]
    figures = audit_as_json(stored.past.log, found, stored.after_end)
    write_json(files[1], figures | {"waits": waits})
    return files
