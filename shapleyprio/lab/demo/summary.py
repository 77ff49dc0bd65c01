"""The results, in a table and in words that the numbers at hand bear out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from shapleyprio.common.wording import signed_duration
from shapleyprio.lab.demo.consortium import MEMBERS
from shapleyprio.lab.demo.screen import minutes, narrow_table, share
from shapleyprio.lab.demo.waits import DemoJob, mean_wait
from shapleyprio.lab.demo.watch import Snapshot

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
