"""A job that waits starts when its user was told that it would."""

from __future__ import annotations

import json
import time

import pytest

from shapleyprio.store import ForecastRow
from tests.end_to_end.consortium import ALL_CPUS, Consortium

pytestmark = pytest.mark.real_slurm

SPEED = 1

LENGTHS = (8, 10, 12, 16, 20, 24)
"""Seconds of jobs of the past, one for each CPU."""

JOB_SECONDS = 14
"""In the middle of those of the past with the same limit, so that futures lie on both sides."""


HOUR = 3600


def forecast_of(consortium: Consortium, job: int) -> ForecastRow | None:
    with consortium.reading() as view:
        return view.forecasts.of_job(job)


def await_reason(consortium: Consortium, job: int, waits_for: str) -> None:
    """Wait until a forecast knows for what the job waits: Slurm says so some time after sbatch."""

    def is_known() -> bool:
        told = forecast_of(consortium, job)
        return told is not None and told.waits_for == waits_for

    consortium.until(is_known, what=f"a forecast behind a {waits_for}")


def await_words(consortium: Consortium, job: int, words: str) -> None:
    """Wait until `explain` has them: a forecast may know for what a job waits before Slurm does."""
    consortium.until(
        lambda: words in consortium.succeed("explain", str(job)), what="Slurm to say why it waits"
    )


def test_a_job_is_told_that_it_passes_its_organizations_wide_one(consortium: Consortium) -> None:
    """First, for as long as no job has ended their limits say how long they last, not chance."""
    cluster = consortium.cluster
    consortium.configure()
    with consortium.daemon() as daemon:
        long = cluster.submit("alpha", HOUR, time=120)  # minutes
        first = cluster.submit("alpha", HOUR, processors=ALL_CPUS - 1, time=11)
        consortium.await_start(first)
        wide = cluster.submit("alpha", 1, processors=ALL_CPUS, time=1)
        small = cluster.submit("alpha", HOUR, time=11)

        def passes() -> bool:
            told, other = forecast_of(consortium, small), forecast_of(consortium, wide)
            return told is not None and other is not None and told.late < other.early

        consortium.until(passes, what="a forecast")
        consortium.cancel(first)
        consortium.await_start(small)
        consortium.cancel(long, wide, small)
        assert daemon.end() == 0


def test_a_job_starts_within_the_interval_that_was_told(consortium: Consortium) -> None:
    cluster = consortium.cluster
    consortium.configure()
    configured, socket = consortium.config_file.read_text(), consortium.directory / "socket"
    with_socket = configured.replace("[service]", f'[service]\nsocket = "{socket}"')
    consortium.config_file.write_text(with_socket)

    with consortium.daemon() as daemon:
        for seconds in (*LENGTHS, LENGTHS[0]):  # the last one waits, so that the worker is there
            cluster.submit("alpha", seconds)
        consortium.until(lambda: not cluster.run("squeue", "-h"), what="the past to end")
        consortium.await_settled()
        consortium.await_cycles()  # the ledger knows the past
        jobs = [cluster.submit("alpha", JOB_SECONDS, processors=ALL_CPUS) for _ in range(4)]
        consortium.until(lambda: forecast_of(consortium, jobs[3]) is not None, what="a forecast")
        third = (*("--time", "10", "--processors", str(ALL_CPUS)), "--partition", "all", "-A")
        before = json.loads(consortium.succeed("explain", "--what-if", *third, "alpha", "--json"))
        last = cluster.submit("alpha", JOB_SECONDS, processors=ALL_CPUS)
        behind = cluster.submit("alpha", 1, dependency=f"afterany:{last}")
        jobs += [last, behind]
        consortium.until(lambda: forecast_of(consortium, behind) is not None, what="a forecast")
        told = json.loads(consortium.succeed("explain", str(last), "--json"))["start"]
        assert "It probably starts " in consortium.succeed("explain", str(last))
        assert told["waits_for"] in {"turn", "processors"}  # if the one before has just started
        assert told["within_hour"] == 1
        assert told["early"] <= told["median"] <= told["late"]
        dependent = json.loads(consortium.succeed("explain", str(behind), "--json"))["start"]
        assert dependent["waits_for"] == "dependency"
        assert told["median"] < dependent["median"]
        assert consortium.starts(jobs) == jobs
        rows = consortium.accounted("JobIDRaw", "Start")
        begun = {int(job): int(start) for job, start in rows if start.isdigit() and job.isdigit()}
        for found in (told, before["start"]):
            assert found["early"] <= begun[last] <= found["late"], (found, begun)
        assert dependent["early"] <= begun[behind] <= dependent["late"], (dependent, begun)
        judged: dict[int, int] = {}

        def is_judged() -> bool:
            rows = json.loads(consortium.succeed("history", "--forecasts", "--json"))
            judged.update({row["job_id"]: row["start"] for row in rows})
            return last in judged

        consortium.until(is_judged, what="what was told to be judged")
        assert judged[last] == begun[last]
        assert json.loads(consortium.succeed("status", "--json"))["forecasts"]
        published = "shapleyprio_forecast_coverage_ratio{"
        consortium.until(lambda: published in consortium.metrics(), what="the metrics")
        assert daemon.end() == 0


def test_a_job_that_may_run_into_a_maintenance_starts_after_it(consortium: Consortium) -> None:
    cluster = consortium.cluster
    consortium.configure()
    begin = (int(time.time()) // 60 + 60) * 60
    span = [
        time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(second))
        for second in (begin, begin + HOUR)
    ]
    when = (f"StartTime={span[0]}", f"EndTime={span[1]}", "Users=root", "Flags=MAINT")
    cluster.run("scontrol", "create", "reservation", "ReservationName=works", "Nodes=ALL", *when)
    with consortium.daemon() as daemon:
        job = cluster.submit("alpha", 1, time=300)  # minutes
        await_reason(consortium, job, "reservation")
        await_words(consortium, job, "a maintenance begins within its time limit, or has begun.")
        start = json.loads(consortium.succeed("explain", str(job), "--json"))["start"]
        assert (start["waits_for"], start["within_hour"]) == ("reservation", 0)
        assert {start[name] for name in ("early", "median", "late")} == {begin + HOUR}
        assert daemon.end() == 0
    cluster.run("scontrol", "delete", "ReservationName=works")


def test_a_job_that_meets_a_limit_starts_when_one_that_shares_it_ends(
    consortium: Consortium,
) -> None:
    cluster = consortium.cluster
    consortium.configure()
    cluster.run("sacctmgr", "-i", "modify", "account", "alpha", "set", "GrpJobs=1")
    with consortium.daemon() as daemon:
        running = cluster.submit("alpha", HOUR)
        consortium.await_start(running)
        job, array = cluster.submit("alpha", 1), cluster.submit("alpha", 1, array="0-1")
        behind = cluster.submit("alpha", 1, dependency=f"afterany:{array}")
        for one, reason in ((job, "limit"), (array, "limit"), (behind, "dependency")):
            await_reason(consortium, one, reason)
        with consortium.reading() as view:
            told = [view.forecasts.of_job(one) for one in (job, array, behind)]
        found = [(row.waits_for, row.median) for row in told if row is not None]
        assert [waits_for for waits_for, _ in found] == ["limit", "limit", "dependency"]
        medians = [median for _, median in found]
        assert medians == sorted(set(medians))
        words = "as many jobs run as a limit allows, so one of them has to end first."
        await_words(consortium, job, words)
        consortium.cancel(running, job, array, behind)
        assert daemon.end() == 0
    cluster.run("sacctmgr", "-i", "modify", "account", "alpha", "set", "GrpJobs=-1")
