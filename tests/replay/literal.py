"""The policies word for word as the papers define them: slow, obvious, the oracle of the tests.

Figures, equations and theorems are those of Skowron & Rzadca, *Non-monetary fair scheduling*.
Nothing here is shared with what it is compared to: every value is summed anew from the starts
at every moment, and contributions are rationals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import chain, combinations, pairwise, permutations
from math import factorial, fsum, log
from random import Random

from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

Coalition = frozenset[int]
Value = Mapping[Coalition, int]


@dataclass(frozen=True, slots=True)
class Task:
    """What is started at once: a copy of a job or, where the job is rigid, all of it."""

    job: int
    organization: int
    release: int
    position: int
    processing_time: int
    processors: int
    estimate: int


@dataclass(frozen=True, slots=True)
class Start:
    """A task in a schedule; owners has one entry for each of its processors, if drawn at all."""

    task: Task
    start: int
    owners: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        return self.start + self.task.processing_time

    def estimated_end(self, t: int) -> int:
        """When it is expected to end: one that is overdue in the next second."""
        return max(self.start + self.task.estimate, t + 1)


def tasks_of(workload: Workload) -> list[Task]:
    """All tasks, in the order of release and position in the log."""
    tasks = []
    for job in range(len(workload.job)):
        processors = int(workload.processors[job])
        processing_time, limit = int(workload.processing_time[job]), int(workload.limit[job])
        rigid = workload.wide == "rigid"
        task = Task(
            job=job,
            organization=int(workload.organization[job]),
            release=int(workload.release[job]),
            position=int(workload.position[job]),
            processing_time=processing_time,
            processors=processors if rigid else 1,
            estimate=processing_time if limit == UNKNOWN else limit,
        )
        tasks += [task] * (1 if rigid else processors)
    return sorted(tasks, key=lambda task: (task.release, task.position))


def eq_3(start: int, processing_time: int, t: int) -> int:
    """Worth at t of one processor's work on a job; whole, as a sum of whole parts is."""
    completed = min(processing_time, t - start)
    first, last = start, min(start + processing_time - 1, t - 1)
    return completed * (2 * t - (first + last)) // 2


def worth(start: Start, t: int, horizon: int | None) -> int:
    """Worth at t of all work on a task, no part being worth more than the horizon."""
    one_processors = eq_3(start.start, start.task.processing_time, t)
    if horizon is not None and start.start < t - horizon:  # by so much its parts are older
        one_processors -= eq_3(start.start, start.task.processing_time, t - horizon)
    return start.task.processors * one_processors


def utility(starts: Iterable[Start], organization: int, t: int, horizon: int | None = None) -> int:
    """ψ of the organization at t."""
    return sum(
        worth(start, t, horizon) for start in starts if start.task.organization == organization
    )


def processors_started(starts: Iterable[Start]) -> Counter[tuple[int, int]]:
    """(job, start) -> how many processors it got then."""
    counts: Counter[tuple[int, int]] = Counter()
    for start in starts:
        counts[start.task.job, start.start] += start.task.processors
    return counts


# contributions


@cache
def subsets(coalition: Coalition) -> list[Coalition]:
    """All of them, smaller ones first."""
    sizes = range(len(coalition) + 1)
    members = sorted(coalition)
    return [
        frozenset(subset) for subset in chain.from_iterable(combinations(members, n) for n in sizes)
    ]


def eq_1(organization: int, coalition: Coalition, v: Value) -> Fraction:
    """The Shapley value as the weighted sum over subsets."""
    k = len(coalition)
    weighted = sum(
        factorial(len(subset))
        * factorial(k - len(subset) - 1)
        * (v[subset | {organization}] - v[subset])
        for subset in subsets(coalition - {organization})
    )
    return Fraction(weighted, factorial(k))


def eq_2(organization: int, orderings: Iterable[Sequence[int]], v: Value) -> Fraction:
    """The mean marginal contribution over orderings: over all of them, the Shapley value."""
    marginal = []
    for ordering in orderings:
        before = frozenset(ordering[: list(ordering).index(organization)])
        marginal.append(v[before | {organization}] - v[before])
    return Fraction(sum(marginal), len(marginal))


def all_orderings(coalition: Coalition) -> list[tuple[int, ...]]:
    return list(permutations(sorted(coalition)))


def distance(
    organization: int, balance: Mapping[int, Fraction], gain: int, *, others_only: bool = True
) -> Fraction:
    """Distance of Fig. 1, if the organization's start gains so much; balance is φ − ψ.

    The figure sums over all organizations, the text over the others beside the first term.
    """
    share = Fraction(gain, len(balance))
    return abs(balance[organization] + share - gain) + sum(
        abs(balance[other] + share)
        for other in balance
        if not (others_only and other == organization)
    )


# schedules

Pick = Callable[[Sequence[int]], int]
"""Chooses one of the waiting organizations."""


class CoalitionSchedule:
    """What a coalition makes of its own jobs on its own processors."""

    def __init__(self, workload: Workload, members: Coalition) -> None:
        self.length = workload.window.length
        self.members = members
        self.owned = {u: int(workload.owned[u]) for u in members}
        self.processors = sum(self.owned.values())
        self.backfill = workload.backfill
        self.horizon = workload.horizon
        self.queue: dict[int, list[Task]] = {u: [] for u in members}
        self.starts: list[Start] = []
        self.releases: set[int] = set()
        for task in tasks_of(workload):
            if task.organization in members:
                self.releases.add(task.release)
                if task.processors <= self.processors:
                    self.queue[task.organization].append(task)

    def events(self) -> Iterator[int]:
        """The moments at which it decides: a job of a member is released, or one ends."""
        yield from self.releases
        yield from (start.end for start in self.starts)

    def running(self, t: int) -> list[Start]:
        return [start for start in self.starts if start.end > t]

    def free(self, t: int) -> int:
        return self.processors - sum(start.task.processors for start in self.running(t))

    def waiting(self, t: int) -> list[int]:
        return [u for u, queue in sorted(self.queue.items()) if queue and queue[0].release <= t]

    def pending(self, organization: int, t: int) -> int:
        """The processors that what it has released by t waits for."""
        return sum(task.processors for task in self.queue[organization] if task.release <= t)

    def utility(self, organization: int, t: int) -> int:
        return utility(self.starts, organization, t, self.horizon)

    def value(self, t: int) -> int:
        return sum(worth(start, t, self.horizon) for start in self.starts)

    def decide(self, t: int, pick: Pick, random: Random | None = None) -> None:
        """Starts what is to be started at t, on processors drawn at random if random is given."""
        if t not in self.events():
            return
        blocked: Task | None = None
        passed: set[int] = set()
        while self.free(t) and (waiting := [u for u in self.waiting(t) if u not in passed]):
            task = self.queue[organization := pick(waiting)][0]
            if self._may_start(task, t, blocked):
                self._start(task, t, random)
            elif self.backfill == "none":
                return
            else:
                passed.add(organization)
                blocked = blocked or task

    def _start(self, task: Task, t: int, random: Random | None) -> None:
        owners = self._draw(task.processors, t, random) if random else ()
        self.starts.append(Start(self.queue[task.organization].pop(0), t, owners))

    def _draw(self, processors: int, t: int, random: Random) -> tuple[int, ...]:
        free = [u for u in sorted(self.members) for _ in range(self.owned[u])]
        for start in self.running(t):
            for owner in start.owners:
                free.remove(owner)
        return tuple(sorted(random.sample(free, processors)))

    def _may_start(self, task: Task, t: int, blocked: Task | None) -> bool:
        if task.processors > self.free(t):
            return False
        if blocked is None:
            return True
        ends = sorted(start.estimated_end(t) for start in self.running(t))
        reserved = next(end for end in ends if self._free_at(end, t) >= blocked.processors)
        left_over = self._free_at(reserved, t) - blocked.processors
        return t + task.estimate <= reserved or task.processors <= left_over

    def _free_at(self, later: int, t: int) -> int:
        """Processors free later, as far as it is known at t."""
        return self.processors - sum(
            start.task.processors for start in self.running(t) if start.estimated_end(t) > later
        )


def moments(workload: Workload, schedules: Iterable[CoalitionSchedule]) -> Iterator[int]:
    """The moments of the window at which something can change in one of the schedules."""
    followed, t = list(schedules), 0
    while t < workload.window.length:
        yield t
        later = chain.from_iterable(schedule.events() for schedule in followed)
        t = min((event for event in later if event > t), default=workload.window.length)


@dataclass(frozen=True)
class Outcome:
    """The grand coalition's schedule, with ψ and φ of each organization at the window's end."""

    starts: list[Start]
    utility: list[int]
    contribution: list[Fraction]


class Values(dict[Coalition, int]):
    """v of all coalitions at t. A job that starts then adds nothing, so it does not matter which
    of them have decided before they are asked for.
    """

    def __init__(self, schedules: Mapping[Coalition, CoalitionSchedule], t: int) -> None:
        self.schedules, self.t = schedules, t

    def __missing__(self, coalition: Coalition) -> int:
        self[coalition] = self.schedules[coalition].value(self.t)
        return self[coalition]


def ref(workload: Workload, every_moment: Iterable[int] | None = None) -> Outcome:
    """Fig. 1 with the SelectAndSchedule of Fig. 3: every coalition decides for itself."""
    schedules = ref_schedules(workload, every_moment)
    grand = frozenset(range(len(workload.organizations)))
    return outcome(schedules[grand], partial(eq_1, coalition=grand), schedules)


def ref_schedules(
    workload: Workload,
    every_moment: Iterable[int] | None = None,
    make: Callable[[Workload, Coalition], CoalitionSchedule] | None = None,
) -> dict[Coalition, CoalitionSchedule]:
    """The schedules of all coalitions under Ref; `make` begins those of other kinds."""
    grand = frozenset(range(len(workload.organizations)))
    schedules = {c: (make or CoalitionSchedule)(workload, c) for c in subsets(grand)}
    for t in every_moment or moments(workload, schedules.values()):
        v = Values(schedules, t)
        for coalition, schedule in schedules.items():
            schedule.decide(t, fig_3(partial(eq_1, coalition=coalition, v=v), schedule, t))
    return schedules


def rand(workload: Workload, orderings: Sequence[Sequence[int]]) -> Outcome:
    """Fig. 6 for the given orderings, with free processors counted (jobs of any size)."""
    prefixes = {frozenset(o[:n]) for o in orderings for n in range(len(o) + 1)}
    simplified = {c: CoalitionSchedule(workload, c) for c in prefixes}
    schedule = CoalitionSchedule(workload, frozenset(range(len(workload.organizations))))
    for t in moments(workload, [*simplified.values(), schedule]):
        for other in simplified.values():
            other.decide(t, first_come(other))
        v = Values(simplified, t)
        schedule.decide(t, fig_3(partial(eq_2, orderings=orderings, v=v), schedule, t))
    return outcome(schedule, partial(eq_2, orderings=orderings), simplified)


def outcome(
    schedule: CoalitionSchedule,
    contribution: Callable[..., Fraction],
    schedules: Mapping[Coalition, CoalitionSchedule],
) -> Outcome:
    v = Values(schedules, schedule.length)
    return Outcome(
        schedule.starts,
        [schedule.utility(u, schedule.length) for u in sorted(schedule.members)],
        [contribution(u, v=v) for u in sorted(schedule.members)],
    )


def fig_3(phi: Callable[[int], Fraction], schedule: CoalitionSchedule, t: int) -> Pick:
    """argmax(φ − ψ), ties to the organization listed first."""

    @cache
    def balance(organization: int) -> Fraction:
        return phi(organization) - schedule.utility(organization, t)

    return lambda waiting: highest(waiting, balance)


def highest(waiting: Sequence[int], balance: Callable[[int], Fraction]) -> int:
    return max(waiting, key=lambda u: (balance(u), -u)) if len(waiting) > 1 else waiting[0]


def first_come(schedule: CoalitionSchedule) -> Pick:
    def pick(waiting: Sequence[int]) -> int:
        heads = [schedule.queue[u][0] for u in waiting]
        return min(heads, key=lambda task: (task.release, task.position)).organization

    return pick


# policies that follow from the schedule itself


@dataclass(frozen=True, slots=True)
class Part:
    """A unit-size part: one processor for the second from `second` on."""

    organization: int
    owner: int
    second: int
    release: int
    horizon: int | None

    def age(self, t: int) -> int:
        """Seconds since it was executed, no more than the horizon."""
        age = t - self.second
        return age if self.horizon is None else min(age, self.horizon)


def executed(schedule: CoalitionSchedule, t: int) -> list[Part]:
    """All parts executed before t."""
    return [
        Part(start.task.organization, owner, second, start.task.release, schedule.horizon)
        for start in schedule.starts
        for owner in start.owners
        for second in range(start.start, min(start.end, t))
    ]


Rule = Callable[[CoalitionSchedule, int, Sequence[int]], int]
"""Chooses one of the waiting organizations for a schedule at a moment."""


def direct(worth: Callable[[Part, int], int]) -> Rule:
    """Fig. 9: what ran on an organization's processors less what ran of its jobs."""

    def balance(schedule: CoalitionSchedule, t: int, organization: int) -> int:
        parts = executed(schedule, t)
        contribution = sum(worth(part, t) for part in parts if part.owner == organization)
        return contribution - sum(
            worth(part, t) for part in parts if part.organization == organization
        )

    return lambda schedule, t, waiting: max(waiting, key=lambda u: (balance(schedule, t, u), -u))


def fair_share(used: Callable[[CoalitionSchedule, int, int], int]) -> Rule:
    """The least used relative to its share; whoever has no share comes after all others."""

    def ratio(schedule: CoalitionSchedule, t: int, organization: int) -> tuple[bool, Fraction]:
        owned, numerator = schedule.owned[organization], used(schedule, t, organization)
        if owned == 0:
            return True, Fraction(numerator)
        return False, numerator / Fraction(owned, schedule.processors)

    return lambda schedule, t, waiting: min(waiting, key=lambda u: (ratio(schedule, t, u), u))


def of_its_jobs(worth: Callable[[Part, int], int]) -> Callable[[CoalitionSchedule, int, int], int]:
    return lambda schedule, t, organization: sum(
        worth(part, t) for part in executed(schedule, t) if part.organization == organization
    )


def occupied(schedule: CoalitionSchedule, t: int, organization: int) -> int:
    tasks = [start.task for start in schedule.running(t)]
    return sum(task.processors for task in tasks if task.organization == organization)


def decayed(half_life: int) -> Callable[[CoalitionSchedule, int, int], float]:
    """Processor time of which each second counts half a half-life later, by its integral."""

    def usage(schedule: CoalitionSchedule, t: int, organization: int) -> float:
        return fsum(
            start.task.processors
            * half_life
            / log(2)
            * (
                0.5 ** ((t - min(start.end, t)) / half_life)
                - 0.5 ** ((t - start.start) / half_life)
            )
            for start in schedule.starts
            if start.task.organization == organization
        )

    return usage


def by_usage(used: Callable[[CoalitionSchedule, int, int], float]) -> Rule:
    """The least for each processor owned, to 2^-20 s; whoever has none comes after all others."""

    def key(schedule: CoalitionSchedule, t: int, organization: int) -> tuple[bool, int, int]:
        owned = schedule.owned[organization]
        parts = round(used(schedule, t, organization) / (owned or 1) * 2**20)
        return owned == 0, parts, organization

    return lambda schedule, t, waiting: min(waiting, key=partial(key, schedule, t))


def psi(part: Part, t: int) -> int:
    """Eq. 3, and CloudShare's Eq. 2."""
    return part.age(t)


def psi_relative(part: Part, t: int) -> int:
    """CloudShare's Eq. 3."""
    return part.age(t) + part.release


def surface(part: Part, t: int) -> int:
    """CloudShare's Eq. 4."""
    return 1


def round_robin(schedule: CoalitionSchedule, t: int, waiting: Sequence[int]) -> int:
    everybody = sorted(schedule.members)
    served = everybody.index(schedule.starts[-1].task.organization) if schedule.starts else -1
    cycle = everybody[served + 1 :] + everybody[: served + 1]
    return next(organization for organization in cycle if organization in waiting)


def karma(schedule: CoalitionSchedule, t: int, waiting: Sequence[int]) -> int:
    """Karma's Algorithm 1 with half guaranteed: a quantum lasts from one moment to the next.

    Fair shares are the processors that an organization owns, credits count halves. Guaranteed
    processors come first, then one by one those with the most credits for their share.
    """
    credit = dict.fromkeys(sorted(schedule.members), 0)
    events = sorted({0, t, *(event for event in schedule.events() if event < t)})
    for begin, end in pairwise(events):
        demand = dict.fromkeys(credit, 0)
        working = dict.fromkeys(credit, 0)
        for start in schedule.starts:
            task = start.task
            if start.start <= begin < start.end:
                working[task.organization] += task.processors
            if task.release <= begin < start.end:
                demand[task.organization] += task.processors
        for u in credit:
            demand[u] += schedule.pending(u, begin)
        quantum = end - begin
        donated = {u: max(0, schedule.owned[u] - 2 * demand[u]) * quantum for u in credit}
        lent = 0
        for u in credit:
            borrowed = max(0, 2 * working[u] - schedule.owned[u])
            credit[u] += (schedule.owned[u] - borrowed) * quantum
            lent += borrowed * quantum
        lent = min(lent, sum(donated.values()))
        level = min((credit[u] // schedule.owned[u] for u in credit if donated[u]), default=0)
        while lent:  # the poorest for their share lend first
            level += 1
            wanted = {
                u: min(donated[u], max(0, level * schedule.owned[u] - credit[u])) for u in credit
            }
            for u in credit:
                more = min(wanted[u], lent)
                credit[u] += more
                donated[u] -= more
                lent -= more

    def order(u: int) -> tuple[bool, bool, Fraction, int]:
        above = 2 * occupied(schedule, t, u) - schedule.owned[u]
        left = credit[u] - max(0, above)
        owned = schedule.owned[u]
        return above >= 0, owned == 0, -Fraction(left, owned or 1), u

    return min(waiting, key=order)


def kai_shares(owned: Sequence[int], asked: Sequence[int], usage: Sequence[float]) -> list[int]:
    """Fair shares by KAI's resource_division.go, quotas and weights being what each one owns.

    Usage is a part of what all processors could have worked, and counts to 2^-20; kValue is 1.
    """
    share = [min(own, want) for own, want in zip(owned, asked, strict=True)]
    used = [Fraction(round(part * 2**20), 2**20) for part in usage]
    remaining, remainder = sum(owned) - sum(share), dict[int, Fraction]()
    another_round = remaining > 0
    while another_round:
        another_round = False
        unsatisfied = [u for u in range(len(owned)) if asked[u] > share[u]]
        total = sum(owned[u] for u in unsatisfied)
        if total == 0:
            break
        normalized = {u: Fraction(owned[u], total) for u in unsatisfied}
        weight = {u: max(Fraction(0), n + (n - used[u])) for u, n in normalized.items()}
        to_give = remaining
        for u in unsatisfied:
            fair = to_give * weight[u] / sum(weight.values())
            requested = asked[u] - share[u]
            given = requested if requested <= fair else int(fair)
            remainder[u] = Fraction(0) if requested <= fair else fair - given
            share[u] += given
            remaining -= given
            another_round |= requested < fair
    for u in sorted(remainder, key=lambda u: (-remainder[u], u))[:remaining]:
        share[u] += remainder[u] > 0
    return share


def kai(used: Callable[[CoalitionSchedule, int, int], float]) -> Rule:
    """KAI's queue_order.go where processors are the only resource and no queue has a priority."""

    def choose(schedule: CoalitionSchedule, t: int, waiting: Sequence[int]) -> int:
        everybody = sorted(schedule.members)
        allocated = [occupied(schedule, t, u) for u in everybody]
        asked = [allocated[u] + schedule.pending(u, t) for u in everybody]
        owned = [schedule.owned[u] for u in everybody]
        usage = [used(schedule, t, u) / schedule.processors for u in everybody]
        fair = kai_shares(owned, asked, usage)

        def order(u: int) -> tuple[bool, bool, bool, Fraction, int]:
            next_allocated = allocated[u] + schedule.queue[u][0].processors
            allocatable = max(owned[u], fair[u])
            return (
                allocated[u] > fair[u],
                next_allocated > owned[u],
                allocatable == 0,
                Fraction(next_allocated, allocatable or 1),
                u,
            )

        return min(waiting, key=order)

    return choose


def of_all_time(half_life: int) -> Callable[[CoalitionSchedule, int, int], float]:
    """Decayed usage, of that of a processor that always worked."""
    used = decayed(half_life)
    return lambda schedule, t, u: used(schedule, t, u) / (half_life / log(2))


RULES: Mapping[str, Rule] = {
    "directcontr": direct(psi),
    "orig-direct": direct(psi),
    "rel-direct": direct(psi_relative),
    "simpl-direct": direct(surface),
    "fairshare": fair_share(of_its_jobs(surface)),
    "fairshare:20s": by_usage(decayed(20)),
    "utfairshare": fair_share(of_its_jobs(psi)),
    "currfairshare": fair_share(occupied),
    "karma": karma,
    "kai": kai(lambda schedule, t, u: 0.0),
    "kai:20s": kai(of_all_time(20)),
    "roundrobin": round_robin,
    "fcfs": lambda schedule, t, waiting: first_come(schedule)(waiting),
}


def simulated(workload: Workload, policy: str, seed: int) -> CoalitionSchedule:
    """What a policy makes of a small workload, all parts counted anew at each decision."""
    schedule = CoalitionSchedule(workload, frozenset(range(len(workload.organizations))))
    random, rule = Random(seed), RULES[policy]
    for t in moments(workload, [schedule]):
        schedule.decide(t, partial(rule, schedule, t), random)
    return schedule
