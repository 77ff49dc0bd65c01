"""What the audience sees: a table that moves, and at the end the results and a conclusion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from shapleyprio.common.wording import MISSING, percent, signed_duration, time_of_day, whole
from shapleyprio.lab.demo.consortium import CPUS_PER_NODE, MEMBERS, PROCESSORS
from shapleyprio.lab.demo.stage import DemoJob, Snapshot, mean_wait

LINE_SECONDS = 600
"""The jobs started in this time share a line."""

SNAPSHOT_SECONDS = 600
"""Where the output is no terminal, it is printed this often (on the cluster's clock)."""

LINES_BESIDE_ORDER = 15
"""Lines of a terminal that everything but the start order takes."""

COLUMNS_LEGEND = """\
Earned: its share of what all add to each other's work (φ̂, estimated).
Got: its share of the work done (ψ).  A CPU second counts its age.
Balance: earned minus got, spread over all work; + is owed, and comes first.
Wait: mean time from submission to start, or to now."""


Screen = Callable[[Snapshot], None]
"""Shows how things stand."""


@contextmanager
def screen(console: Console, duration: int | None) -> Iterator[Screen]:
    """Yields a screen that moves in a terminal, and prints snapshots elsewhere.

    Args:
        console: where to show.
        duration: of the demo, in seconds of the cluster's clock; None if it has no end.
    """
    if not console.is_terminal:
        yield _snapshots(console, duration)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:

        def show(snapshot: Snapshot) -> None:
            lines = max(console.height - LINES_BESIDE_ORDER, 1)
            live.update(frame(snapshot, duration, lines=lines), refresh=True)

        yield show


def _snapshots(console: Console, duration: int | None) -> Screen:
    console.print(Group(Text(COLUMNS_LEGEND, "dim"), Text()))
    due = SNAPSHOT_SECONDS

    def show(snapshot: Snapshot) -> None:
        nonlocal due
        if snapshot.elapsed >= due:
            due = (snapshot.elapsed // SNAPSHOT_SECONDS + 1) * SNAPSHOT_SECONDS
            console.print(frame(snapshot, duration, lines=2, legend=False))

    return show


def cast() -> RenderableType:
    """Introduces the organizations."""
    table = Table.grid(padding=(0, 2))
    for member in MEMBERS:
        cpus = CPUS_PER_NODE * len(member.nodes)
        owns = f"owns {' and '.join(member.nodes)} ({cpus} CPUs),"
        table.add_row(_letter(member.letter, member.color), member.name, owns, member.habit)
    share = f"{len(MEMBERS)} organizations share {PROCESSORS} CPUs and together ask for more:"
    return Group(Text(), share, table, Text())


def frame(
    snapshot: Snapshot, duration: int | None, *, lines: int, legend: bool = True
) -> RenderableType:
    """Draws the whole screen.

    Args:
        snapshot: what to show.
        duration: seconds of the whole demo; None if it has no end.
        lines: how many lines of the start order to show, the last ones.
        legend: whether to explain the columns.
    """
    clock = time_of_day(snapshot.t)
    headline = Text.assemble(
        ("cluster clock ", "dim"),
        (clock, "bold"),
        (f", {_hours(snapshot.elapsed)}", "dim"),
        ("" if duration is None else f" of {_hours(duration)}", "dim"),
        f"   cycle {snapshot.cycle}   {snapshot.written} priorities written",
    )
    if snapshot.failures:
        headline.append(f"   {len(snapshot.failures)} cycles failed", "bold red")
    order = _start_order(snapshot)[-lines:]
    explained = [Text(COLUMNS_LEGEND, "dim")] if legend else []
    return Group(headline, Text(), _standings(snapshot), *explained, Text(), *order, Text())


def _standings(snapshot: Snapshot) -> Table:
    numbers = ("priority", "pending", "running", "wait")
    table = narrow_table("owns", "earned", "got", "balance", *numbers)
    by_name = {row.organization: row for row in snapshot.rows}
    first = max(row.priority for row in snapshot.rows)
    for member in MEMBERS:  # each keeps its place, so that the eye can follow its numbers
        row = by_name[member.name]
        style = "bold" if row.priority == first else ""
        table.add_row(
            Text.assemble(_letter(member.letter, member.color), f" {member.name}"),
            percent(row.share, digits=0),
            share(row.contribution_share),
            share(row.utility_share),
            Text(signed_duration(row.balance_per_part), style),
            Text(whole(row.priority), style),
            str(row.pending),
            str(row.running),
            minutes(snapshot.mean_waits[member.name]),
        )
    return table


def share(part: float | None) -> str:
    """Returns a share as the tables show it."""
    return MISSING if part is None else percent(part, digits=0)


def narrow_table(*headings: str) -> Table:
    """Makes a table of organizations and numbers that fits into 80 columns."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("organization", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _start_order(snapshot: Snapshot) -> list[Text]:
    """Returns one letter for each started job, in the order of the starts."""
    letters = {m.name: _letter(m.letter, m.color) for m in MEMBERS}
    lines: dict[int, Text] = {}
    for second, account in snapshot.starts:
        number = (second - snapshot.began) // LINE_SECONDS
        if number not in lines:
            lines[number] = Text(f"started from {_hours(number * LINE_SECONDS)} on ", "dim")
        lines[number].append_text(letters[account])
    return [lines[number] for number in sorted(lines)]


def _letter(letter: str, color: str) -> Text:
    return Text(letter, style=f"bold not dim {color}")


def _hours(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02} h"


def minutes(seconds: float) -> str:
    """Returns a wait in minutes.

    >>> minutes(90)
    '1.5 min'
    """
    return f"{seconds / 60:.1f} min"


LEGEND = """\
Jobs that still wait count with their wait so far. First come: the same jobs
if started in the order of their submission, computed with the simulated Slurm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What became of one organization.

    Attributes:
        name: its name.
        submitted, started: its jobs.
        wait: their mean wait in seconds.
        wait_without: what it would have been, first come first served.
        earned, got: its shares of all φ̂ and of all ψ; None where nothing was.
        balance_per_part: its balance in seconds, spread over all work; None without any.
    """

    name: str
    submitted: int
    started: int
    wait: float
    wait_without: float
    earned: float | None
    got: float | None
    balance_per_part: float | None


def results(snapshot: Snapshot, without: Sequence[DemoJob]) -> list[DemoResult]:
    """Returns one result for each organization.

    Args:
        snapshot: the last one.
        without: the same jobs, first come first served; their clock starts at 0.
    """
    rows = {row.organization: row for row in snapshot.rows}
    found = []
    for member in MEMBERS:
        jobs = [job for job in snapshot.jobs if job.account == member.name]
        others = [job for job in without if job.account == member.name]
        found.append(
            DemoResult(
                name=member.name,
                submitted=len(jobs),
                started=sum(job.start is not None for job in jobs),
                wait=mean_wait(jobs, snapshot.t),
                wait_without=mean_wait(others, snapshot.elapsed),
                earned=rows[member.name].contribution_share,
                got=rows[member.name].utility_share,
                balance_per_part=rows[member.name].balance_per_part,
            )
        )
    return found


def summary_table(found: Sequence[DemoResult]) -> Table:
    """Shows the results as a table."""
    headings = ("jobs", "started", "mean wait", "first come", "earned", "got", "balance")
    table = narrow_table(*headings)
    for result in found:
        table.add_row(
            result.name,
            str(result.submitted),
            str(result.started),
            minutes(result.wait),
            minutes(result.wait_without),
            share(result.earned),
            share(result.got),
            signed_duration(result.balance_per_part),
        )
    return table


def conclusion(found: Sequence[DemoResult]) -> str:
    """Sums up in a sentence or two what was seen."""
    lender = max(found, key=lambda result: result.balance_per_part or 0)
    if (lender.balance_per_part or 0) <= 0:
        return "So far no organization has lent more than it used."
    others = [result for result in found if result is not lender]
    waits = " and ".join(f"{minutes(result.wait)} for {result.name}" for result in others)
    came_first = lender.wait < min(result.wait for result in others)
    return (
        f"{lender.name} is owed most (balance {signed_duration(lender.balance_per_part)}, measured "
        "by what it earned)"
        f"{' and came first' if came_first else ''}: its jobs waited "
        f"{minutes(lender.wait)} on average, against {waits}. In the order of submission "
        f"they would have waited {minutes(lender.wait_without)}."
    )
