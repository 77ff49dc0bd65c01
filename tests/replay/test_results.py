"""Results as JSON and schedules as CSV: complete and exact."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay import results as module
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.results import SCHEDULE_COLUMNS, as_json, results_of, write_schedules
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.strategies import Job, workload_of_jobs

LENGTH = 20


def log_with_first_release(second: int) -> Log:
    one = np.array([second], dtype=np.int64)
    return Log(
        source="some.swf", format="swf", job=one, release=one, start=one, processing_time=one,
        processors=one, limit=one, labels={},
    )  # fmt: skip


def example() -> Workload:
    """Two organizations; jobs 100 (three copies) and 101 of the first, 102 of the second."""
    jobs = [Job(0, 0, 4, 3), Job(0, 2, 5), Job(1, 0, 30)]
    workload = workload_of_jobs([2, 1], jobs, LENGTH)
    return replace(workload, organizations=("physics", "bio, all"), left_out={"too_wide": 7})


def schedule(
    batches: Sequence[tuple[int, int, int, int]],
    policy: str = "ref",
    contribution: tuple[Fraction, ...] | None = (Fraction(83, 2), Fraction(41)),
) -> Schedule:
    """Batches are (job, start, owner, copies)."""
    columns = zip(*batches, strict=True)
    job, start, owner, copies = (np.array(column, dtype=np.int64) for column in columns)
    return Schedule(
        policy=policy, seed=3, job=job, start=start, owner=owner.astype(np.int32), copies=copies,
        contribution=contribution, seconds=0.25,
    )  # fmt: skip


FAIR = [(0, 0, 0, 2), (2, 0, 1, 1), (0, 4, 0, 1), (1, 6, UNKNOWN, 1)]


def rows(workload: Workload, *schedules: Schedule) -> list[dict[str, str]]:
    file = io.StringIO(newline="")
    write_schedules(file, workload, schedules)
    file.seek(0)
    return list(csv.DictReader(file))


# JSON


def test_everything_is_shown_in_this_order() -> None:
    workload = example()
    late = schedule([(2, 0, 0, 1), (0, 10, 1, 3)], policy="recorded", contribution=None)
    answer = as_json(
        log_with_first_release(workload.window.start - 500),
        workload,
        results_of(workload, [schedule(FAIR), late]),
    )
    assert json.dumps(answer, indent=1) == json.dumps(
        {
            "log": "some.swf",
            "clusters": [],
            "window": {"start": 500, "length": LENGTH},
            "organizations": [
                {"name": "physics", "processors": 2, "jobs": 2},
                {"name": "bio, all", "processors": 1, "jobs": 1},
            ],
            "horizon": None,
            "left_out": {"too_wide": 7},
            "confined": 0.0,
            "partitions": None,
            "policies": [
                {
                    "policy": "ref",
                    "seed": 3,
                    "seconds": 0.25,
                    "organizations": [
                        {
                            "name": "physics",
                            # copies at 0, 0 and 4 of four parts, one at 6 of five
                            "utility": 2 * (20 + 19 + 18 + 17)
                            + (16 + 15 + 14 + 13)
                            + (14 + 13 + 12 + 11 + 10),
                            "contribution": "83/2",
                            "parts": 17,
                            "mean_wait": 2.0,
                            "rho": (8 + 9)
                            / (8 + 7),  # alone the last copy and the other job start at 4
                            "never_alone": 0,
                        },
                        {
                            "name": "bio, all",
                            "utility": 210,
                            "contribution": "41",
                            "parts": 20,
                            "mean_wait": 0.0,
                            "rho": 1.0,
                            "never_alone": 0,
                        },
                    ],
                    "p_tot": 37,
                    "unfairness": 0.0,
                    "contested": 1,
                    "out_of_turn": 1,
                    "largest_rho": 17 / 15,
                    "utilization": 37 / 60,
                },
                {
                    "policy": "recorded",
                    "seed": 3,
                    "seconds": 0.25,
                    "organizations": [
                        {
                            "name": "physics",
                            "utility": 3 * (10 + 9 + 8 + 7),
                            "contribution": None,
                            "parts": 12,
                            "mean_wait": (3 * 10 + 18) / 4,
                            "rho": (14 + 23) / (8 + 7),
                            "never_alone": 0,
                        },
                        {
                            "name": "bio, all",
                            "utility": 210,
                            "contribution": None,
                            "parts": 20,
                            "mean_wait": 0.0,
                            "rho": 1.0,
                            "never_alone": 0,
                        },
                    ],
                    "p_tot": 32,
                    "unfairness": (266 - 102) / 37,
                    "contested": 1,
                    "out_of_turn": 1,
                    "largest_rho": 37 / 15,
                    "utilization": 32 / 60,
                },
            ],
        },
        indent=1,
    )


def test_without_ref_nobody_knows_what_was_fair() -> None:
    workload = example()
    (result,) = results_of(workload, [schedule(FAIR, policy="directcontr")])
    assert result.unfairness is None
    assert result.drifts is None
    assert result.turns is None
    answer = as_json(log_with_first_release(0), workload, [result])
    assert answer["policies"][0]["unfairness"] is None


def test_an_organization_without_jobs_has_no_mean_wait() -> None:
    workload = workload_of_jobs([1, 1], [Job(0, 0, 1)], LENGTH)
    results = results_of(workload, [schedule([(0, 0, 0, 1)])])
    answer = as_json(log_with_first_release(0), workload, results)
    assert [one["mean_wait"] for one in answer["policies"][0]["organizations"]] == [0.0, None]
    assert [one["jobs"] for one in answer["organizations"]] == [1, 0]


# schedules


def test_one_row_for_each_copy_in_the_order_of_starts() -> None:
    table = rows(example(), schedule(FAIR), schedule(FAIR[:1], policy="fcfs"))
    assert tuple(table[0]) == SCHEDULE_COLUMNS
    assert [tuple(row.values()) for row in table] == [
        ("ref", "100", "1", "physics", "physics", "0", "0", "4"),
        ("ref", "100", "2", "physics", "physics", "0", "0", "4"),
        ("ref", "102", "1", "bio, all", "bio, all", "0", "0", "30"),
        ("ref", "100", "3", "physics", "physics", "0", "4", "4"),
        ("ref", "101", "1", "physics", "", "2", "6", "5"),
        ("fcfs", "100", "1", "physics", "physics", "0", "0", "4"),
        ("fcfs", "100", "2", "physics", "physics", "0", "0", "4"),
    ]


def test_what_starts_after_the_window_has_not_started() -> None:
    table = rows(example(), schedule([(0, 19, 0, 2), (0, 20, 0, 1), (1, 25, 0, 1)]))
    assert [(row["job"], row["copy"]) for row in table] == [("100", "1"), ("100", "2")]


@given(
    batches=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=30),
    at_once=st.integers(1, 7),
)
def test_copies_of_a_job_are_numbered_through_in_the_order_of_starts(
    batches: list[tuple[int, int]], at_once: int
) -> None:
    counted = [0, 0, 0]
    expected = []
    for job, copies in batches:
        expected += [(str(100 + job), str(counted[job] + copy + 1)) for copy in range(copies)]
        counted[job] += copies
    workload = workload_of_jobs([9], [Job(0, 0, 5, max(n, 1)) for n in counted], LENGTH)
    ordered = schedule([(job, 0, 0, copies) for job, copies in batches], contribution=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCHES_AT_ONCE", at_once)
        table = rows(workload, ordered)
    assert [(row["job"], row["copy"]) for row in table] == expected
