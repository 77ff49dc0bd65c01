"""Tables and sentences of `shapleyprio status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console

from shapleyprio.cli.common import alone
from shapleyprio.cli.shown.explanations import SET_BY_HAND
from shapleyprio.cli.shown.ranks import sentences_on_steering
from shapleyprio.cli.shown.standings import standings_table
from shapleyprio.cli.shown.tables import Cells, FittingColumn, FittingTable
from shapleyprio.cli.shown.waiting_work import in_words, users_table
from shapleyprio.common.wording import MISSING, clock_time, count, delay, duration, listed, visible
from shapleyprio.config import Config
from shapleyprio.daemon.answering.freshness import Steering, read_steering
from shapleyprio.daemon.answering.status import NoStandingsError, Status, read_status
from shapleyprio.daemon.answering.waits import WaitsInPartition
from shapleyprio.store import ClusterStore

STALE = 1
"""Exit code where what is shown does not hold any more."""


@dataclass(frozen=True, slots=True)
class StatusOfEach:
    """The status of each ledger of a cluster.

    Attributes:
        known: after the last cycle, and whether that still holds.
        unknown: ledgers without a cycle that has succeeded, as of a pool just added -> a line.
    """

    known: Sequence[tuple[Status, Steering]]
    unknown: Mapping[str, str]

    @property
    def code(self) -> int:
        """The exit code."""
        stale = any(steering.is_stale for _, steering in self.known)
        return STALE if stale or self.unknown else 0

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        known = [{**status.as_json(), **steering.as_json()} for status, steering in self.known]
        unknown = [{"cluster": name, "error": why} for name, why in self.unknown.items()]
        shown: dict[str, Any] = alone([*known, *unknown])
        return shown

    def render(self, console: Console, config: Config, *, waits: bool) -> None:
        """Prints all, with how long jobs wait if that is wanted."""
        for status, steering in self.known:
            render(console, status, steering, config.slurm.adapter)
            if waits:
                console.print(waits_table(status.waits))
        for why in self.unknown.values():
            console.print(visible(why), highlight=False, soft_wrap=True)


def read_each(config: Config, ledgers: Iterable[ClusterStore]) -> StatusOfEach:
    """Reads the status of ledgers.

    Raises:
        StoreError: it cannot be read, or no cycle of any has succeeded yet.
    """
    known: list[tuple[Status, Steering]] = []
    unknown: dict[str, NoStandingsError] = {}
    for ledger in ledgers:
        try:
            status = read_status(ledger)
        except NoStandingsError as why:
            unknown[ledger.cluster] = why
        else:
            known.append((status, read_steering(ledger, config.service.poll_interval)))
    if not known:
        raise next(iter(unknown.values()))
    return StatusOfEach(known, {name: str(why) for name, why in unknown.items()})


def render(console: Console, status: Status, steering: Steering, adapter: str) -> None:
    """Prints the table and what an admin should know of the last cycle.

    Args:
        console: where to.
        status: of the cluster.
        steering: whether that still holds.
        adapter: the one that the configuration chooses.
    """
    say = partial(console.print, highlight=False, soft_wrap=True)
    cycle = status.cycle
    slurm = f", Slurm {cycle.slurm_version}" if cycle.slurm_version else ""
    heading = f"{status.cluster}, {clock_time(cycle.t)}{slurm}"
    console.print(visible(heading), highlight=False)
    console.print(_table(status))
    on_numbers = (
        status.on_window,
        status.on_balance,
        status.on_estimate,
        status.on_rule,
        status.on_forecasts,
    )
    on_pool = status.pool.sentences() if status.pool else ()
    on_steering = sentences_on_steering(steering, of_status=True)
    for sentence in filter(None, (*on_numbers, *on_pool, *on_steering)):
        say(visible(sentence))
    console.print(
        f"last cycle {cycle.number}: {cycle.outcome}, {duration(steering.age)} ago, "
        f"{cycle.seen} records read, {cycle.written} priorities written"
        + (f", {cycle.postponed} left to the next cycle" if cycle.postponed else "")
    )
    if cycle.of_unknown_accounts:
        say(
            f"{count(cycle.of_unknown_accounts, 'pending job')} of accounts that accounting does "
            "not know: they belong to no organization; `shapleyprio check` names them"
        )
    if cycle.by_hand:
        found = [
            f"{what} at {count(cycle.by_hand[kind], 'job')}"
            for kind, what in SET_BY_HAND.items()
            if kind in cycle.by_hand
        ]
        say(f"set by hand and left as it is: {listed(found)}")
    if adapter == "auto" and cycle.adapter == "command_line":
        console.print(
            "adapter command_line instead of pyslurm; `shapleyprio check` says why",
            highlight=False,
        )
    _render_estimate(console, status)
    if status.table is not None:
        words = (
            f"new jobs have their points from {status.table.path} since "
            f"{clock_time(status.table.since or 0)}; {count(status.missed, 'job')} came without "
            "them in the last day"
        )
        say(visible(words))
    if status.failure is not None:
        failed = f"since then: cycle {status.failure.number} failed: {status.failure.message}"
        console.print(visible(failed))
    for line in status.quarantined:
        text = f"{line.line.source}: {line.line.reason}: {line.line.text}"
        console.print(f"quarantined {line.times}×: {visible(text)}", highlight=False)


def _table(status: Status) -> FittingTable:
    rows = status.rows
    columns = [
        ("late or ahead", [delay(status.delay(row.organization)) for row in rows]),
        ("priority", [str(row.priority) for row in rows]),
        ("pending", [str(row.pending) for row in rows]),
        ("running", [str(row.running) for row in rows]),
    ]
    if status.estimated is not None:
        work = [status.estimated.waiting_work.get(row.organization) for row in rows]
        columns.append(("waiting work", [in_words(own) if own else MISSING for own in work]))
    return standings_table(rows, columns, status.pool, balanced=not status.fell_back)


def _render_estimate(console: Console, status: Status) -> None:
    """Prints what contributions rest on, and whose waiting work counts in it."""
    if status.estimated is not None:
        age = status.cycle.t - status.estimated.t
        error = status.error_per_part
        console.print(
            f"rule {status.cycle.rule}: contributions estimated {duration(age)} before, from "
            f"{status.estimated.coalitions} coalitions, standard error at most "
            f"{MISSING if error is None else duration(error)}",
            highlight=False,
        )
        by_user = users_table(status.estimated.waiting_work.values())
        if by_user is not None:
            console.print(*by_user, sep="\n", highlight=False)


def waits_table(rows: Sequence[WaitsInPartition]) -> FittingTable:
    """Returns a line for each organization and partition."""

    def seconds(values: Sequence[int | None]) -> list[str]:
        return [MISSING if value is None else duration(value) for value in values]

    return FittingTable(
        [
            FittingColumn("organization", [row.organization for row in rows], Cells.NAME),
            FittingColumn("partition", [row.partition or MISSING for row in rows], Cells.NAME),
            FittingColumn("started", [str(row.started) for row in rows], leaves=1),
            FittingColumn("median wait", seconds([row.median for row in rows])),
            FittingColumn("90 % within", seconds([row.ninth_decile for row in rows]), leaves=3),
            FittingColumn("longest", seconds([row.longest for row in rows]), leaves=2),
            FittingColumn("waiting", [str(row.pending) for row in rows], leaves=4),
            FittingColumn("oldest for", seconds([row.oldest for row in rows])),
        ],
        empty="no job started in the last day, and no eligible job waits",
    )
