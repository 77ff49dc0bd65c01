from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.choices import Format
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log, RecordedProcessors
from shapleyprio.replay.workloads.workload import (
    Consortium,
    Window,
    parts_of,
    whole_log,
    with_history,
    workload_of,
)


def labels(names: Sequence[str | None]) -> Labels:
    known = tuple(dict.fromkeys(name for name in names if name is not None))
    codes = [UNKNOWN if name is None else known.index(name) for name in names]
    return Labels(np.array(codes, dtype=np.int32), known)


def placed_on(jobs: Sequence[Mapping[str | None, int]]) -> RecordedProcessors:
    """Each job's owner -> processors."""
    return RecordedProcessors(
        np.cumsum([0, *map(len, jobs)]),
        labels([owner for job in jobs for owner in job]),
        np.array([n for job in jobs for n in job.values()], dtype=np.int64),
    )


def owners_in(placed: RecordedProcessors) -> list[dict[str | None, int]]:
    """The opposite of `placed_on`."""
    names = [*placed.owners.names, None]
    parts = [
        (names[code], n)
        for code, n in zip(placed.owners.codes.tolist(), placed.processors.tolist(), strict=True)
    ]
    bounds = placed.first.tolist()
    return [dict(parts[a:b]) for a, b in pairwise(bounds)]


def log_of(
    release: Sequence[int],
    *,
    format: Format = "sacct",  # noqa: A002  # as the column is called
    start: Sequence[int] | None = None,
    processing_time: Sequence[int] | None = None,
    processors: Sequence[int] | None = None,
    placed: RecordedProcessors | None = None,
    system_processors: int | None = None,
    left_out: Mapping[str, int] | None = None,
    **columns: Sequence[str | None],
) -> Log:
    """Jobs that take 10 s on one processor and start when they are released."""
    jobs = len(release)
    return Log(
        source="jobs.log",
        format=format,
        job=np.arange(100, 100 + jobs, dtype=np.int64),
        release=np.array(release, dtype=np.int64),
        start=np.array(release if start is None else start, dtype=np.int64),
        processing_time=np.array(processing_time or [10] * jobs, dtype=np.int64),
        processors=np.array(processors or [1] * jobs, dtype=np.int64),
        limit=np.full(jobs, UNKNOWN, dtype=np.int64),
        labels={kind: labels(names) for kind, names in columns.items()},
        placed=placed,
        system_processors=system_processors,
        left_out=left_out or {},
    )


def consortium(
    organization: Sequence[int],
    *,
    owned: Sequence[int] = (2, 2),
    placed: RecordedProcessors | None = None,
) -> Consortium:
    return Consortium(
        organizations=tuple(f"o{index}" for index in range(len(owned))),
        owned=np.array(owned, dtype=np.int64),
        organization=np.array(organization, dtype=np.int32),
        placed=placed,
    )


def test_the_whole_log_goes_from_the_first_release_to_just_after_the_last() -> None:
    assert whole_log(log_of([7, 5, 9])) == Window(start=5, length=5)


def test_a_log_without_jobs_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"jobs\.log: no job with a known processing time"):
        whole_log(log_of([]))


def test_the_jobs_of_an_organization_are_in_the_order_of_release_then_of_the_log() -> None:
    work = workload_of(log_of([5, 3, 3, 5, 3]), consortium([1, 1, 0, 0, 1]))
    assert work.organization.tolist() == [0, 0, 1, 1, 1]
    assert work.release.tolist() == [0, 2, 0, 0, 2]
    assert work.job.tolist() == [102, 103, 101, 104, 100]
    assert work.position.tolist() == [2, 3, 1, 4, 0]


def test_times_count_from_the_begin_of_the_window() -> None:
    log = log_of([100, 110, 120], start=[130, UNKNOWN, 121])
    work = workload_of(log, consortium([0, 0, 0]), window=Window(start=90, length=100))
    assert work.release.tolist() == [10, 20, 30]
    assert work.start.tolist() == [40, UNKNOWN, 31]


def test_a_window_holds_what_is_released_from_its_begin_on_and_before_its_end() -> None:
    log = log_of([9, 10, 19, 20])
    work = workload_of(log, consortium([0] * 4), window=Window(start=10, length=10))
    assert work.job.tolist() == [101, 102]
    assert work.left_out == {}


def test_jobs_of_nobody_are_left_out_and_counted() -> None:
    log = log_of([1, 2, 3], left_out={"zero_processing_time": 4})
    work = workload_of(log, consortium([0, UNKNOWN, 0]))
    assert work.job.tolist() == [100, 102]
    assert work.left_out == {"zero_processing_time": 4, "no_organization": 1}


def test_only_a_rigid_job_can_be_too_wide() -> None:
    log = log_of([1, 1, 1], processors=[4, 5, 1])
    members = consortium([0, 0, UNKNOWN], owned=(1, 3))
    assert workload_of(log, members, wide="expand").left_out == {"no_organization": 1}
    rigid = workload_of(log, members, wide="rigid", backfill="easy")
    assert rigid.job.tolist() == [100]
    assert rigid.left_out == {"no_organization": 1, "too_wide": 1}
    assert (rigid.wide, rigid.backfill, rigid.system_processors) == ("rigid", "easy", 4)


def test_what_jobs_got_follows_them() -> None:
    got: list[dict[str | None, int]] = [{"o0": 1, "o1": 2}, {}, {None: 5}, {"o1": 7}]
    members = consortium([1, 0, UNKNOWN, 0], placed=placed_on(got))
    work = workload_of(log_of([1, 2, 3, 4]), members)
    assert work.job.tolist() == [101, 103, 100]
    assert work.placed is not None
    assert owners_in(work.placed) == [{}, {"o1": 7}, {"o0": 1, "o1": 2}]


def test_a_consortium_without_processors_is_refused() -> None:
    with pytest.raises(WorkloadError, match="no organization has processors; give it partitions"):
        workload_of(log_of([1]), consortium([0], owned=(0, 0)))


def test_a_window_without_jobs_is_refused() -> None:
    with pytest.raises(
        WorkloadError,
        match="in 5 s from second 49 on; the log",
    ):
        workload_of(log_of([1]), consortium([0]), window=Window(start=50, length=5))


JOB = st.tuples(
    st.integers(0, 30), st.integers(1, 6), st.sampled_from([UNKNOWN, 0, 1]), st.booleans()
)


@given(
    st.lists(JOB, min_size=1, max_size=20),
    st.integers(-5, 30),
    st.integers(1, 40),
    st.sampled_from(["expand", "rigid"]),
)
def test_every_job_of_a_window_is_taken_or_counted(
    jobs: list[tuple[int, int, int, bool]], start: int, length: int, wide: str
) -> None:
    release, processors, organization, split = zip(*jobs, strict=True)
    got: list[dict[str | None, int]] = [
        {"o0": 1, "o1": width} if halved else {None: width}
        for width, halved in zip(processors, split, strict=True)
    ]
    log = log_of(release, processors=processors)
    members = consortium(organization, placed=placed_on(got))
    inside = [i for i, second in enumerate(release) if start <= second < start + length]
    try:
        work = workload_of(
            log,
            members,
            window=Window(start=start, length=length),
            wide="rigid" if wide == "rigid" else "expand",
        )
    except WorkloadError:
        assert all(
            organization[i] == UNKNOWN or (wide == "rigid" and processors[i] > 4) for i in inside
        )
        return
    assert len(work.job) + sum(work.left_out.values()) == len(inside)
    keys = list(zip(work.organization, work.release, work.position, strict=True))
    assert keys == sorted(keys)
    at = work.position.tolist()
    assert work.release.tolist() == [release[i] - start for i in at]
    assert work.processors.tolist() == [processors[i] for i in at]
    assert work.placed is not None
    assert owners_in(work.placed) == [got[i] for i in at]


def test_the_parts_of_a_job_can_be_taken_more_than_once() -> None:
    placed = placed_on([{"a": 1}, {"a": 2, "b": 3}])
    twice = parts_of(placed, np.array([1, 0, 1]))
    assert owners_in(twice) == [{"a": 2, "b": 3}, {"a": 1}, {"a": 2, "b": 3}]


def test_a_history_is_of_users_and_of_jobs_that_had_ended() -> None:
    log = log_of(
        [0, 0, 5, 20, 21, 22],
        start=[0, 1, 5, 20, UNKNOWN, 23],
        processing_time=[20, 4, 15, 9, 9, 9],
        user=["ann", "bob", None, "ann", "bob", None],
    )
    log = replace(log, limit=np.array([60, *[UNKNOWN] * 5]))
    taken = workload_of(log, consortium([0] * 6), window=Window(start=20, length=9))
    assert taken.history is None
    work = with_history(taken, log)
    assert work.history is not None
    ann, bob = 0, 1
    assert work.history.user.tolist() == [ann, bob, UNKNOWN]
    assert work.history.past_user.tolist() == [bob, ann]
    assert work.history.past_limit.tolist() == [UNKNOWN, 60]
    assert work.history.past_processing_time.tolist() == [4, 20]


def test_a_log_without_users_gives_no_history() -> None:
    log = log_of([0])
    assert with_history(workload_of(log, consortium([0])), log).history is None
