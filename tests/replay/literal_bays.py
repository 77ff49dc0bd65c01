"""Schedules of coalitions whose jobs only get processors of their partitions, word for word.

As in `literal`: slow and obvious, and nothing is shared with what it is compared to.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from shapleyprio.replay.workloads.workload import Workload
from tests.replay.literal import Coalition, CoalitionSchedule, Pick, Start, Task

FOREVER = 2**62

Processor = tuple[int, int]
"""The bay it is in, and its owner."""


class ConfinedSchedule(CoalitionSchedule):
    """What a coalition makes of its own jobs on its own processors, each in its partition's bays.

    Whose processors a job gets in a bay is as with the placement "least-loaded".
    """

    def __init__(self, workload: Workload, members: Coalition) -> None:
        super().__init__(workload, members)
        bays = workload.bays
        assert bays is not None
        self.partition_of: list[int] = bays.partition.tolist()
        self.bays_of = [
            [x for x in range(len(bays.owned)) if bays.reach[p, x]]
            for p in range(len(bays.partitions))
        ]
        self.everything: list[Processor] = [
            (x, u)
            for x, owned in enumerate(bays.owned.tolist())
            for u in sorted(members)
            for _ in range(owned[u])
        ]
        self.held: list[list[Processor]] = []
        """What each start got."""
        self.lines: dict[tuple[int, int], list[Task]] = {}
        for u in sorted(members):
            for task in self.queue[u]:
                p = self.partition_of[task.job]
                if workload.wide == "expand" or task.processors <= self.size(p):
                    self.lines.setdefault((u, p), []).append(task)

    def size(self, partition: int) -> int:
        return sum(bay in self.bays_of[partition] for bay, _ in self.everything)

    def free_now(self, t: int, without: Iterable[int] = ()) -> list[Processor]:
        """The processors that nothing runs on, but for those of some bays."""
        free = list(self.everything)
        for start, held in zip(self.starts, self.held, strict=True):
            if start.end > t:
                for processor in held:
                    free.remove(processor)
        return [processor for processor in free if processor[0] not in without]

    def would_get(self, task: Task, free: list[Processor]) -> list[Processor] | None:
        """The processors that a task would get of the free ones; None if they are too few."""
        found: list[Processor] = []
        free = list(free)
        for bay in self.bays_of[self.partition_of[task.job]]:
            while len(found) < task.processors and any(x == bay for x, _ in free):
                owners = [u for x, u in free if x == bay]
                most = min(set(owners), key=lambda u: (-owners.count(u), u))
                free.remove((bay, most))
                found.append((bay, most))
        return found if len(found) == task.processors else None

    def pending(self, organization: int, t: int) -> int:
        lines = [line for (u, _), line in self.lines.items() if u == organization]
        return sum(task.processors for line in lines for task in line if task.release <= t)

    def decide(self, t: int, pick: Pick, random: Random | None = None) -> None:
        if t not in self.events():
            return
        self.closed: set[int] = set()
        self.passed: set[tuple[int, int]] = set()
        self.blocked: dict[int, int] = {}
        self.go_first(t)
        while True:
            free = self.free_now(t, without=self.closed)
            self.queue = {}
            for (u, p), line in self.lines.items():
                is_free = any(bay in self.bays_of[p] for bay, _ in free)
                if line and line[0].release <= t and (u, p) not in self.passed and is_free:
                    self.queue[u] = sorted(
                        [*self.queue.get(u, []), line[0]],
                        key=lambda task: (task.release, task.position),
                    )
            if not self.queue:
                return
            organization = pick(sorted(self.queue))
            self.try_to_start(self.queue[organization][0], t)

    def go_first(self, t: int) -> None:
        """Starts what goes before all: nothing."""

    def try_to_start(self, task: Task, t: int) -> bool:
        wanted = self.would_get(task, self.free_now(t, without=self.closed))
        if wanted is not None and self.delays_none(task, wanted, t):
            self.begin(task, wanted, t)
            return True
        self.block(task, self.partition_of[task.job], t, fits=wanted is not None)
        return False

    def begin(self, task: Task, wanted: list[Processor], t: int) -> None:
        self.lines[task.organization, self.partition_of[task.job]].remove(task)
        self.starts.append(Start(task, t, tuple(u for _, u in wanted)))
        self.held.append(wanted)

    def block(self, task: Task, p: int, t: int, *, fits: bool) -> None:
        """Lets others wait for a task that cannot start, or pass it."""
        if self.backfill == "none":
            self.closed.update(self.bays_of[p])
            return
        self.passed.add((task.organization, p))
        needed = self.needed(task)
        if not fits and self.free_later(FOREVER, self.bays_of[p], t) >= needed:
            self.blocked.setdefault(p, needed)

    def needed(self, task: Task) -> int:
        """How many processors have to be free for a task to start."""
        return task.processors

    def reservations(self) -> list[tuple[int, int]]:
        """The partitions in which processors are reserved, and how many."""
        return list(self.blocked.items())

    def delays_none(self, task: Task, wanted: list[Processor], t: int) -> bool:
        return not any(
            self.delays(task, wanted, needed, self.bays_of[p], t)
            for p, needed in self.reservations()
        )

    def delays(
        self, task: Task, wanted: list[Processor], needed: int, bays: list[int], t: int
    ) -> bool:
        """Whether so many processors of these bays would be free later for it."""
        ends = sorted(start.estimated_end(t) for start in self.running(t))
        reserved = next(end for end in (t, *ends) if self.free_later(end, bays, t) >= needed)
        left_over = self.free_later(reserved, bays, t) - needed
        taken = sum(bay in bays for bay, _ in wanted)
        return t + task.estimate > reserved and taken > left_over

    def free_later(self, later: int, bays: list[int], t: int) -> int:
        """Processors of these bays that will be free, as far as it is known at t."""
        held = [
            bay
            for start, held in zip(self.starts, self.held, strict=True)
            if start.end > t and start.estimated_end(t) > later
            for bay, _ in held
        ]
        return sum(bay in bays for bay, _ in self.everything) - sum(x in bays for x in held)
