"""Karma as its authors define it, where jobs last as long as its quanta: a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.strategies import Job, workload_of_jobs


def demands(owned: Sequence[int], asked: Mapping[int, Sequence[int]]) -> Workload:
    """Each organization asks for so many processors for a second, second after second."""
    length = max(map(len, asked.values()))
    jobs = [
        Job(u, second, 1, number)
        for u, numbers in asked.items()
        for second, number in enumerate(numbers)
        if number
    ]
    return workload_of_jobs(list(owned), jobs, length)


def allocated(workload: Workload, policy: str = "karma") -> list[list[int]]:
    """How many processors each organization got in each second."""
    schedule = run_policy(workload, policy)
    got: Counter[tuple[int, int]] = Counter()
    columns = (schedule.job.tolist(), schedule.start.tolist(), schedule.copies.tolist())
    for job, start, copies in zip(*columns, strict=True):
        got[int(workload.organization[job]), start] += copies
    seconds = range(workload.window.length)
    return [[got[u, second] for second in seconds] for u in range(len(workload.owned))]


def test_the_authors_own_example_is_allocated_as_by_them() -> None:
    """`test_inflation` of their simulator: 18 slices, half of them shared; each gets 24 in all."""
    workload = demands([6, 6, 6], {0: [6, 12, 0, 6, 6], 1: [6, 0, 12, 6, 6], 2: [0, 0, 0, 18, 12]})
    assert allocated(workload) == [[6, 12, 0, 3, 3], [6, 0, 12, 3, 3], [0, 0, 0, 12, 12]]


def test_without_a_past_it_is_max_min_fairness() -> None:
    assert allocated(demands([4, 4, 4], {0: [2], 1: [9], 2: [9]})) == [[2], [5], [5]]


def test_what_is_guaranteed_comes_first_whatever_the_credits() -> None:
    """The first one lent all that it has for 5 s; the other still has its half."""
    found = allocated(demands([4, 4], {0: [0] * 5 + [8], 1: [8] * 5 + [8]}))
    assert found == [[0] * 5 + [6], [8] * 5 + [2]]


def test_what_nobody_borrows_earns_nothing() -> None:
    """Neither of those who were away is preferred when both come back."""
    found = allocated(demands([4, 4], {0: [0, 0, 0, 8], 1: [4, 4, 4, 8]}))
    assert found == [[0, 0, 0, 6], [4, 4, 4, 2]]  # it paid for half of what it owns all the time
    found = allocated(demands([4, 4], {0: [0, 0, 0, 8], 1: [2, 2, 2, 8]}))
    assert found == [[0, 0, 0, 4], [2, 2, 2, 4]]


def test_the_poorest_lend_first() -> None:
    """The third one borrowed 6, so the 2 that the fourth then borrows are credited to it alone.

    Before the last second the second one has 4 + 2 credits, the third one 2 − 6 + 2 + 2 = 0: of the
    12 processors that are not guaranteed 6 are the second one's, and of the others half.
    """
    before = {0: [0], 1: [0], 2: [8], 3: [0]}
    then = {0: [0], 1: [0], 2: [0], 3: [4]}
    at_last = {0: [0], 1: [16], 2: [16], 3: [0]}
    asked = {u: [*before[u], *then[u], *at_last[u]] for u in before}
    found = allocated(demands([4, 4, 4, 4], asked))
    assert [row[2] for row in found] == [0, 2 + 6 + 3, 2 + 3, 0]
