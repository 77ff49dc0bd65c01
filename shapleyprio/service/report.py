"""What one cycle found and did, for the store, the metrics and people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from shapleyprio.fairness.ledger import Standing
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.service.accounting import Tally
from shapleyprio.service.push import Outcome
from shapleyprio.slurm.port import Node, PendingJob
from shapleyprio.store import NewPush, StandingRow


@dataclass(slots=True)
class Report:
    """What one cycle found and did.

    Attributes:
        number: of the cycle.
        t: second at which the ledger stands.
        tally: what became of the accounting records.
        standings: one row for each organization, in the order of the configuration.
        planned: the writes that were made, or in a dry run would be.
        pushed: what became of them.
        turn: seconds from t until the order of organizations that wait turns, if nothing starts
            or ends; None if not before the next poll.
        lag_seconds: age of the newest second up to which accounting is known to be complete.
        seconds: phase -> how long it took.
    """

    number: int
    t: int = 0
    tally: Tally = field(default_factory=Tally)
    standings: Sequence[StandingRow] = ()
    planned: Sequence[NewPush] = ()
    pushed: Outcome = field(default_factory=Outcome)
    turn: int | None = None
    lag_seconds: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


class StopWatch:
    """Notes in a report how long the phases of a cycle took."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._last = monotonic()

    def lap(self, phase: str) -> None:
        """The phase has ended and the next begins."""
        now = monotonic()
        self._report.seconds[phase] = now - self._last
        self._last = now


def standing_rows(
    standings: Mapping[str, Standing],
    points: Mapping[str, int],
    *,
    cycle: int,
    t: int,
    pending: Iterable[PendingJob],
    running: Mapping[str, int],
    nodes: Iterable[Node],
    tenures: Tenures,
    tres: str,
) -> list[StandingRow]:
    """One row for each organization.

    Args:
        standings: organization -> what it gave and got.
        points: organization -> priority points.
        cycle: its number.
        t: second at which the ledger stands.
        pending: jobs that wait.
        running: organization -> jobs that run.
        nodes: the cluster's nodes.
        tenures: who holds which node and account.
        tres: name under which nodes tell their processors.
    """
    waiting = dict.fromkeys(standings, 0)
    for job in pending:
        holder = tenures.holder("account", job.account, t)
        if holder in waiting:
            waiting[holder] += 1
    owned = dict.fromkeys(standings, 0)
    for node in nodes:
        owner = tenures.holder("node", node.name, t)
        if owner in owned:
            owned[owner] += node.tres.get(tres, 0)
    return [
        StandingRow(
            cycle=cycle,
            organization=name,
            t=t,
            contribution=standing.contribution,
            utility=standing.utility,
            priority=points[name],
            pending=waiting[name],
            running=running.get(name, 0),
            processors=owned[name],
            parts=standing.parts,
        )
        for name, standing in standings.items()
    ]
