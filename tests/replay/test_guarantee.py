"""Guarantees in replays: what goes first, how soon it starts, and what that costs the others."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.guarantee import EligibleJob, Freeing, Lent, guaranteed
from shapleyprio.fairness.rule import OrganizationState, Situation
from shapleyprio.replay.audit.guarantees import guarantees_under
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.policies import RunOptions, run_policy
from shapleyprio.replay.policies.own import own_decisions
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.choices import Guarantee
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.workload import Window, Workload, jobs_of, whole_log, workload_of
from tests.examples import examples
from tests.replay import literal
from tests.replay.certificate import processors_started
from tests.replay.literal_bays import ConfinedSchedule
from tests.replay.strategies import workloads
from tests.replay.test_bays import in_bays
from tests.replay.test_policies import (
    BACKFILLS,
    BUSY,
    BUSY_AND_WIDE,
    DECIDED,
    OWNERS_DECIDE,
    RIGID,
)
from tests.replay.traces import trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

SECONDS = st.integers(1, 15)
crowded = partial(
    workloads,
    organizations=st.integers(2, 4),
    lengths=st.integers(30, 60),
    jobs=30,
    spread=15,
)
CROWDED = crowded(owned=st.integers(0, 3), widths=st.integers(1, 3))
CROWDED_AND_WHOLE = crowded(
    owned=st.integers(0, 5), widths=st.integers(1, 5), wide="rigid", backfills=BACKFILLS
)


IN_BAYS = in_bays(CROWDED) | in_bays(CROWDED_AND_WHOLE)


def apart(workload: Workload) -> Workload:
    """The same with partitions that share no nodes."""
    bays = workload.bays
    assert bays is not None
    partitions = len(bays.partitions)
    reach = np.arange(len(bays.owned)) % partitions == np.arange(partitions)[:, None]
    return replace(workload, bays=replace(bays, reach=reach))


class Keeping(literal.CoalitionSchedule):
    """A schedule in which goes first what the daemon would put first."""

    def __init__(self, workload: Workload, seconds: int, *, ahead: bool = False) -> None:
        self.names = range(len(workload.organizations))
        super().__init__(workload, frozenset(self.names))
        self.seconds = seconds
        self.ahead = ahead

    def asking(self, t: int, tasks: Iterable[literal.Task]) -> list[int]:
        """The places in the log of the jobs that ask."""
        waiting = [
            EligibleJob(task.position, str(task.organization), task.release, task.processors)
            for task in tasks
        ]
        unused = {(str(u), ""): self.owned[u] - literal.occupied(self, t, u) for u in self.names}
        guarantees = dict.fromkeys(map(str, self.names), self.seconds)
        lent = Lent(unused, {"": [""]})
        return [job.job for job in guaranteed(t, guarantees, lent, waiting, self.freeing(t))]

    def freeing(self, t: int) -> dict[str, Freeing]:
        """When processors will be free; nothing if jobs do not ask ahead."""
        ends = [(start.estimated_end(t), start.task.processors) for start in self.running(t)]
        return {"": Freeing(self.free(t), ends)} if self.ahead else {}

    def decide(self, t: int, pick: literal.Pick, random: Random | None = None) -> None:
        def kept(waiting: Sequence[int]) -> int:
            heads = {self.queue[u][0].position: u for u in waiting}
            asking = self.asking(t, [self.queue[u][0] for u in waiting])
            return heads[asking[0]] if asking else pick(waiting)

        super().decide(t, kept, random)


class Looks:
    """Looks at who asks, each of which counts since when without a break."""

    def __init__(self) -> None:
        self.count = 0
        self.since: dict[int, int] = {}

    def after(self, tasks: Iterable[literal.Task], asking: list[int]) -> list[literal.Task]:
        """The jobs that ask, those first that ask since an earlier look."""
        place = {task.position: task for task in tasks}
        self.count += 1
        self.since = {one: self.since.get(one, self.count) for one in asking}
        order = sorted(self.since, key=lambda one: (self.since[one], place[one].release, one))
        return [place[one] for one in order]


class KeepingWhole(Keeping):
    """One of whole jobs, where those that ask pass others, and each has a reservation."""

    def __init__(self, workload: Workload, seconds: int, *, ahead: bool = False) -> None:
        super().__init__(workload, seconds, ahead=ahead)
        self.looks = Looks()

    def look(self, t: int) -> list[literal.Task]:
        tasks = [task for u in self.names for task in self.queue[u] if task.release <= t]
        return self.looks.after(tasks, self.asking(t, tasks))

    def decide(self, t: int, pick: literal.Pick, random: Random | None = None) -> None:
        if t in self.events():
            self._decide(t, pick, random)
            self.look(t)

    def _decide(self, t: int, pick: literal.Pick, random: Random | None) -> None:
        reserved: list[literal.Task] = []
        for task in self.look(t):
            if self._may_start_beside(task, t, reserved):
                self._begin(task, t, random)
            elif self.backfill == "none":
                return
            else:
                reserved.append(task)
        passed: set[int] = set()
        asked = list(reserved)
        while self.free(t) and (waiting := [u for u in self.waiting(t) if u not in passed]):
            task = self.queue[organization := pick(waiting)][0]
            if task not in asked and self._may_start_beside(task, t, reserved):
                self._begin(task, t, random)
                continue
            if self.backfill == "none":
                return
            passed.add(organization)
            room = self.processors - sum(one.processors for one in reserved)
            if task not in asked and reserved == asked and task.processors <= room:
                reserved.append(task)

    def _begin(self, task: literal.Task, t: int, random: Random | None) -> None:
        queue = self.queue[task.organization]
        queue.remove(task)
        queue.insert(0, task)
        self._start(task, t, random)

    def _may_start_beside(self, task: literal.Task, t: int, reserved: list[literal.Task]) -> bool:
        if task.processors > self.free(t):
            return False
        ends = sorted(start.estimated_end(t) for start in self.running(t))
        for number in range(1, len(reserved) + 1):
            wanted = sum(one.processors for one in reserved[:number])
            until = next(end for end in ends if self._free_at(end, t) >= wanted)
            left_over = self._free_at(until, t) - wanted
            if t + task.estimate > until and task.processors > left_over:
                return False
        return True


class KeepingInBays(ConfinedSchedule):
    """One with partitions."""

    def __init__(self, workload: Workload, seconds: int, *, ahead: bool = False) -> None:
        super().__init__(workload, frozenset(range(len(workload.organizations))))
        self.seconds = seconds
        self.ahead = ahead

    def share(self, p: int, q: int) -> bool:
        return bool(set(self.bays_of[p]) & set(self.bays_of[q]))

    def unused(self, t: int, u: int, p: int) -> int:
        """What u brings to a partition and does not use there."""
        bays = self.bays_of[p]
        brought = [owner for bay, owner in self.everything if bay in bays].count(u)
        for start, held in zip(self.starts, self.held, strict=True):
            if start.task.organization == u and start.end > t:
                brought -= sum(bay in bays for bay, _ in held)
        return brought

    def asking(self, t: int, tasks: Iterable[literal.Task]) -> list[int]:
        """The places in the log of the jobs that ask."""
        partitions = range(len(self.bays_of))
        lent = Lent(
            {(str(u), str(p)): self.unused(t, u, p) for u in self.members for p in partitions},
            {str(p): [str(q) for q in partitions if self.share(p, q)] for p in partitions},
        )
        waiting = [
            EligibleJob(
                task.position,
                str(task.organization),
                task.release,
                task.processors,
                partitions=(str(self.partition_of[task.job]),),
            )
            for task in tasks
        ]
        guarantees = {str(u): self.seconds for u in self.members}
        return [job.job for job in guaranteed(t, guarantees, lent, waiting, self.freeing(t))]

    def freeing(self, t: int) -> dict[str, Freeing]:
        """When processors of each partition will be free; nothing if jobs do not ask ahead."""
        held = [
            (start.estimated_end(t), [bay for bay, _ in held])
            for start, held in zip(self.starts, self.held, strict=True)
            if start.end > t
        ]
        free = [bay for bay, _ in self.free_now(t)]
        return {
            str(p): Freeing(
                sum(bay in bays for bay in free),
                [(end, sum(bay in bays for bay in of_job)) for end, of_job in held],
            )
            for p, bays in enumerate(self.bays_of)
            if self.ahead
        }


class KeepingCopiesInBays(KeepingInBays):
    """One of copies, of which the first job of an organization in each partition may ask."""

    def unused(self, t: int, u: int, p: int) -> int:
        """What u lends beside what asks in vain."""
        asked = [self.lines[u, q] for v, q in self.passed if v == u and self.share(p, q)]
        return super().unused(t, u, p) - sum(
            task.position == line[0].position for line in asked for task in line
        )

    def go_first(self, t: int) -> None:
        while asking := self.asking(t, (heads := self.heads(t)).values()):
            self.try_to_start(heads[asking[0]], t)

    def heads(self, t: int) -> dict[int, literal.Task]:
        return {
            line[0].position: line[0]
            for place, line in self.lines.items()
            if line and line[0].release <= t and place not in self.passed
        }

    def block(self, task: literal.Task, p: int, t: int, *, fits: bool) -> None:
        self.passed.add((task.organization, p))


class KeepingWholeInBays(KeepingInBays):
    """One of whole jobs, where those that ask pass others, and each has a reservation."""

    def __init__(self, workload: Workload, seconds: int, *, ahead: bool = False) -> None:
        super().__init__(workload, seconds, ahead=ahead)
        self.looks = Looks()
        self.asked: list[literal.Task] = []
        self.reserved: list[tuple[int, int]] = []

    def look(self, t: int) -> list[literal.Task]:
        tasks = [task for line in self.lines.values() for task in line if task.release <= t]
        return self.looks.after(tasks, self.asking(t, tasks))

    def decide(self, t: int, pick: literal.Pick, random: Random | None = None) -> None:
        if t in self.events():
            super().decide(t, pick, random)
            self.look(t)

    def go_first(self, t: int) -> None:
        self.asked, self.reserved = [], []
        for task in self.look(t):
            p, free = self.partition_of[task.job], self.free_now(t, without=self.closed)
            wanted = self.would_get(task, free)
            if wanted is not None and self.delays_none(task, wanted, t):
                self.begin(task, wanted, t)
            elif self.backfill == "none":
                self.asked.append(task)
                self.closed.update(self.bays_of[p])
            else:
                self.reserved.append((p, min(self.needed(task), self.size(p))))
                self.asked.append(task)

    def needed(self, task: literal.Task) -> int:
        p = self.partition_of[task.job]
        before = [one for one in self.asked if self.share(p, self.partition_of[one.job])]
        return task.processors + sum(one.processors for one in before)

    def reservations(self) -> list[tuple[int, int]]:
        return [*self.reserved, *super().reservations()]

    def block(self, task: literal.Task, p: int, t: int, *, fits: bool) -> None:
        super().block(task, p, t, fits=fits or task in self.asked)


def keeping(workload: Workload, seconds: int, *, ahead: bool) -> literal.CoalitionSchedule:
    if workload.bays is not None:
        kind = KeepingWholeInBays if workload.wide == "rigid" else KeepingCopiesInBays
        return kind(workload, seconds, ahead=ahead)
    return (KeepingWhole if workload.wide == "rigid" else Keeping)(workload, seconds, ahead=ahead)


def simulated(
    workload: Workload, policy: str, seconds: int, *, ahead: bool = False
) -> literal.CoalitionSchedule:
    """What a policy makes of a small workload with a guarantee."""
    schedule = keeping(workload, seconds, ahead=ahead)
    rule = literal.RULES[policy]
    for t in literal.moments(workload, [schedule]):
        schedule.decide(t, partial(rule, schedule, t), Random(0))
    return schedule


@pytest.mark.parametrize("policy", sorted(set(DECIDED) - OWNERS_DECIDE))
@settings(max_examples=examples(40))
@given(workload=BUSY | BUSY_AND_WIDE | RIGID | CROWDED_AND_WHOLE | IN_BAYS, seconds=SECONDS)
def test_what_goes_first_is_what_the_daemon_puts_first(
    policy: str, workload: Workload, seconds: int
) -> None:
    made = run_policy(workload, f"{policy}@{seconds}s")
    expected = literal.processors_started(simulated(workload, policy, seconds).starts)
    assert processors_started(made) == expected


BACKFILLED = crowded(
    owned=st.integers(0, 5), widths=st.integers(1, 5), wide="rigid", backfills=st.just("easy")
)


@pytest.mark.parametrize("policy", ["fairshare", "fcfs"])
@settings(max_examples=examples(80))
@given(workload=BACKFILLED | in_bays(BACKFILLED), seconds=SECONDS)
def test_jobs_ask_ahead_by_as_long_as_their_processors_may_be_held(
    policy: str, workload: Workload, seconds: int
) -> None:
    made = run_policy(workload, f"{policy}@{seconds}s:ahead")
    found = simulated(workload, policy, seconds, ahead=True)
    assert processors_started(made) == literal.processors_started(found.starts)


@given(workload=BUSY | RIGID, seconds=SECONDS)
def test_the_daemons_rules_are_followed_alike(workload: Workload, seconds: int) -> None:
    one = run_policy(workload, f"directcontr@{seconds}s")
    other = run_policy(workload, f"rule:directcontr@{seconds}s")
    assert processors_started(one) == processors_started(other)


def longest_claim(workload: Workload, schedule: Schedule, u: int, seconds: int) -> int:
    """For how long without a break u uses less than it brings while it waits for so long."""
    waits = np.zeros(workload.window.length, dtype=np.int64)
    used = np.zeros(workload.window.length, dtype=np.int64)
    own = np.flatnonzero(workload.organization == u)
    for job in own:
        release = int(workload.release[job])
        waits[release + seconds :] += workload.processors[job]
    columns = (schedule.job, schedule.start, schedule.copies)
    for job, start, copies in zip(*(column.tolist() for column in columns), strict=True):
        if job in own:
            waits[max(start, int(workload.release[job]) + seconds) :] -= copies
            used[start : start + int(workload.processing_time[job])] += copies
    longest = current = 0
    for claims in (waits > 0) & (used < workload.owned[u]):
        current = current + 1 if claims else 0
        longest = max(longest, current)
    return longest


def longest_job(workload: Workload) -> int:
    """The longest that a job may stay: its limit, if it has one."""
    return int(max(workload.processing_time.max(initial=0), workload.limit.max(initial=0)))


@pytest.mark.parametrize("policy", ["directcontr", "fairshare", "rule:directcontr", "live", "fcfs"])
@settings(max_examples=examples(40))
@given(workload=CROWDED, seconds=st.integers(1, 6))
def test_who_asks_is_served_before_the_longest_job_could_have_ended(
    policy: str, workload: Workload, seconds: int
) -> None:
    """So a guarantee is kept where no job lasts longer than it says."""
    schedule = run_policy(workload, f"{policy}@{seconds}s")
    for u in range(len(workload.organizations)):
        assert longest_claim(workload, schedule, u, seconds) <= longest_job(workload)


def longest_turn(workload: Workload, schedule: Schedule, seconds: int) -> int:
    """For how long without a break a job has waited longest of all first ones that ask."""
    start = np.full(len(workload.job), workload.window.length)
    np.minimum.at(start, schedule.job, schedule.start)
    longest, since, last = 0, 0, -1
    for t in range(workload.window.length):
        for begun in (start < t, start <= t):
            first = next(asking(workload, schedule, begun, t, seconds), -1)
            since, last = (since, last) if first == last else (t, first)
            longest = max(longest, t - since if first >= 0 else 0)
    return longest


def asking(
    workload: Workload, schedule: Schedule, begun: NDArray[np.bool_], t: int, seconds: int
) -> Iterator[int]:
    """The first jobs of an organization in a partition that ask at t, the longest wait first."""
    bays, width = workload.bays, workload.processors
    assert bays is not None
    assert schedule.bay is not None
    job, unused = schedule.job, bays.owned.copy()
    at_work = begun[job] & (schedule.start + workload.processing_time[job] > t)
    np.subtract.at(unused, (schedule.bay, workload.organization[job]), at_work * schedule.copies)
    waiting = ~begun & (workload.release <= t) & (width <= bays.processors[bays.partition])
    seen = set()
    for job in np.lexsort((workload.position, workload.release)).tolist():
        u, p = int(workload.organization[job]), int(bays.partition[job])
        if waiting[job] and (u, p) not in seen:
            seen.add((u, p))
            fits = width[job] <= unused[bays.reach[p], u].sum()
            if fits and t - workload.release[job] >= seconds:
                yield job


@pytest.mark.parametrize("policy", ["directcontr", "fairshare", "live"])
@settings(max_examples=examples(60))
@given(workload=in_bays(CROWDED_AND_WHOLE), seconds=st.integers(1, 6))
def test_of_all_partitions_the_longest_wait_that_asks_is_served_as_soon(
    policy: str, workload: Workload, seconds: int
) -> None:
    schedule = run_policy(workload, f"{policy}@{seconds}s")
    assert longest_turn(workload, schedule, seconds) <= longest_job(workload)


@given(workload=CROWDED, seconds=st.integers(1, 6))
def test_who_comes_first_by_the_rule_is_served_as_soon_whoever_asks(
    workload: Workload, seconds: int
) -> None:
    """Guarantees of others take nothing that it brings itself."""

    def first_listed(situation: Situation) -> list[OrganizationState]:
        return list(situation.waiting)

    kept = Guarantee(seconds, ahead=False)
    schedule = own_decisions(workload, "listed", first_listed, RunOptions(guarantee=kept))
    assert longest_claim(workload, schedule, 0, 0) <= longest_job(workload)


@given(workload=CROWDED | CROWDED_AND_WHOLE)
def test_a_guarantee_of_more_than_anybody_waits_changes_nothing_but_draws(
    workload: Workload,
) -> None:
    for policy in sorted(set(DECIDED) - OWNERS_DECIDE):
        with_one = run_policy(workload, f"{policy}@{workload.window.length}s")
        assert processors_started(with_one) == processors_started(run_policy(workload, policy))


OF_LOGS = {
    "HPC2N-2002-2.2-cln.swf.gz": 60,
    "DAS2-fs1-2003-1.swf.gz": 8,
    "LPC-EGEE-2004-1.2-cln.swf.gz": 20,
    "METACENTRUM-2009-2.swf.gz": 200,
    "RICC-2010-2.swf.gz": 1_000,
    "CEA-Curie-2011-2.1-cln.swf.gz": 20_000,
    "xdmod-pozidriv.sacct.gz": 200,
    "usc-jobs.sacct.xz": 1_000,
}
"""Processors so few that jobs of at most four hours wait for so long."""


@pytest.mark.parametrize("name", sorted(OF_LOGS))
def test_on_real_logs_no_guarantee_is_broken_where_jobs_last_no_longer(name: str) -> None:
    """As on partitions with MaxTime=240."""
    seconds, length = 4 * 3600, 150_000
    log = read_log(str(trace(name)))
    consortium = deal(log, 5, shares="uniform", processors=OF_LOGS[name], seed=1)
    whole = whole_log(log)
    asked = 0
    starts = np.linspace(whole.start, whole.start + whole.length - length, 40)
    for number, start in enumerate(starts.tolist()):
        window = Window(start=int(start), length=length)
        try:
            found = workload_of(log, consortium, window=window, wide="rigid", backfill="easy")
        except WorkloadError:  # nothing was released
            continue
        short = jobs_of(found, np.flatnonzero(found.processing_time <= seconds))
        workload = replace(short, limit=np.minimum(short.limit, seconds))
        confined = [in_partitions(workload)] if number % 4 == 0 else []  # they take longer
        for one in (workload, *confined):
            schedules = [run_policy(one, policy) for policy in ("directcontr@4h", "fairshare@4h")]
            for became in chain(*guarantees_under(one, schedules, seconds).values()):
                assert became.broken == 0
                asked += became.asked
    assert asked > 0


def in_partitions(workload: Workload) -> Workload:
    """The same in three partitions apart, to which each organization brings other parts."""
    split = [
        np.roll((number // 6, number // 3, number - number // 6 - number // 3), u)
        for u, number in enumerate(workload.owned.tolist())
    ]
    bays = Bays(
        partitions=("a", "b", "c"),
        reach=np.eye(3, dtype=np.bool_),
        owned=np.array(split).T,
        partition=(workload.position % 3).astype(np.int32),
    )
    fits = workload.processors <= bays.processors[bays.partition]
    confined = replace(workload, bays=bays, placement="least-loaded")
    return jobs_of(confined, np.flatnonzero(fits))
