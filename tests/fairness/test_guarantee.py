"""Guarantees put no more first than an organization lends, and the longest waits of it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.guarantee import EligibleJob, Lent, guaranteed

NAMES = "abc"
PARTITIONS = "pqr"
Bays = list[tuple[frozenset[str], dict[str, int]]]
"""Partitions of some nodes, and what each organization brings and does not use there."""

BAYS = st.lists(
    st.tuples(
        st.frozensets(st.sampled_from(PARTITIONS), min_size=1),
        st.dictionaries(st.sampled_from(NAMES), st.integers(-3, 12)),
    ),
    max_size=4,
)
JOBS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(0, 12),
        st.integers(0, 6),
        st.integers(1, 4),
        st.lists(st.sampled_from(PARTITIONS), min_size=1, unique=True).map(tuple),
    ),
    max_size=12,
).map(lambda rows: [EligibleJob(number, *row) for number, row in enumerate(rows)])
GUARANTEES = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 12))


def lent(bays: Bays) -> Lent:
    return Lent(
        {(name, one): unused_in(bays, name, one) for name in NAMES for one in PARTITIONS},
        {one: frozenset().union(*(names for names, _ in bays if one in names)) for one in "pqr"},
    )


def unused_in(bays: Bays, organization: str, partition: str) -> int:
    return sum(unused.get(organization, 0) for names, unused in bays if partition in names)


def meet(bays: Bays, job: EligibleJob, partition: str) -> bool:
    """Whether a job may start on a node of a partition."""
    return any(partition in names and names & set(job.partitions) for names, _ in bays)


def literally(
    t: int, guarantees: dict[str, int], bays: Bays, jobs: list[EligibleJob]
) -> dict[int, int]:
    """The jobs that go first, and how many tasks of each, as the promise is worded."""
    first: dict[int, int] = {}
    asking: list[EligibleJob] = []
    waiting = list(jobs)
    while waiting:
        job = waiting[0]
        for other in waiting:
            if (other.since, other.tasks) < (job.since, job.tasks):
                job = other  # of the same tasks and second the one with the lower number
        waiting.remove(job)
        if job.organization not in guarantees or job.processors == 0:
            continue
        if t < job.since + guarantees[job.organization]:
            continue
        for tasks in range(job.tasks, 0, -1):
            if any(fits(bays, job, tasks, partition, asking) for partition in job.partitions):
                first[job.job] = tasks
                asking += [job] * tasks
                break
    return first


def fits(
    bays: Bays, job: EligibleJob, tasks: int, partition: str, asking: list[EligibleJob]
) -> bool:
    """Whether tasks of a job have room in a partition wherever those that ask start."""
    others = sum(
        other.processors
        for other in asking
        if other.organization == job.organization and meet(bays, other, partition)
    )
    return tasks * job.processors + others <= unused_in(bays, job.organization, partition)


@given(t=st.integers(0, 30), guarantees=GUARANTEES, bays=BAYS, jobs=JOBS)
def test_those_go_first_whom_the_promise_names(
    t: int, guarantees: dict[str, int], bays: Bays, jobs: list[EligibleJob]
) -> None:
    found = [(job.job, job.tasks) for job in guaranteed(t, guarantees, lent(bays), jobs)]
    assert found == list(literally(t, guarantees, bays, jobs).items())


@given(guarantees=GUARANTEES, bays=BAYS, jobs=JOBS, data=st.data())
def test_the_order_of_the_jobs_and_those_of_others_do_not_matter(
    guarantees: dict[str, int], bays: Bays, jobs: list[EligibleJob], data: st.DataObject
) -> None:
    first = guaranteed(20, guarantees, lent(bays), jobs)
    assert guaranteed(20, guarantees, lent(bays), data.draw(st.permutations(jobs))) == first
    for name in NAMES:
        own = [job for job in jobs if job.organization == name]
        ours = [job for job in first if job.organization == name]
        assert guaranteed(20, guarantees, lent(bays), own) == ours


@given(guarantees=GUARANTEES, bays=BAYS, jobs=JOBS, more=st.integers(1, 9))
def test_time_puts_no_job_back_and_all_that_go_first_fit_in_each_partition(
    guarantees: dict[str, int], bays: Bays, jobs: list[EligibleJob], more: int
) -> None:
    first = guaranteed(12, guarantees, lent(bays), jobs)
    for name in NAMES:
        for partition in PARTITIONS:
            asked = sum(
                job.tasks * job.processors
                for job in first
                if job.organization == name and job.partitions == (partition,)
            )
            assert asked <= max(unused_in(bays, name, partition), 0)
    if all(job.since + guarantees.get(job.organization, 0) <= 12 for job in jobs):
        assert guaranteed(12 + more, guarantees, lent(bays), jobs) == first


@given(guarantees=GUARANTEES, bays=BAYS, jobs=JOBS, data=st.data())
def test_whoever_asks_goes_on_asking_wherever_those_before_it_start(
    guarantees: dict[str, int], bays: Bays, jobs: list[EligibleJob], data: st.DataObject
) -> None:
    """Unless one that was before it, but did not fit, fits since then."""
    jobs = [replace(job, tasks=1) for job in jobs]
    first = guaranteed(20, guarantees, lent(bays), jobs)
    if not first:
        return
    started, *later = first
    choices = [place for place, (names, _) in enumerate(bays) if names & set(started.partitions)]
    for _ in range(started.processors):
        names, unused = bays[place := data.draw(st.sampled_from(choices))]
        before = unused.get(started.organization, 0)
        bays[place] = names, {**unused, started.organization: before - 1}
    waiting = [job for job in jobs if job.job != started.job]
    again = guaranteed(20, guarantees, lent(bays), waiting)
    newly = [job for job in again if job.job not in {one.job for one in first}]
    for job in later:
        assert job.job in {one.job for one in again} or any(
            (one.since, one.job) < (job.since, job.job) for one in newly
        )


def test_one_that_fits_only_when_those_before_it_have_started_elsewhere_goes_before_others() -> (
    None
):
    jobs = [
        EligibleJob(number, "a", 0, processors, partitions=(partition,))
        for number, processors, partition in ((1, 3, "p"), (2, 2, "q"), (3, 1, "p"))
    ]
    bays: Bays = [(frozenset("p"), {}), (frozenset("pq"), {"a": 4})]
    assert [job.job for job in guaranteed(20, {"a": 1}, lent(bays), jobs)] == [1, 3]
    bays[0] = frozenset("p"), {"a": -3}  # where the first one has started
    assert [job.job for job in guaranteed(20, {"a": 1}, lent(bays), jobs[1:])] == [2]
