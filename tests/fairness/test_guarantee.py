"""Guarantees put no more first than an organization lends, and the longest waits of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.guarantee import EligibleJob, guaranteed

NAMES = "abc"
JOBS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 12), st.integers(0, 6), st.integers(1, 4)),
    max_size=12,
).map(lambda rows: [EligibleJob(number, *row) for number, row in enumerate(rows)])
GUARANTEES = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 12))
UNUSED = st.dictionaries(st.sampled_from(NAMES), st.integers(-3, 12))


def literally(
    t: int, guarantees: dict[str, int], unused: dict[str, int], jobs: list[EligibleJob]
) -> dict[int, int]:
    """The jobs that go first, and how many tasks of each, as the promise is worded."""
    left: dict[str, int] = dict(unused)
    first: dict[int, int] = {}
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
        for _ in range(job.tasks):
            if job.processors <= left.get(job.organization, 0):
                left[job.organization] -= job.processors
                first[job.job] = first.get(job.job, 0) + 1
    return first


@given(t=st.integers(0, 30), guarantees=GUARANTEES, unused=UNUSED, jobs=JOBS)
def test_those_go_first_whom_the_promise_names(
    t: int, guarantees: dict[str, int], unused: dict[str, int], jobs: list[EligibleJob]
) -> None:
    found = [(job.job, job.tasks) for job in guaranteed(t, guarantees, unused, jobs)]
    assert found == list(literally(t, guarantees, unused, jobs).items())


@given(guarantees=GUARANTEES, unused=UNUSED, jobs=JOBS, data=st.data())
def test_the_order_of_the_jobs_and_those_of_others_do_not_matter(
    guarantees: dict[str, int], unused: dict[str, int], jobs: list[EligibleJob], data: st.DataObject
) -> None:
    first = guaranteed(20, guarantees, unused, jobs)
    assert guaranteed(20, guarantees, unused, data.draw(st.permutations(jobs))) == first
    for name in NAMES:
        own = [job for job in jobs if job.organization == name]
        ours = [job for job in first if job.organization == name]
        assert guaranteed(20, guarantees, unused, own) == ours


@given(guarantees=GUARANTEES, unused=UNUSED, jobs=JOBS, more=st.integers(1, 9))
def test_time_puts_no_job_back_and_all_that_go_first_fit(
    guarantees: dict[str, int], unused: dict[str, int], jobs: list[EligibleJob], more: int
) -> None:
    first = guaranteed(12, guarantees, unused, jobs)
    for name in NAMES:
        asked = sum(job.tasks * job.processors for job in first if job.organization == name)
        assert asked <= max(unused.get(name, 0), 0)
    if all(job.since + guarantees.get(job.organization, 0) <= 12 for job in jobs):
        assert guaranteed(12 + more, guarantees, unused, jobs) == first
