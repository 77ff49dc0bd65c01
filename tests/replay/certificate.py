"""Walks through a schedule and proves that every decision in it was the policy's.

The owners of the processors are taken from the schedule, since they are drawn at random; with
them every policy but ref and rand has exactly one decision at every moment. Of ref and rand only
what holds for all greedy schedules is proved here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from itertools import takewhile
from math import fsum, log
from typing import Any, NoReturn

from shapleyprio.fairness.worth import Moments
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.literal import kai_shares


class NotCertified(AssertionError):  # noqa: N818 (what it says about a schedule)
    """A schedule is not the policy's; the message names the first wrong entry."""


@dataclass(slots=True)
class Account:
    """What was executed for an organization, or on its processors; exact at every moment."""

    horizon: int | None
    parts: Moments = field(default_factory=Moments)
    events: list[tuple[int, int]] = field(default_factory=list)
    parts_by_release: Moments = field(default_factory=Moments)

    def add(self, t: int, processors: int, release: int) -> None:
        self.parts.add(t, processors)
        self.events.append((t, processors))
        self.parts_by_release.add(t, processors * release)

    @property
    def occupied(self) -> int:
        return self.parts.processors

    def psi(self, t: int) -> int:
        if self.horizon is None:
            return self.parts.worth(t)
        older = Moments()
        for second, processors in self.events:
            if second <= t - self.horizon:
                older.add(second, processors)
        return self.parts.worth(t) - older.worth(t - self.horizon)

    def psi_relative(self, t: int) -> int:
        return self.psi(t) + self.parts_by_release.parts(t)

    def decayed(self, t: int, half_life: int) -> float:
        """Processor-seconds, of which half is left a half-life later; 2^-64 of any is nothing."""
        recent = takewhile(lambda event: t - event[0] < 64 * half_life, reversed(self.events))
        forgotten = fsum(n * 0.5 ** ((t - second) / half_life) for second, n in recent)
        return (self.occupied - forgotten) * half_life / log(2)

    def surface(self, t: int) -> int:
        return self.parts.parts(t)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a schedule."""

    number: int
    job: int
    start: int
    owner: int
    copies: int


@dataclass(order=True, frozen=True, slots=True)
class Running:
    end: int
    estimated_end: int
    job: int
    owner: int
    processors: int


@dataclass(frozen=True, slots=True)
class Certified:
    """What follows from a certified schedule at the window's end."""

    utility: list[int]
    lent: list[int]


class Walk:
    """The state that a schedule implies, moment after moment."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.organization: list[int] = workload.organization.tolist()
        self.release: list[int] = workload.release.tolist()
        self.position: list[int] = workload.position.tolist()
        self.processing_time: list[int] = workload.processing_time.tolist()
        self.processors: list[int] = workload.processors.tolist()
        self.estimate = [
            time if limit == UNKNOWN else limit
            for limit, time in zip(workload.limit.tolist(), self.processing_time, strict=True)
        ]
        self.owned: list[int] = workload.owned.tolist()
        self.free_of = list(self.owned)
        self.k = len(self.owned)
        self.served = -1
        self.arrivals = deque(
            sorted(range(len(self.release)), key=lambda j: (self.release[j], self.position[j]))
        )
        self.rest = list(self.processors)
        self.queues: list[deque[int]] = [deque() for _ in self.owned]
        self.running: list[Running] = []
        self.of_jobs = [Account(workload.horizon) for _ in self.owned]
        self.of_processors = [Account(workload.horizon) for _ in self.owned]
        self.credits = [0] * self.k
        self.came_to = 0
        self.divided_at, self.fair_shares = -1, [0] * self.k

    @property
    def free(self) -> int:
        return sum(self.free_of)

    def waiting(self) -> list[int]:
        return [u for u in range(self.k) if self.queues[u]]

    def head(self, organization: int) -> int:
        return self.queues[organization][0]

    def next_moment(self) -> int:
        """When a job ends or is released; the window's end if nothing more happens in it."""
        moments = [self.workload.window.length]
        if self.running:
            moments.append(self.running[0].end)
        if self.arrivals:
            moments.append(self.release[self.arrivals[0]])
        return min(moments)

    def advance(self, t: int) -> None:
        self._earn_credits(t - self.came_to)
        self.came_to = t
        while self.running and self.running[0].end == t:
            done = heappop(self.running)
            self.free_of[done.owner] += done.processors
            self._account(t, done.job, done.owner, -done.processors)
        while self.arrivals and self.release[self.arrivals[0]] == t:
            job = self.arrivals.popleft()
            self.queues[self.organization[job]].append(job)

    def above_guaranteed(self, organization: int) -> int:
        """Half-processors at work for it, less those that it owns (of whole ones, the half)."""
        return 2 * self.of_jobs[organization].occupied - self.owned[organization]

    def _earn_credits(self, seconds: int) -> None:
        """Karma's quantum: in half-credits, the poorest donors for their share lend first."""
        donated, paid = [0] * self.k, 0
        for u in range(self.k):
            above = self.above_guaranteed(u)
            waiting = sum(self.rest[job] for job in self.queues[u])
            donated[u] = max(0, -above - 2 * waiting) * seconds
            self.credits[u] += (self.owned[u] - max(0, above)) * seconds
            paid += max(0, above) * seconds

        def earned(level: int) -> list[int]:
            return [
                min(room, max(0, level * owned - credit))
                for room, owned, credit in zip(donated, self.owned, self.credits, strict=True)
            ]

        if paid >= sum(donated):
            given = donated
        else:
            low, high = -(2**70), 2**70
            while high - low > 1:
                level = (low + high) // 2
                low, high = (level, high) if sum(earned(level)) <= paid else (low, level)
            given, left = earned(low), paid - sum(earned(low))
            for u, most in enumerate(earned(high)):
                more = min(most - given[u], left)
                given[u] += more
                left -= more
        self.credits = [credit + more for credit, more in zip(self.credits, given, strict=True)]

    def start(self, t: int, organization: int, owner: int, processors: int) -> None:
        """Starts processors of the organization's first job."""
        job = self.head(organization)
        self.free_of[owner] -= processors
        self.rest[job] -= processors
        if self.rest[job] == 0:
            self.queues[organization].popleft()
        self._account(t, job, owner, processors)
        end, estimated_end = t + self.processing_time[job], t + self.estimate[job]
        heappush(self.running, Running(end, estimated_end, job, owner, processors))
        self.served = organization

    def _account(self, t: int, job: int, owner: int, processors: int) -> None:
        release = self.release[job]
        self.of_jobs[self.organization[job]].add(t, processors, release)
        self.of_processors[owner].add(t, processors, release)

    def by_kai(self, t: int, organization: int, half_life: int | None = None) -> Any:
        """KAI's order of queues."""
        occupied, owned = self.of_jobs[organization].occupied, self.owned[organization]
        fair = self._fair_shares(t, half_life)[organization]
        rigid = self.workload.wide == "rigid"
        then = occupied + (self.processors[self.head(organization)] if rigid else 1)
        larger = max(owned, fair)
        return occupied > fair, then > owned, larger == 0, Fraction(then, larger or 1)

    def _fair_shares(self, t: int, half_life: int | None) -> list[int]:
        """KAI's, which are divided before anything starts at t."""
        if self.divided_at != t:
            asked, usage = [], []
            for account, queue in zip(self.of_jobs, self.queues, strict=True):
                asked.append(account.occupied + sum(self.rest[job] for job in queue))
                used = account.decayed(t, half_life) / half_life * log(2) if half_life else 0.0
                usage.append(used / sum(self.owned))
            self.divided_at, self.fair_shares = t, kai_shares(self.owned, asked, usage)
        return self.fair_shares

    def balance(self, worth: Callable[[Account, int], int], t: int, organization: int) -> int:
        return worth(self.of_processors[organization], t) - worth(self.of_jobs[organization], t)

    def per_share(self, used: int, organization: int) -> tuple[bool, Fraction]:
        owned = self.owned[organization]
        return (True, Fraction(used)) if owned == 0 else (False, Fraction(used, owned))

    def per_share_rounded(self, used: float, organization: int) -> tuple[bool, int]:
        """To 2^-20 s, as the policy compares them."""
        owned = self.owned[organization]
        return owned == 0, round(used / (owned or 1) * 2**20)


Key = Callable[[Walk, int, int], Any]
"""The waiting organization with the least key (walk, t, organization) is served next."""

KEYS: Mapping[str, Key] = {
    "directcontr": lambda walk, t, u: -walk.balance(Account.psi, t, u),
    "orig-direct": lambda walk, t, u: -walk.balance(Account.psi, t, u),
    "rel-direct": lambda walk, t, u: -walk.balance(Account.psi_relative, t, u),
    "simpl-direct": lambda walk, t, u: -walk.balance(Account.surface, t, u),
    "fairshare": lambda walk, t, u: walk.per_share(walk.of_jobs[u].surface(t), u),
    "fairshare:20s": lambda walk, t, u: walk.per_share_rounded(walk.of_jobs[u].decayed(t, 20), u),
    "utfairshare": lambda walk, t, u: walk.per_share(walk.of_jobs[u].psi(t), u),
    "currfairshare": lambda walk, t, u: walk.per_share(walk.of_jobs[u].occupied, u),
    "karma": lambda walk, t, u: (
        walk.above_guaranteed(u) >= 0,
        walk.per_share(max(0, walk.above_guaranteed(u)) - walk.credits[u], u),
    ),
    "kai": lambda walk, t, u: walk.by_kai(t, u),
    "kai:20s": lambda walk, t, u: walk.by_kai(t, u, 20),
    "roundrobin": lambda walk, t, u: (u - walk.served - 1) % walk.k,
    "fcfs": lambda walk, t, u: (walk.release[walk.head(u)], walk.position[walk.head(u)]),
}

Used = Callable[[Account, int], float]

USED: Mapping[str, Used] = {
    "fairshare": Account.surface,
    "fairshare:20s": lambda account, t: account.decayed(t, 20),
    "utfairshare": Account.psi,
    "currfairshare": lambda account, t: account.occupied,
}
"""What a union's members have used together of what they share together."""

BALANCED = ("directcontr", "orig-direct", "rel-direct", "simpl-direct")
"""Policies by which the balance of a union is that of its members together."""


def union_key(walk: Walk, policy: str, t: int, members: list[int]) -> Any:
    """The union with the least is served next."""
    if policy in BALANCED:
        return sum(KEYS[policy](walk, t, u) for u in members)
    used = sum(USED[policy](walk.of_jobs[u], t) for u in members)
    owned = sum(walk.owned[u] for u in members)
    if policy == "fairshare:20s":
        return owned == 0, round(used / (owned or 1) * 2**20)
    return owned == 0, Fraction(int(used), owned or 1)


def rows(schedule: Schedule) -> list[tuple[int, int, int, int]]:
    """(job, start, owner, copies) of all entries."""
    columns = (schedule.job, schedule.start, schedule.owner, schedule.copies)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def processors_started(schedule: Schedule) -> Counter[tuple[int, int]]:
    """(job, start) -> how many processors it got then."""
    counts: Counter[tuple[int, int]] = Counter()
    for job, start, _, copies in rows(schedule):
        counts[job, start] += copies
    return counts


def certify(workload: Workload, schedule: Schedule) -> Certified:
    """Proves a schedule, decision by decision.

    Raises:
        NotCertified: it is not the policy's.
    """
    return _Certificate(workload, schedule).prove()


class _Certificate:
    """The walk with the rows of the schedule that are still to be explained."""

    def __init__(self, workload: Workload, schedule: Schedule) -> None:
        self.walk = Walk(workload)
        self.schedule = schedule
        self.key = KEYS.get(schedule.policy)
        self.rigid = workload.wide == "rigid"
        self.easy = workload.backfill == "easy"
        self.entries = deque(Entry(number, *row) for number, row in enumerate(rows(schedule)))
        self.unexplained = 0

    def prove(self) -> Certified:
        walk, length = self.walk, self.walk.workload.window.length
        t = walk.next_moment()
        while t < length:
            walk.advance(t)
            self._moment(t)
            t = walk.next_moment()
        if self.entries or self.unexplained:
            self._fail(length, "nothing starts any more")
        lent = [account.psi(length) for account in walk.of_processors]
        if self.key is not None and self.schedule.contribution != tuple(map(Fraction, lent)):
            raise NotCertified(f"contribution {self.schedule.contribution} instead of {lent}")
        return Certified([account.psi(length) for account in walk.of_jobs], lent)

    def _moment(self, t: int) -> None:
        """Explains all starts at t, and that nothing else starts."""
        walk, passed, blocked = self.walk, set[int](), 0
        while walk.free and (waiting := [u for u in walk.waiting() if u not in passed]):
            organization = self._choice(t, waiting)
            if not self.rigid:
                self._explain(t, organization, 1)
                continue
            needed = walk.processors[walk.head(organization)]
            if needed <= walk.free and not (blocked and self._delays(t, organization, blocked)):
                self._explain(t, organization, needed)
            elif self.easy:
                passed.add(organization)
                blocked = blocked or needed
            else:
                break
        if self.unexplained or (self.entries and self.entries[0].start <= t):
            self._fail(t, "nothing more starts")

    def _choice(self, t: int, waiting: list[int]) -> int:
        if (key := self.key) is not None:
            unions, policy = self.walk.workload.unions, self.schedule.policy
            if unions is not None and policy in {*USED, *BALANCED}:
                of = [[u for u in range(self.walk.k) if unions[u] == one] for one in unions]
                one = min(
                    (unions[u] for u in waiting),
                    key=lambda one: (
                        union_key(self.walk, policy, t, of[unions.index(one)]),
                        one,
                    ),
                )
                waiting = [u for u in waiting if unions[u] == one]
            return min(waiting, key=lambda u: (key(self.walk, t, u), u))
        organization = self.walk.organization[self.entries[0].job] if self.entries else -1
        if organization not in waiting:
            self._fail(t, f"one of the organizations {waiting} is served")
        return organization

    def _delays(self, t: int, organization: int, needed: int) -> bool:
        """Whether the organization's head would delay a job for which processors are reserved."""
        walk = self.walk
        job, free, reserved = walk.head(organization), walk.free, t
        ends = ((max(one.estimated_end, t + 1), one.processors) for one in walk.running)
        for end, processors in sorted(ends):
            if free >= needed and end > reserved:
                break
            free, reserved = free + processors, end
        return t + walk.estimate[job] > reserved and walk.processors[job] > free - needed

    def _explain(self, t: int, organization: int, processors: int) -> None:
        """Takes so many processors of the organization's head from the schedule's rows."""
        job = self.walk.head(organization)
        for _ in range(processors):
            if not self._is_next(t, job):
                self._fail(t, f"job {job} of organization {organization} starts")
            entry = self.entries[0]
            if not 0 <= entry.owner < self.walk.k or self.walk.free_of[entry.owner] == 0:
                self._fail(t, "its owner has no free processor")
            self.walk.start(t, organization, entry.owner, 1)
            self.unexplained += 1
            if self.unexplained == entry.copies:
                self.entries.popleft()
                self.unexplained = 0

    def _is_next(self, t: int, job: int) -> bool:
        if not self.entries:
            return False
        entry = self.entries[0]
        return (entry.start, entry.job) == (t, job) and entry.copies > 0

    def _fail(self, t: int, wanted: str) -> NoReturn:
        found = self.entries[0] if self.entries else "the schedule's end"
        raise NotCertified(f"at {t} by {self.schedule.policy}: {wanted}, but found {found}")
