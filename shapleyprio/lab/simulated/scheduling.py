"""The waiting jobs, the priorities that order them, and the processors that are free for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from shapleyprio.lab.simulated.jobs import HELD, WAITS, Job, Rank
from shapleyprio.slurm.layout import (
    UNSET_PRIORITY,
    AccountPriority,
    Association,
    PrioritySettings,
    account_priorities,
)


class Associations:
    """What accounting has and the controller goes by.

    Args:
        parents: account -> the account above, or None.

    Attributes:
        unheard: of so many changes of accounts to come the controller does not hear.
    """

    def __init__(self, parents: Mapping[str, str | None]) -> None:
        self._parents = parents
        self.unheard = 0
        self._own: dict[str, int | None] = dict.fromkeys(parents)
        self._heard = dict(self._own)
        self._users: dict[Association, int] = {}

    def accounts(self) -> dict[str, AccountPriority]:
        """Returns account -> its priority, as accounting has it."""
        return account_priorities(self._own, self._parents)

    def in_force(self) -> dict[str, int]:
        """Returns account -> the priority that the controller goes by."""
        heard = account_priorities(self._heard, self._parents)
        return {account: priority.due for account, priority in heard.items()}

    def of_users(self) -> dict[Association, int]:
        """Returns the users' associations that have a priority of their own."""
        return dict(self._users)

    def priority(self, account: str, user: str) -> int:
        """Returns what the jobs of a user in an account get."""
        own = self._users.get(Association(account, user))
        return self.in_force()[account] if own is None else own

    def largest(self) -> int:
        """Returns the largest priority of all associations."""
        return max((*self.in_force().values(), *self._users.values()), default=0)

    def set_account(self, account: str, priority: int) -> None:
        """Sets or removes the priority of an account."""
        self._own[account] = None if priority == UNSET_PRIORITY else priority
        if self.unheard:
            self.unheard -= 1
        else:
            self._heard[account] = self._own[account]

    def set_user(self, account: str, user: str, priority: int) -> None:
        """Sets or removes the priority of a user in an account."""
        self._users.pop(Association(account, user), None)
        if priority != UNSET_PRIORITY:
            self._users[Association(account, user)] = priority


class Machines:
    """The nodes and how many of their processors are free; the partitions and their sizes.

    Attributes:
        drained: nodes on which nothing starts.
    """

    def __init__(self, nodes: Mapping[str, int], partitions: Mapping[str, Sequence[str]]) -> None:
        self.size = dict(nodes)
        self.free = dict(nodes)
        self.drained: set[str] = set()
        self.partitions = {name: tuple(members) for name, members in partitions.items()}
        self.capacity = {
            name: sum(self.size[node] for node in members)
            for name, members in self.partitions.items()
        }

    def take(self, partition: str, processors: int, kept: Collection[str]) -> dict[str, int] | None:
        """Takes free processors of a partition, but none on kept nodes; returns None if too few."""
        allocation: dict[str, int] = {}
        for node in self.partitions[partition]:
            if (free := self.free[node]) and node not in kept and node not in self.drained:
                allocation[node] = min(free, processors)
                processors -= allocation[node]
                if not processors:
                    break
        if processors:
            return None
        for node, count in allocation.items():
            self.free[node] -= count
        return allocation

    def give_back(self, allocation: Mapping[str, int]) -> None:
        """Frees what a job held."""
        for node, count in allocation.items():
            self.free[node] += count


class Waiting:
    """All jobs that wait, and which is next in every partition."""

    def __init__(self, partitions: Iterable[str]) -> None:
        self.jobs: dict[int, Job] = {}
        self._heaps: dict[str, list[Rank]] = {name: [] for name in partitions}
        self._disordered = False

    def add(self, job: Job) -> None:
        """Adds a job to the queue, for the first time or again."""
        self.jobs[job.job_id] = job
        if not self._disordered and job.reason == WAITS:
            heappush(self._heaps[job.partition], job.rank)

    def remove(self, job: Job) -> None:
        """Removes a job from the queue."""
        del self.jobs[job.job_id]

    def disorder(self) -> None:
        """Notes that some priority has changed."""
        self._disordered = True

    def first(self, partition: str) -> Job | None:
        """Returns the job whose turn it is in a partition."""
        if self._disordered:
            self._order()
        heap = self._heaps[partition]
        while heap:
            job = self.jobs.get(heap[0][2])
            if job is not None and job.reason == WAITS and job.rank == heap[0]:
                return job
            heappop(heap)
        return None

    def _order(self) -> None:
        for heap in self._heaps.values():
            heap.clear()
        for job in self.jobs.values():
            if job.reason == WAITS:
                self._heaps[job.partition].append(job.rank)
        for heap in self._heaps.values():
            heapify(heap)
        self._disordered = False


class Priorities:
    """Computes priorities as Slurm's multifactor plugin does."""

    def __init__(
        self,
        settings: PrioritySettings,
        qos: Mapping[str, int],
        associations: Associations,
    ) -> None:
        self.settings = settings
        self.qos = dict(qos)
        self.associations = associations
        self._per_association = settings.weights.get("Assoc", 0)
        self._age = settings.weights.get("Age", 0)
        self.ages = self._age != 0
        self._fixed = self._fixed_factors()

    def compute(self, job: Job, now: int) -> None:
        """Gives a job the priority that it has now; at least 1, or 0 while it is held."""
        job.association = int(self._per_association * self._association_factor(job))
        if job.reason == HELD:
            job.priority, job.fixed = 0, None
        else:
            job.priority = self._sum(job, now) if job.fixed is None else job.fixed

    def _sum(self, job: Job, now: int) -> int:
        factors = self._fixed[job.qos] + job.association
        if self.ages:
            age = max(now - job.eligible, 0) / self.settings.max_age_seconds
            factors += self._age * min(age, 1.0)
        return max(int(factors + job.site_factor - job.nice), 1)

    def _association_factor(self, job: Job) -> float:
        if not self._per_association:
            return 0
        priority = self.associations.priority(job.account, job.user)
        if "NO_NORMAL_ASSOC" in self.settings.flags:
            return priority
        return priority / (self.associations.largest() or 1)

    def set_qos(self, qos: str, priority: int) -> None:
        """Changes the priority of a QOS."""
        self.qos[qos] = priority
        self._fixed = self._fixed_factors()

    def _fixed_factors(self) -> dict[str, float]:
        """Returns QOS -> points of partition and QOS; all partitions have one PriorityJobFactor."""
        weights = self.settings.weights
        largest = max(self.qos.values()) or 1
        unit = 1 if "NO_NORMAL_QOS" in self.settings.flags else largest
        partition, per_qos = weights.get("Partition", 0), weights.get("QOS", 0)
        return {qos: partition + per_qos * value / unit for qos, value in self.qos.items()}
