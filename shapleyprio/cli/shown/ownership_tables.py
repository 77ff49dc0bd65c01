"""Who owned what, and what a correction changes, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from typing import Any

import click
from rich.console import Console

from shapleyprio.cli.options.types import ALWAYS
from shapleyprio.cli.shown.tables import Cells, FittingColumn, FittingTable
from shapleyprio.common.wording import MISSING, clock_time, percent, signed_duration, visible
from shapleyprio.config.membership import Membership
from shapleyprio.daemon.accounting.allocating import CorrectedTenures
from shapleyprio.daemon.accounting.moves import called, holds_nothing, in_words
from shapleyprio.daemon.accounting.ownership import (
    KINDS,
    CorrectedOwnership,
    Holders,
    Ownership,
    history,
    holders_in,
)
from shapleyprio.fairness.ledger import Standing
from shapleyprio.fairness.tenure import NOBODY, Kind, Tenures
from shapleyprio.store import CorrectionRow

Held = tuple[tuple[str, int | None], ...]
"""Organizations that held something one after the other, each with its first second."""

KINDS_LISTED: tuple[Kind, ...] = (*KINDS, "partition")

ALWAYS_TAKING_PART: Held = ((NOBODY, None),)
"""The history of most partitions, which is not worth a line."""

Change = tuple[Kind, str, Held, Held]
"""A node or an account: its kind, its name, and its holders before and after a correction."""


# -- what is


def listing_as_json(ownership: Ownership, without_any: Sequence[str]) -> dict[str, Any]:
    """Returns for json.dumps who held what since when.

    Args:
        ownership: of a cluster.
        without_any: organizations that hold nothing now.
    """
    return {
        "cluster": ownership.cluster,
        "opened": ownership.opened,
        "correctable": ownership.correctable,
        "tenures": [asdict(tenure) for tenure in ownership.tenures],
        "without_any": list(without_any),
        "corrections": [
            asdict(row) | {"before": _held_as_json(row.before), "after": _held_as_json(row.after)}
            for row in ownership.corrections
        ],
    }


def render_ownership(console: Console, ownership: Ownership, without_any: Sequence[str]) -> None:
    """Prints who held what since when; names with the same history share their lines."""
    click.echo(visible(f"{ownership.cluster} counts from {clock_time(ownership.opened)}"))
    console.print(_tenures(ownership.tenures))
    for name in without_any:
        click.echo(visible(holds_nothing(name)))
    if ownership.correctable > ownership.opened:
        click.echo(f"can be corrected from {clock_time(ownership.correctable)} on")
    for line in _corrections(ownership.corrections):
        click.echo(visible(line))


def _tenures(tenures: Tenures) -> FittingTable:
    rows = [
        ("" if number else in_words(kind, names), called(holder, kind), _since(since))
        for kind in KINDS_LISTED
        for held, names in _by_history(tenures, kind).items()
        if (kind, held) != ("partition", ALWAYS_TAKING_PART)
        for number, (holder, since) in enumerate(held)
    ]
    what, holders, seconds = zip(*rows, strict=True) if rows else ((), (), ())
    return FittingTable(
        [
            FittingColumn("what", what, Cells.TEXT),
            FittingColumn("organization", holders, Cells.NAME),
            FittingColumn("since", seconds),
        ],
        empty="no nodes or accounts are known",
    )


def _by_history(tenures: Tenures, kind: Kind) -> dict[Held, list[str]]:
    """Returns a history -> the names that have it."""
    names: dict[Held, list[str]] = {}
    for name in sorted({tenure.name for tenure in tenures if tenure.kind == kind}):
        names.setdefault(history(tenures.of(kind, name)), []).append(name)
    return names


def _corrections(rows: Sequence[CorrectionRow]) -> Iterator[str]:
    grouped: dict[tuple[int, int, str], list[Change]] = {}
    for row in rows:
        change = (row.kind, row.name, row.before, row.after)
        grouped.setdefault((row.number, row.at, row.user), []).append(change)
    for (number, at, user), changes in grouped.items():
        yield f"correction {number}, {clock_time(at)} by {user}:"
        yield from (f"  {line}" for line in _changes(changes))


# -- what a correction changes


def outcome_as_json(found: CorrectedOwnership, *, done: bool) -> dict[str, Any]:
    """Returns for json.dumps what a correction changes, or has changed if it is done."""
    return {
        "done": done,
        "correction": found.number if done else None,
        "t": found.t,
        "tenures": [
            {
                "kind": each.after[0].kind,
                "name": each.after[0].name,
                "before": _held_as_json(history(each.before)),
                "after": _held_as_json(history(each.after)),
            }
            for each in found.tenures
        ],
        "organizations": [
            {
                "organization": name,
                "before": _standing_as_json(found.before[name]),
                "after": _standing_as_json(found.after[name]),
            }
            for name in found.after
        ],
    }


def render_outcome(console: Console, found: CorrectedOwnership, *, done: bool) -> None:
    """Prints what a correction changes, or has changed if it is done.

    Args:
        console: where to.
        found: what the correction found.
        done: whether the store has it.
    """
    if not found.tenures:
        click.echo("already recorded so; nothing to correct")
        return
    for line in _changes(_changed(each) for each in found.tenures):
        click.echo(visible(line))
    console.print(_standings(found))
    click.echo(f"as of {clock_time(found.t)}, with direct contributions")
    if done:
        click.echo(f"done; recorded as correction {found.number}")
    else:
        click.echo("nothing is changed yet; stop the daemon and add --yes to do it")


def _standings(found: CorrectedOwnership) -> FittingTable:
    names = list(found.after)
    columns = [FittingColumn("organization", names, Cells.NAME)]
    for heading, of, leaves in (
        ("earned", partial(_shares, "contribution"), 1),
        ("got", partial(_shares, "utility"), 2),
        ("balance", partial(_balances, found.all_parts), None),
    ):
        before, after = of(found.before), of(found.after)
        columns += [
            FittingColumn(heading, [before[name] for name in names], leaves=leaves),
            FittingColumn("→", [after[name] for name in names], leaves=leaves),
        ]
    return FittingTable(columns)


def _balances(all_parts: int, standings: Mapping[str, Standing]) -> dict[str, str]:
    return {
        name: signed_duration(Fraction(standing.balance, all_parts) if all_parts else None)
        for name, standing in standings.items()
    }


def _shares(what: str, standings: Mapping[str, Standing]) -> dict[str, str]:
    numbers = {name: getattr(standing, what) for name, standing in standings.items()}
    whole = sum(numbers.values())
    return {
        name: percent(Fraction(number, whole)) if whole else MISSING
        for name, number in numbers.items()
    }


def _changed(found: CorrectedTenures) -> Change:
    first = found.after[0]
    return first.kind, first.name, history(found.before), history(found.after)


def _changes(changes: Iterable[Change]) -> Iterator[str]:
    """Yields a line for all names that share a change of history."""
    grouped: dict[tuple[Kind, Held, Held], list[str]] = {}
    for kind, name, before, after in changes:
        grouped.setdefault((kind, before, after), []).append(name)
    for (kind, before, after), names in grouped.items():
        yield f"{in_words(kind, names)}: {_in_words(kind, before)} → {_in_words(kind, after)}"


def _in_words(kind: Kind, held: Held) -> str:
    return ", ".join(
        f"{called(organization, kind)} {_since(since)}"
        if since is None
        else f"{called(organization, kind)} since {_since(since)}"
        for organization, since in held
    )


def objections(holders: Holders, members: Membership) -> Iterator[str]:
    """Yields what the next cycle will find in other hands by the configuration."""
    configured = holders_in(members)
    grouped: dict[tuple[Kind, str], list[str]] = {}
    for kind, names in holders.items():
        for name, holder in names.items():
            if configured[kind].get(name, holder) != holder:
                grouped.setdefault((kind, configured[kind][name]), []).append(name)
    for (kind, holder), given in grouped.items():
        yield (
            f"the configuration gives {in_words(kind, given)} to {called(holder, kind)}: that "
            "counts from the daemon's next cycle on"
        )


def _since(second: int | None) -> str:
    return ALWAYS if second is None else clock_time(second)


def _held_as_json(held: Held) -> list[dict[str, Any]]:
    return [{"organization": organization, "since": since} for organization, since in held]


def _standing_as_json(standing: Standing) -> dict[str, int]:
    return {
        "contribution": standing.contribution,
        "utility": standing.utility,
        "balance": standing.balance,
    }
