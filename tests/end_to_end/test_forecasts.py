"""A job that waits starts when its user was told that it would."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.end_to_end.consortium import ALL_CPUS, Consortium

pytestmark = pytest.mark.real_slurm

SPEED = 1

LENGTHS = (6, 9, 12, 18, 24, 30)
"""Seconds of jobs of the past, one for each CPU."""

JOB_SECONDS = 12


def test_a_job_starts_within_the_interval_that_was_told(consortium: Consortium) -> None:
    cluster = consortium.cluster
    consortium.configure()
    with consortium.daemon() as daemon:
        for seconds in LENGTHS:
            cluster.submit("alpha", seconds)
        consortium.until(lambda: not cluster.run("squeue", "-h"), what="the past to end")
        consortium.await_settled()
        first, second, last = [
            cluster.submit("alpha", JOB_SECONDS, processors=ALL_CPUS) for _ in range(3)
        ]
        consortium.await_start(first)
        told: dict[int, Any] = {}

        def is_told() -> bool:
            for job in (second, last):
                told[job] = json.loads(consortium.succeed("explain", str(job), "--json"))["start"]
            return all(start["median"] is not None for start in told.values())

        consortium.until(is_told, what="forecasts")
        assert "Probably it starts " in consortium.succeed("explain", str(last))
        assert told[second]["median"] < told[last]["median"]
        assert told[last]["waits_for"] == "turn"
        assert told[last]["within_hour"] == 1
        assert consortium.starts([first, second, last]) == [first, second, last]
        rows = consortium.accounted("JobIDRaw", "Start")
        begun = {int(job): int(start) for job, start in rows if start.isdigit() and job.isdigit()}
        start = told[last]
        assert start["early"] <= begun[last] <= start["late"], (told, begun)

        def are_judged() -> bool:
            found = json.loads(consortium.succeed("status", "--json"))["forecasts"]
            return sum(int(score["forecasts"]) for score in found) >= 2

        consortium.until(are_judged, what="what was told to be judged")
        judged = json.loads(consortium.succeed("history", "--forecasts", "--json"))
        assert {row["job_id"]: row["start"] for row in judged}[last] == begun[last]
        assert "shapleyprio_forecast_coverage_ratio" in consortium.metrics()
        assert daemon.end() == 0
