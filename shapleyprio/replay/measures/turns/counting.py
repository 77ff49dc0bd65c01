"""How often a schedule starts what the rule of `ref` would not, from where the schedule is.

Unfairness (Δψ/p_tot) says how much harm came of a schedule as a whole, and one decision can make
most of it: everything after it is another schedule. Here each decision is judged by itself, from
what had come of those before it. A moment at which jobs start is contested if the order of the
organizations decides what starts: if the rule turned upside down, with the least φ − ψ first, would
start something that the rule would not, or the schedule does. It is out of turn if the schedule
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge

from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.turns.owed import Owed
from shapleyprio.replay.measures.turns.path import JudgedMoment, JudgedSystem, SchedulePath
from shapleyprio.replay.measures.turns.rule import starts
from shapleyprio.replay.workloads.workload import Workload

MOST_STARTS = 2**20
"""Jobs times coalitions up to which decisions are judged: some seconds for each schedule."""

TOO_MANY = (
    f"decisions are judged as long as there are no more than {MOST_STARTS:,} jobs times 2^k, with "
    "k organizations"
)
"""Why there are no turns where there is unfairness."""


@dataclass(frozen=True, slots=True)
class Turns:
    """What was judged of a schedule, or of several together.

    Attributes:
        contested: moments at which the order of the organizations decided what started.
        out_of_turn: those at which something started that the rule of `ref` would not have.

    >>> (Turns(8, 1) + Turns(2, 1)).share
    Fraction(1, 5)
    """

    contested: int
    out_of_turn: int

    def __add__(self, other: Turns) -> Turns:
        """Counts the moments of both."""
        return Turns(self.contested + other.contested, self.out_of_turn + other.out_of_turn)

    @property
    def share(self) -> Fraction | None:
        """Part of the contested moments that were out of turn; None if none was contested."""
        return Fraction(self.out_of_turn, self.contested) if self.contested else None


def turns_of(workload: Workload, schedules: Sequence[Schedule]) -> tuple[Turns, ...] | None:
    """Judges the decisions of schedules of a workload, each from where that schedule is.

    Args:
        workload: what was scheduled, such that `ref` can schedule it as well.
        schedules: of any policies, or recorded.

    Returns:
        None if there are more than `MOST_STARTS` jobs times coalitions.

    Raises:
        PolicyError: `ref` cannot schedule it.
    """
    if len(workload.job) << len(workload.organizations) > MOST_STARTS:
        return None
    system, owed = JudgedSystem(workload), Owed(workload)
    paths = [SchedulePath(system, workload, schedule) for schedule in schedules]
    contested, out_of_turn = [0] * len(paths), [0] * len(paths)
    for t, number, moment in merge(*map(_numbered, range(len(paths)), paths), key=lambda of: of[0]):
        order = owed.order(t, paths[number].utilities(t), moment.waiting)
        fair = starts(system, moment, order)
        unfair = _exceeds(moment.started, fair)
        contested[number] += unfair or _exceeds(starts(system, moment, order[::-1]), fair)
        out_of_turn[number] += unfair
    return tuple(map(Turns, contested, out_of_turn))


def _numbered(number: int, path: SchedulePath) -> Iterator[tuple[int, int, JudgedMoment]]:
    return ((moment.t, number, moment) for moment in path.moments())


def _exceeds(started: Mapping[int, int], fair: Mapping[int, int]) -> bool:
    """Returns whether something is started that is not in `fair`."""
    return any(processors > fair.get(job, 0) for job, processors in started.items())
