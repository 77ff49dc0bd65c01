"""What the rule of the policy `ref` starts at a moment, organizations being in a given order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from shapleyprio.replay.measures.turns.path import AtWork, JudgedMoment, JudgedSystem, taken


def starts(system: JudgedSystem, moment: JudgedMoment, order: Sequence[int]) -> dict[int, int]:
    """Returns what is started at a moment: job -> processors or copies.

    Each organization's jobs are tried in order of release, those that the schedule starts at this
    moment before the others: in which order an organization's own jobs start is its own affair.

    Args:
        system: jobs and processors.
        moment: of a schedule; it stays as it is.
        order: of the organizations that wait.
    """
    decision = _Decision(system, moment)
    for organization in order:
        decision.serve(organization)
    return decision.started


class _Decision:
    """The rule of a moment, up to where it has come."""

    def __init__(self, system: JudgedSystem, moment: JudgedMoment) -> None:
        self.started: dict[int, int] = {}
        self._system = system
        self._moment = moment
        self._free = [max(count, 0) for count in moment.free]
        self._begun: list[AtWork] = []
        self._closed: set[int] = set()
        self._reserved: dict[int, tuple[int, int]] = {}

    def serve(self, organization: int) -> None:
        """Starts the organization's jobs, until none of them may start."""
        queues = {
            partition: self._queue(organization, partition)
            for partition in range(len(self._system.reach))
        }
        heads = {p: job for p, queue in queues.items() if (job := next(queue, None)) is not None}
        while open_heads := {p: job for p, job in heads.items() if self._open_in(p) > 0}:
            partition = min(open_heads, key=lambda p: self._place(open_heads[p]))
            job = heads[partition]
            if not self._system.rigid:
                self._start(job, min(self._moment.rest[job], self._open_in(partition)))
            elif self._may_start(job):
                self._start(job, self._system.processors[job])
            elif self._system.backfill:
                del heads[partition]
                continue
            else:
                self._closed.update(self._system.reach[partition])
                continue
            if self.started[job] == self._moment.rest[job]:
                del heads[partition]
                following = next(queues[partition], None)
                if following is not None:
                    heads[partition] = following

    def _queue(self, organization: int, partition: int) -> Iterator[int]:
        waiting = self._moment.queues[organization, partition].waiting(self._moment.rest)
        started = self._moment.started
        whose, where = self._system.organization, self._system.partition
        first = sorted(
            job for job in started if whose[job] == organization and where[job] == partition
        )
        return chain(first, (job for job in waiting if job not in started))

    def _place(self, job: int) -> tuple[bool, int]:
        return job not in self._moment.started, job

    def _open_in(self, partition: int) -> int:
        """Returns how many processors a job of a partition could get."""
        bays = self._system.reach[partition]
        return sum(self._free[bay] for bay in bays if bay not in self._closed)

    def _start(self, job: int, processors: int) -> None:
        self.started[job] = self.started.get(job, 0) + processors
        reach = self._system.reach[self._system.partition[job]]
        bays = [bay for bay in reach if bay not in self._closed]
        for bay, count in list(taken(self._free, bays, processors)):
            self._free[bay] -= count
            self._begun.append(AtWork(job, self._moment.t, bay, count))

    def _may_start(self, job: int) -> bool:
        """Returns whether a rigid job may start; reserves processors if it does not fit."""
        system, width = self._system, self._system.processors[job]
        partition = system.partition[job]
        fits = width <= self._open_in(partition)
        if not system.backfill:
            return fits
        if not fits:
            self._reserved.setdefault(partition, self._reservation(partition, width))
            return False
        end = self._moment.t + system.estimate[job]
        gets = list(taken(self._free, system.reach[partition], width))
        spares = {}
        for other, (second, spare) in self._reserved.items():
            takes = sum(count for bay, count in gets if bay in system.reach[other])
            if end > second:
                if takes > spare:
                    return False
                spares[other] = second, spare - takes
        self._reserved.update(spares)
        return True

    def _reservation(self, partition: int, width: int) -> tuple[int, int]:
        """Returns when a job that does not fit could start, and what would be left over then.

        Running jobs are expected to end when their estimates say, overdue ones in the next second.
        """
        estimate, bays = self._system.estimate, self._system.reach[partition]
        at, free = self._moment.t, self._open_in(partition)
        ends = sorted(
            (max(run.start + estimate[run.job], at + 1), run.processors)
            for run in chain(self._moment.running, self._begun)
            if run.bay in bays
        )
        for end, processors in ends:
            if free >= width and end != at:
                break
            at = end
            free += processors
        return at, free - width
