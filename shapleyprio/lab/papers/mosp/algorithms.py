"""Schedules for several organizations, and whether each keeps what the paper promises of it.

Euro-Par 2007, section 4. MOLBA cuts the local Highest First schedules of overloaded clusters,
and list-schedules what would have started later around what all clusters kept. Three things in
the paper cannot be taken at their word; its theory decides what is done here:

* *How migrated jobs are placed.* The text likens it to conservative backfilling, one job after
  another at its earliest place. Then a high job may come at the end of a zone of low utilization
  and leave a gap too short for a low job, whereas the proofs of Propositions 2 and 4 need every
  low job to start while utilization is low. With list scheduling as section 3.1 defines it,
  forward in time, it does: a low job starts by 2·LB, and no sender loses. That is ``molba-2`` and
  ``molba-3``. ``molba-2-backfill`` is the other reading, under which a sender can lose.
* *Where to cut so that 4 is kept and nobody loses* (section 4.2). At 3·LB, LB = W / (m·n), jobs
  longer than LB can make a sender worse off: its high jobs are only sure to complete by
  2·LB + 2·p_max, but the makespan it had may be as little as 4·LB. The proof writes C*_max where
  the algorithm has LB; with max(LB, p_max), which is no more than C*_max either, everything
  holds. ``molba-3`` is the letter, ``molba-3-long`` the remedy.
* *"After" the cut* is taken strictly: a job that starts at the cut stays.

Euro-Par 2007: Propositions 4 and 5 and the cases after them. The optimum is not known, so ratios
are to max(LB, p_max), which it cannot be below and which the proofs use in its place: a ratio
within the promise proves that it is kept, one beyond it shows that this instance needs a check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from shapleyprio.lab.papers.mosp.listing import ListedJob, Timeline, list_schedule, place_one_by_one
from shapleyprio.lab.papers.mosp.model import BatchJob, BatchSchedule, Instance

Placing = Callable[[Sequence[BatchJob], Iterable[int], Sequence[Timeline]], dict[int, ListedJob]]
"""A way to add waiting jobs to clusters."""

Algorithm = Callable[[BatchSchedule], BatchSchedule]
"""Makes a schedule of the instance whose local schedule it is given."""


def local(instance: Instance) -> BatchSchedule:
    """List-schedules each organization's jobs on its own cluster, Highest First."""
    placed: dict[int, ListedJob] = {}
    for organization in range(instance.organizations):
        home = [Timeline(instance.processors)]
        starts = list_schedule(instance.jobs, instance.jobs_of(organization), home)
        placed |= {job: ListedJob(organization, place.start) for job, place in starts.items()}
    return _schedule(instance, placed)


def unconstrained(alone: BatchSchedule) -> BatchSchedule:
    """List-schedules all jobs on all clusters, Highest First, whoever is worse off by it."""
    instance = alone.instance
    clusters = [Timeline(instance.processors) for _ in range(instance.organizations)]
    everything = range(len(instance.jobs))
    return _schedule(instance, list_schedule(instance.jobs, everything, clusters))


def molba_2(alone: BatchSchedule) -> BatchSchedule:
    """Applies MOLBA of section 4: cut at 2·LB, unless the makespan is at most 2·LB + p_max."""
    return _cut_at_2(alone, list_schedule)


def molba_2_backfill(alone: BatchSchedule) -> BatchSchedule:
    """Applies the same, but gives each migrated job in turn its earliest place."""
    return _cut_at_2(alone, place_one_by_one)


def molba_3(alone: BatchSchedule) -> BatchSchedule:
    """Applies the general MOLBA of section 4.2: cut at 3·LB, unless the makespan is below 4·LB."""
    return _cut_at_3(alone, alone.instance.average_load)


def molba_3_long(alone: BatchSchedule) -> BatchSchedule:
    """Applies the same with max(LB, p_max) in place of LB, with which nobody is ever worse off."""
    return _cut_at_3(alone, alone.instance.optimum_bound)


ALGORITHMS: Mapping[str, Algorithm] = {
    "local": lambda alone: alone,
    "molba-2": molba_2,
    "molba-2-backfill": molba_2_backfill,
    "molba-3": molba_3,
    "molba-3-long": molba_3_long,
    "unconstrained": unconstrained,
}
"""Name to what makes the schedule."""


def _cut_at_2(alone: BatchSchedule, place: Placing) -> BatchSchedule:
    cut = 2 * alone.instance.average_load
    kept = cut + alone.instance.longest
    senders = {k for k, makespan in enumerate(alone.makespans) if makespan > kept}
    return _balanced(alone, senders, cut, place)


def _cut_at_3(alone: BatchSchedule, bound: Fraction) -> BatchSchedule:
    senders = {k for k, makespan in enumerate(alone.makespans) if makespan >= 4 * bound}
    return _balanced(alone, senders, 3 * bound, list_schedule)


def _balanced(
    alone: BatchSchedule, senders: set[int], cut: Fraction, place: Placing
) -> BatchSchedule:
    """Moves the senders' jobs that start after the cut to wherever there is room."""
    instance = alone.instance
    clusters = [Timeline(instance.processors) for _ in range(instance.organizations)]
    placed: dict[int, ListedJob] = {}
    migrating = []
    for index, job in enumerate(instance.jobs):
        start = alone.start[index]
        if job.organization in senders and start > cut:
            migrating.append(index)
        else:
            clusters[job.organization].take(start, job.processing_time, job.processors)
            placed[index] = ListedJob(job.organization, start)
    return _schedule(instance, placed | place(instance.jobs, migrating, clusters))


def _schedule(instance: Instance, placed: Mapping[int, ListedJob]) -> BatchSchedule:
    everywhere = [placed[index] for index in range(len(instance.jobs))]
    return BatchSchedule(
        instance,
        cluster=tuple(place.cluster for place in everywhere),
        start=tuple(place.start for place in everywhere),
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """How good a schedule is, and whether it is as good as promised.

    Attributes:
        ratio: makespan over max(LB, p_max).
        promised_ratio: what the paper promises at most for this schedule; None: nothing.
        worst_to_alone: the largest makespan of an organization over the one it has alone.
        worse_off: how many organizations complete later than alone.
        promised_alone: whether the paper promises that nobody is worse off here.
    """

    ratio: Fraction
    promised_ratio: int | None
    worst_to_alone: Fraction
    worse_off: int
    promised_alone: bool

    @property
    def breaks_ratio(self) -> bool:
        """Whether the makespan is beyond the promised ratio."""
        return self.promised_ratio is not None and self.ratio > self.promised_ratio

    @property
    def breaks_alone(self) -> bool:
        """Whether somebody is worse off than alone, against the promise."""
        return self.promised_alone and self.worse_off > 0


def verdict(algorithm: str, schedule: BatchSchedule, alone: BatchSchedule) -> Verdict:
    """Judges the schedule that an algorithm made, with the local one to compare it with.

    Organizations without jobs are not worse off.
    """
    pairs = [
        (ours, by_itself)
        for ours, by_itself in zip(schedule.makespans, alone.makespans, strict=True)
        if by_itself
    ]
    return Verdict(
        ratio=schedule.makespan / schedule.instance.optimum_bound,
        promised_ratio=_promised_ratio(algorithm, schedule),
        worst_to_alone=max(Fraction(ours, by_itself) for ours, by_itself in pairs),
        worse_off=sum(ours > by_itself for ours, by_itself in pairs),
        promised_alone=_promises_alone(algorithm, schedule),
    )


def _promised_ratio(algorithm: str, schedule: BatchSchedule) -> int | None:
    """Returns 3 if the last job is low or with two organizations, 4 for the cut at 3."""
    n = schedule.instance.organizations
    if algorithm.startswith("molba-2"):
        return 3 if schedule.ends_low or n == 2 else None
    return 4 if algorithm.startswith("molba-3") else None


def _promises_alone(algorithm: str, schedule: BatchSchedule) -> bool:
    """Returns whether nobody loses: always at 3·LB, at 2·LB only if the last job is low."""
    if algorithm.startswith("molba-2"):
        return schedule.ends_low
    return algorithm.startswith(("local", "molba-3"))
