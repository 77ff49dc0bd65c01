"""When a job starts, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.cli.shown.explanations import sentences_on_start
from shapleyprio.daemon.answering.explain_facts import Prospect
from shapleyprio.slurm.reasons import lack_of
from shapleyprio.store import LATER
from tests.daemon.consortium import NAME
from tests.daemon.forecasting.examples import forecast

if TYPE_CHECKING:
    from shapleyprio.store import ForecastRow
    from tests.cli.conftest import CommandLine

T = 1_800_000_000  # 2027-01-15 08:00 UTC


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def said(row: ForecastRow) -> str:
    return sentences_on_start(Prospect(forecast=row, waits_for=row.waits_for))[0]


def test_an_interval_and_its_middle_are_said_with_the_chance_of_an_hour() -> None:
    row = replace(forecast(1, T, 7200), within_hour=35)
    assert sentences_on_start(Prospect(forecast=row, waits_for="turn")) == [
        "It probably starts between 09:00 and 12:00, in half of all cases by 10:00.",
        "The chance that it does within an hour is 35%, as of 08:00; it waits for its turn.",
    ]
    next_one = Prospect(forecast=replace(row, waits_for="processors"), waits_for="processors")
    assert "it waits for processors." in sentences_on_start(next_one)[1]


def test_what_a_job_waits_for_that_lacks_more_than_its_turn_is_said() -> None:
    for waits_for, reason, said in (
        ("time", "BeginTime", "it waits for its begin time."),
        ("dependency", "Dependency", "it waits for another job."),
    ):
        row = forecast(1, T, 7200)
        prospect = Prospect(forecast=row, waits_for=waits_for, reason=reason)
        found = sentences_on_start(prospect)
        assert found[0].startswith("It probably starts between")
        assert found[1].endswith(f"as of 08:00; {said}")


def test_what_is_certain_open_or_far_is_said_so() -> None:
    row = forecast(1, T, 7200)
    certain = replace(row, early=row.median, late=row.median)
    assert said(certain) == "It probably starts at 10:00."
    assert said(replace(row, late=row.median + 86_400)) == (
        "It probably starts between 09:00 and 2027-01-16 10:00, in half of all cases by 10:00."
    )
    assert said(replace(row, late=LATER)) == (
        "It probably starts after 09:00, in half of all cases by 10:00."
    )
    never = "It probably does not start in the next four weeks."
    assert said(replace(row, median=LATER, late=LATER)) == never


def test_why_nothing_is_forecast_is_said_where_it_is_known() -> None:
    assert sentences_on_start(None) == []
    assert sentences_on_start(Prospect(forecast=None, waits_for="turn")) == []
    never = "so it starts only if either is changed"
    used_up = "what its account or QOS may use is used up"
    of_jobs = "as many jobs run as a limit allows, so one of them has to end first"
    of_parts = "running jobs have as much as a limit allows, so some of them have to end first"
    maintenance = "a maintenance begins within its time limit, or has begun"
    for reason, missing, words in (
        ("Dependency", "dependency", "it waits for another job"),
        ("DependencyNeverSatisfied", "other", "so it never starts"),
        ("AssocMaxWallDurationPerJobLimit", "limit", never),
        ("QOSMaxGRESPerNode", "limit", never),
        ("PartitionTimeLimit", "limit", never),
        ("AssocGrpCPUMinutesLimit", "limit", used_up),
        ("QOSGrpGRESMinutes", "limit", used_up),
        ("AssocGrpCPURunMinutesLimit", "limit", of_parts),
        ("QOSMaxCpuPerUserLimit", "limit", of_parts),
        ("MaxGRESPerAccount", "limit", of_parts),
        ("QOSMaxJobsPerUserLimit", "limit", of_jobs),
        ("AssocGrpJobsLimit", "limit", of_jobs),
        ("MaxJobsPerAccount", "limit", of_jobs),
        ("JobArrayTaskLimit", "limit", "as many tasks of its array run as its limit allows"),
        ("ReqNodeNotAvail, Reserved for maintenance", "reservation", maintenance),
        ("ReqNodeNotAvail, May be reserved for other job", "reservation", "for a reservation"),
        ("Reservation", "reservation", "it waits for a reservation"),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority"
            " partitions",
            "other",
            "reserved for jobs in higher priority partitions",
        ),
        ("JobHeldAdmin", "hold", "it is held"),
        ("QOSNotAllowed", "other", "it waits for more than its turn"),
    ):
        assert lack_of(reason).missing == missing
        prospect = Prospect(forecast=None, waits_for=missing, reason=reason)
        (line,) = sentences_on_start(prospect)
        assert line.startswith("Its start is not forecast: ")
        assert line.endswith(f"{words} ({reason}).")


def test_explain_and_status_say_it(shell: CommandLine) -> None:
    assert shell.run("daemon", "--once").exit_code == 0
    now = shell.slurm.now
    with shell.store() as store, store.cluster(NAME).transaction() as rows:
        rows.forecasts.save([forecast(2, now)], [forecast(2, now), forecast(77, now - 900)])
        rows.forecasts.note_starts({77: now - 800})
    for arguments in (["2"], ["--user", "user"]):
        result = shell.run("explain", *arguments)
        assert "It probably starts between " in result.stdout, result.output
    said = shell.run("status").stdout
    assert "Forecasts of starts in the last month: 0% of 1 interval held (80% should)" in said
    assert "half of the medians were off by more than 8.3 min up to 10 min ahead." in said
    assert shell.run("pause", "--reason", "x").exit_code == 0
    for arguments in (["2"], ["--user", "user"]):
        assert "Probably it starts" not in shell.run("explain", *arguments).stdout
