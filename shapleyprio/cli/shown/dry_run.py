"""Prints what a dry run of the daemon found."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from shapleyprio.cli.shown.standings import plan_table, standings_table
from shapleyprio.cli.shown.tables import FittingTable
from shapleyprio.common.wording import clock_time, magnitude, signed_duration, visible
from shapleyprio.daemon.accounting.moves import holds_nothing, together
from shapleyprio.daemon.answering.status import OrganizationStatus
from shapleyprio.daemon.steering.dry_run import Forecast
from shapleyprio.fairness.tenure import NOBODY

MOVES_SHOWN = 20
"""Lines of nodes and accounts that change hands, unless all are asked for."""


def render(console: Console, forecast: Forecast, *, verbose: bool) -> None:
    """Prints the ranking, what changes, and how much would be written.

    Args:
        console: where to.
        forecast: what the cycle found.
        verbose: print every write, and all that changes hands.
    """

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    say(f"{forecast.cluster}, {clock_time(forecast.t)}: a dry run, nothing is written or kept")
    say(_opening(forecast))
    console.print(_table(forecast))
    for line in _changes(forecast):
        say(line)
    moves = together(forecast.moves)
    for what, change, _ in moves if verbose else moves[:MOVES_SHOWN]:
        say(f"{visible(what)}: {change} from now on")
    if not verbose and len(moves) > MOVES_SHOWN:
        say(f"{len(moves) - MOVES_SHOWN} more lines of what changes hands; --verbose shows them")
    for name in forecast.without_any:
        say(holds_nothing(name))
    if verbose:
        console.print(plan_table(forecast.pushes))
    else:
        say(_writes(forecast))


def _opening(forecast: Forecast) -> str:
    opened = clock_time(forecast.opened)
    if forecast.is_new:
        return f"{forecast.store} has no ledger of this cluster yet: a new one counts from {opened}"
    return f"counted from {opened}"


def _table(forecast: Forecast) -> FittingTable:
    rows = [standing.status for standing in forecast.standings]
    return standings_table(
        rows,
        [
            ("priority", [str(row.priority) for row in rows]),
            ("pending", [str(row.pending) for row in rows]),
            ("running", [str(row.running) for row in rows]),
            ("writes", [str(forecast.writes.get(row.organization, 0)) for row in rows]),
        ],
    )


def _changes(forecast: Forecast) -> Iterator[str]:
    """Yields a line for every organization with another rank than in the last standings."""
    if forecast.since is None:
        return
    left = set(forecast.before)
    lines = []
    for standing in forecast.standings:
        now = standing.status
        left.discard(now.organization)
        before = forecast.before.get(now.organization)
        if before is None:
            lines.append(f"  {now.organization}: new, rank {standing.rank}")
        elif (before.rank, before.status.priority) != (standing.rank, now.priority):
            lines.append(
                f"  {now.organization}: rank {before.rank} → {standing.rank}, points "
                f"{before.status.priority} → {now.priority}, {_scores(before.status, now)}"
            )
    lines += [f"  {name}: no longer there" for name in forecast.before if name in left]
    yield f"against the last cycle in the store, {clock_time(forecast.since)}:"
    yield from lines or ["  every organization keeps its rank and its points"]


def _scores(before: OrganizationStatus, now: OrganizationStatus) -> str:
    if (before.score, now.score) == (before.balance, now.balance):
        balances = (signed_duration(each.balance_per_part) for each in (before, now))
        return f"balance {' → '.join(balances)}"
    return f"score {magnitude(before.score)} → {magnitude(now.score)}"


def _writes(forecast: Forecast) -> str:
    count = len(forecast.pushes)
    if not count:
        return "nothing to write"
    put_back = forecast.writes.get(NOBODY, 0)
    rest = f", {put_back} of them to restore original values" if put_back else ""
    later = f", {forecast.postponed} more left to the next cycle" if forecast.postponed else ""
    return f"{count} write{'s' * (count != 1)}{rest}{later}; --verbose lists them"
