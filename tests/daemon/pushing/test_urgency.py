"""Which writes come first where one cycle may not make them all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.daemon.pushing.urgency import Limits, most_urgent
from shapleyprio.slurm.port import PendingJob
from shapleyprio.store import NewPush
from tests.daemon.consortium import Cluster, Service, config

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shapleyprio.store import Store

MANY = 10**6


def waiting(job_id: int, priority: int, *, user: str = "ann", partition: str = "pa") -> PendingJob:
    return PendingJob(
        job_id=job_id,
        array_job_id=job_id,
        target=str(job_id),
        label=str(job_id),
        account="physics",
        user=user,
        partition=partition,
        qos="normal",
        reason="Priority",
        submit=1,
        eligible=1,
        limit=None,
        tasks=1,
        at_once=None,
        priority=priority,
        nice=0,
        site_factor=0,
        association=None,
        processors=1,
    )


def write(key: int | str, rise: int, channel: str = "site_factor") -> NewPush:
    """A write that changes a job's priority by so much."""
    new = -rise if channel == "nice" else rise
    return NewPush(
        cycle=1,
        channel=channel,
        target=str(key),
        key=str(key),
        organization="physics",
        label=str(key),
        original=0,
        old=0,
        new=new,
        reason="",
        at=1,
    )


def chosen(
    pushes: Sequence[NewPush],
    jobs: Sequence[PendingJob],
    *,
    writes: int = MANY,
    of_user: int = MANY,
    places: int = 1000,
) -> list[str]:
    limits = Limits(writes=writes, raises_of_user=of_user, places_at_once=places)
    return [push.key for push in most_urgent(pushes, jobs, limits)]


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
def test_the_jobs_that_will_be_first_come_first(channel: str) -> None:
    jobs = [waiting(number, 100 + number) for number in range(1, 5)]
    pushes = [write(job.job_id, 1000, channel) for job in jobs]
    assert chosen(pushes, jobs) == ["4", "3", "2", "1"]
    assert chosen(pushes, jobs, writes=2) == ["4", "3"]


def test_what_counts_for_many_jobs_comes_before_them_and_what_cannot_start_after() -> None:
    held = replace(waiting(2, 0), reason="JobHeldUser")
    pushes = [write(9, 5000), write(2, 5000), write(1, 10), write("bio", 7, "qos")]
    assert chosen(pushes, [waiting(1, 50), held]) == ["bio", "1", "9", "2"]


def test_a_job_is_raised_before_others_are_lowered_and_these_before_what_starts_later() -> None:
    low = [waiting(number, 100 - number) for number in range(4)]
    high = [waiting(10 + number, 1200 - number) for number in range(4)]
    pushes = [write(job.job_id, -1000) for job in high] + [write(job.job_id, 1000) for job in low]
    first, then, last = ["0", "1"], ["10", "11", "12", "13"], ["2", "3"]
    assert chosen(pushes, low + high, places=2) == first + then + last


def test_every_partition_has_its_first_jobs() -> None:
    rich = [waiting(number, 9000 + number) for number in range(1, 6)]
    poor = [waiting(10 + number, number, partition="pb") for number in range(1, 6)]
    both = waiting(20, 4, partition="pa,pb")
    pushes = [write(job.job_id, 100) for job in (*rich, *poor, both)]
    assert set(chosen(pushes, [*rich, *poor, both], writes=5, places=2)) == {
        *("5", "4"),
        *("15", "14", "20"),
    }


def test_no_user_keeps_the_others_from_being_written() -> None:
    greedy = [waiting(number, 9000 + number) for number in range(1, 100)]
    modest = waiting(1000, 10, user="bob")
    pushes = [write(job.job_id, 100) for job in (*greedy, modest)]
    found = chosen(pushes, [*greedy, modest], writes=20, of_user=10)
    assert found == [*map(str, range(99, 89, -1)), "1000"]


def test_all_jobs_of_a_user_are_lowered() -> None:
    jobs = [waiting(number, 9000 + number) for number in range(1, 100)]
    pushes = [write(job.job_id, -100) for job in jobs]
    assert len(chosen(pushes, jobs, of_user=10)) == 99


@st.composite
def queues(draw: st.DrawFn, *, channels: Sequence[str] = ("site_factor",)) -> list[object]:
    """Jobs of distinct priorities, before and after, and the writes that lead from one to other."""
    count = draw(st.integers(1, 40))
    before = draw(st.permutations(range(count)))
    after = draw(st.permutations(range(count)))
    jobs, pushes = [], []
    for number in range(count):
        user, partition = draw(st.sampled_from("ab")), draw(st.sampled_from(["pa", "pb"]))
        job = waiting(number + 1, 1000 + 2 * before[number], user=user, partition=partition)
        rise = draw(st.sampled_from([0, 1])) * (1001 + 2 * after[number] - job.priority)
        if draw(st.booleans()):
            job = replace(job, reason=draw(st.sampled_from(["JobHeldUser", "Priority"])))
        jobs.append(job)
        if rise:
            pushes.append(write(number + 1, rise, draw(st.sampled_from(channels))))
    return [jobs, pushes]


def _sign(push: NewPush) -> int:
    return {"site_factor": 1, "nice": -1}[push.channel]


def carried_out(jobs: Sequence[PendingJob], made: Iterable[NewPush]) -> list[PendingJob]:
    rises = {push.key: _sign(push) * push.new for push in made}
    return [replace(job, priority=job.priority + rises.get(str(job.job_id), 0)) for job in jobs]


@given(queues(channels=("site_factor", "nice")), st.integers(1, 7), st.integers(1, 4))
def test_bounded_cycles_come_to_the_same_end_and_nothing_is_left(
    queue: tuple[list[PendingJob], list[NewPush]], writes: int, of_user: int
) -> None:
    jobs, left = queue
    end = carried_out(jobs, left)
    cycles = 0
    while left:
        limits = Limits(writes=writes, raises_of_user=of_user)
        made = most_urgent(left, jobs, limits)
        assert 0 < len(made) <= writes
        assert len({push.key for push in made}) == len(made)
        jobs = carried_out(jobs, made)
        keys = {push.key for push in made}
        left = [push for push in left if push.key not in keys]
        cycles += 1
    assert jobs == end
    assert cycles <= 40


@given(queues(), st.integers(0, 40), st.integers(1, 6))
def test_whatever_the_limit_the_front_of_every_queue_is_as_it_should_be(
    queue: tuple[list[PendingJob], list[NewPush]], writes: int, places: int
) -> None:
    jobs, pushes = queue
    limits = Limits(writes=writes, raises_of_user=MANY, places_at_once=places)
    made = most_urgent(pushes, jobs, limits)
    end, now = carried_out(jobs, pushes), carried_out(jobs, made)
    later = {push.key for push in pushes} - {push.key for push in made}

    def front(queue: list[PendingJob], partition: str) -> list[int]:
        there = [job for job in queue if job.partition == partition and job.waits_for_its_turn]
        return [job.job_id for job in sorted(there, key=lambda job: -job.priority)]

    for partition in ("pa", "pb"):
        wanted, found = front(end, partition), front(now, partition)
        # a job waits for its write only if it neither is nor will be among the first
        agree = next(
            (i for i, (a, b) in enumerate(zip(wanted, found, strict=True)) if a != b), MANY
        )
        first_later = min(
            (min(wanted.index(job), found.index(job)) for job in wanted if str(job) in later),
            default=MANY,
        )
        assert agree >= first_later // places * places


# -- in the daemon's cycles


@pytest.fixture(params=["site_factor", "nice"])
def bounded(request: pytest.FixtureRequest, slurm: Cluster, store: Store) -> Service:
    slurm.fill("guest")
    return Service(slurm, store, config(push={"channel": request.param, "most_writes": 3}))


def test_what_a_cycle_leaves_the_following_ones_write(bounded: Service) -> None:
    slurm = bounded.slurm
    jobs = [slurm.submit("physics", processing_time=9) for _ in range(4)]
    jobs += [slurm.submit("biology", processing_time=9) for _ in range(4)]
    postponed: list[int] = []
    written: list[str] = []
    while not postponed or postponed[-1]:
        report = bounded.run()
        postponed.append(report.plan.postponed)
        assert report.pushed.applied == len(report.plan.pushes) <= 3
        written += [push.key for push in report.plan.pushes]
    assert postponed == [5, 2, 0]
    assert sorted(written) == sorted(map(str, jobs))
    points = bounded.points()
    for job in slurm.jobs():
        if job.account in points:
            value = -job.nice or job.site_factor
            assert value == points[job.account]
    with bounded.store.cluster(bounded.name).reading() as view:
        assert [cycle.postponed for cycle in view.history.cycles()] == [0, 2, 5]


def test_everything_is_put_back_at_once(bounded: Service) -> None:
    slurm = bounded.slurm
    for _ in range(8):
        slurm.submit("physics", nice=5, processing_time=9)
    before = slurm.jobs()
    while bounded.run().plan.postponed:
        pass
    assert slurm.jobs() != before
    assert bounded.roll_back().applied == 8
    assert slurm.jobs() == before
