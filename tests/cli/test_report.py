"""`shapleyprio report`: a month out of the store, for those who decide."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pytest

from shapleyprio.cli.options.types import Month, month_before
from shapleyprio.common.wording import clock_time
from shapleyprio.fairness.tenure import Tenure
from shapleyprio.store import AllocatedRun, PauseRow, SteeringRow
from tests.cli.conftest import CommandLine
from tests.daemon.consortium import NAME, PHYSICS
from tests.daemon.drift.conftest import PROCESSORS, run
from tests.store.examples import BEGIN, exception, standing, watermark, work_after_end

DAY = 86_400
MONTH = "2023-11"


def fill(shell: CommandLine, *runs: AllocatedRun, opened: int, until: int = 20 * DAY) -> None:
    """Stores runs, and that all from `opened` to `until` is known, in seconds from BEGIN."""
    from shapleyprio.store import Store

    with Store.open(shell.url, create=True) as store, store.cluster(NAME).transaction() as rows:
        rows.ledger.save_watermark(
            watermark(
                opened=BEGIN + opened, pruned_until=BEGIN + opened, observed_until=BEGIN + until
            )
        )
        rows.runs.put(runs)
        rows.history.save_standings(
            [
                replace(standing(1, name, BEGIN), processors=processors)
                for name, processors in PROCESSORS.items()
            ]
        )


def flood(first: int, begin: int) -> list[AllocatedRun]:
    """Biology has both processors for a day, and physics waits for its own that long."""
    return [
        run(first, "biology", begin, begin + DAY, submit=begin),
        run(first + 1, "biology", begin, begin + DAY, submit=begin, owner="physics"),
        run(first + 2, "physics", begin + DAY, begin + 2 * DAY, submit=begin, owner="physics"),
    ]


def pages(shell: CommandLine, *arguments: str) -> tuple[str, str, Path]:
    """What is printed, what the page says, and the directory."""
    directory = shell.folder / "reports"
    result = shell.run("report", "--output", str(directory), *arguments)
    assert result.exit_code == 0, result.output
    text = (directory / f"{NAME}-{MONTH}.html").read_text()
    return result.stdout, unescape(text.split("<script")[0]), directory


def test_whose_jobs_went_on_after_their_ends_most_is_named(shell: CommandLine) -> None:
    from shapleyprio.store import Store

    fill(shell, *flood(1, 0), opened=-90 * DAY)
    assert "continue after their end" not in pages(shell, "--month", MONTH)[1]
    row = work_after_end(organization="biology", end=BEGIN + DAY, processor_seconds=7200)
    with Store.open(shell.url) as store, store.cluster(NAME).transaction() as rows:
        rows.runs.save_work_after_end([row], asked_until=BEGIN + DAY)
    page = pages(shell, "--month", MONTH)[1]
    assert (
        "Ask user eve of biology why jobs continue after their end: 2 processor-hours of 1 job"
        in page
    )


def test_a_month_is_reported_with_the_month_before(shell: CommandLine) -> None:
    fill(shell, *flood(1, 0), *flood(4, -25 * DAY), opened=-90 * DAY)
    printed, page, directory = pages(shell, "--month", MONTH)
    assert f"How fair was November 2023? {NAME}" in page
    assert "released from 2023-11-01 00:00 to 2023-12-01 00:00 UTC" in page
    assert "physics came off worst: it was 8 h late" in page
    assert "Against the period before" in page
    assert "released from 2023-10-01 00:00 to 2023-11-01 00:00 UTC" in page
    assert re.search(r"<td>physics</td><td>8 h late</td><td>8 h late</td>", page)
    assert "go on from what ran and waited when the period began" in page
    assert f"--month {MONTH} --output" in page
    assert f"{NAME}, 2023-11-01 00:00 to 2023-12-01 00:00 UTC:\n" in printed
    assert "physics came off worst" in printed
    assert printed.splitlines()[2:] == [
        str(directory / f"{NAME}-{MONTH}.{ending}") for ending in ("html", "json")
    ]
    exact = json.loads((directory / f"{NAME}-{MONTH}.json").read_text())
    places = {(row["organization"], row["partition"]): row for row in exact["waits"]}
    (place,) = {place for place in places if place[0] == "physics"}
    started = places[place]["started"]
    assert started > 0
    assert f"<td>physics</td><td>{place[1]}</td><td>{started}</td>" in page.replace(
        ' class="n"', ""
    )
    periods = exact["periods"]
    assert sum(each["organizations"][1]["used"] for each in periods) == 2 * DAY
    assert len(periods) == 30


def test_a_month_names_what_went_first_and_what_that_cost_the_others(shell: CommandLine) -> None:
    from shapleyprio.store import Store

    fill(shell, *flood(1, 0), opened=-90 * DAY)
    row = exception(3, reason="a <deadline>", before_all=True)
    steered = SteeringRow(since=BEGIN - DAY, rule="shapley", chosen="shapley", channel="nice")
    with Store.open(shell.url) as store, store.cluster(NAME).transaction() as rows:
        rows.history.note_steering(steered)
        for one in (
            row,
            replace(row, since=BEGIN - 60 * DAY),
            replace(row, since=BEGIN + 60 * DAY),
        ):
            rows.orders.begin_exception(one)
            rows.orders.note_passed(one, {"biology": 4, "": 1})
            rows.orders.end_exception(3, one.since + DAY, "the job started")
        pause = PauseRow(since=BEGIN - DAY, user="bob", reason="a <move>", keep=True)
        rows.orders.put_pauses(
            [pause, replace(pause, since=BEGIN - 60 * DAY, until=BEGIN - 50 * DAY)]
        )
    printed, page, _ = pages(shell, "--month", MONTH)
    said = (
        f"Exception: job 3 of physics before all others since {clock_time(BEGIN)}, by ann "
        "(a <deadline>); it passed 4 of biology, 1 of nobody, and used 24 processor-hours"
    )
    assert printed.count("Exception: ") == 1
    paused = f"Pause: since {clock_time(BEGIN - DAY)} on, by bob (a <move>); priorities stayed"
    assert printed.count("Pause: ") == 1
    for text in (said, paused):
        assert text in printed
        assert text in page
    assert "a <deadline>" not in (shell.folder / "reports" / f"{NAME}-{MONTH}.html").read_text()


def test_a_month_names_the_rule_that_steered_and_what_changed_hands(shell: CommandLine) -> None:
    from shapleyprio.store import Store

    fill(shell, *flood(1, 0), opened=-90 * DAY)
    steered = SteeringRow(
        since=BEGIN - 40 * DAY, rule="shapley", chosen="shapley", channel="site_factor"
    )
    moved = BEGIN + 3 * DAY
    tenures = [
        Tenure("node", "b3", "physics", None, moved),
        Tenure("node", "b3", "biology", moved, None),
    ]
    with Store.open(shell.url) as store, store.cluster(NAME).transaction() as rows:
        rows.history.note_steering(steered)
        rows.ledger.save_tenures({("node", "b3"): tenures})
    printed, page, _ = pages(shell, "--month", MONTH)
    for said in (
        f"the rule shapley by the channel site_factor since {clock_time(steered.since)}",
        f"Changes of ownership: node b3: physics → biology at {clock_time(moved)}",
    ):
        assert said in page
        assert said in printed
    assert "Leave the order of the queue to the rule shapley, which has decided it since" in page
    assert "directcontr" not in page
    first_page = page.split("<body")[1].split('<div class="controls">')[0]
    assert not set("φψ") & set(first_page)


def test_a_month_is_the_same_after_somebody_left_whose_nodes_another_one_has_now(
    shell: CommandLine,
) -> None:
    from shapleyprio.store import Store

    fill(shell, *flood(1, 0), run(4, "physics", -25 * DAY, -24 * DAY), opened=-90 * DAY)
    figures = []
    for _ in range(2):
        _, page, directory = pages(shell, "--month", MONTH)
        assert re.search(r"<td>physics</td><td>on time</td><td>8 h late</td>", page)
        assert re.search(r"<td>biology</td><td>[^<]+</td><td>8 h ahead</td>", page)
        exact = json.loads((directory / f"{NAME}-{MONTH}.json").read_text())
        figures.append({key: exact[key] for key in ("organizations", "left_out", "carried")})
        figures[-1]["drifts"] = [
            [(one["name"], one["drift"]) for one in policy["organizations"]]
            for policy in exact["policies"]
        ]
        shell.write(shell.file, PHYSICS)
        with Store.open(shell.url) as store, store.cluster(NAME).transaction() as rows:
            heir = replace(standing(2, "physics", BEGIN + 18 * DAY), processors=2)
            rows.history.save_standings([heir])
    assert {one["name"] for one in figures[0]["organizations"]} == {"physics", "biology"}
    assert figures[0] == figures[1]


def test_what_the_store_lacks_of_a_month_is_named(shell: CommandLine) -> None:
    fill(shell, *flood(1, 0), opened=-3 * DAY, until=10 * DAY)
    printed, page, _ = pages(shell, "--month", MONTH)
    lacks = "Of this month the store holds only 2023-11-11 22:13 to 2023-11-24 22:13 UTC."
    assert lacks in page
    assert lacks in printed
    assert "Against the period before" not in page
    assert "does not hold the period before" in page


def test_a_month_of_which_nothing_is_stored_is_refused(shell: CommandLine) -> None:
    fill(shell, *flood(1, 0), opened=-3 * DAY)
    result = shell.run("report", "--month", "2023-10", "--output", str(shell.folder / "r"))
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "holds nothing from 2023-10; it holds work from 2023-11-11 22:13" in line
    assert not (shell.folder / "r").exists()


@pytest.mark.parametrize(
    "month", ["2023-13", "november", "2023-1", "1969-12", "2106-01", "9999-12"]
)
def test_what_is_no_month_is_refused(shell: CommandLine, month: str) -> None:
    result = shell.run("report", "--month", month, "--output", "r")
    assert result.exit_code == 2
    assert "is not a month from 1970 to 2105; write for instance 2026-10" in " ".join(
        result.stderr.split()
    )


def test_a_directory_that_cannot_be_made_is_one_line(shell: CommandLine) -> None:
    fill(shell, *flood(1, 0), opened=-3 * DAY)
    result = shell.run("report", "--month", MONTH, "--output", "/proc/reports")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "/proc/reports: cannot be created" in line


def test_months_begin_and_end_in_local_time_and_january_follows_december() -> None:
    assert Month(2023, 12).following == Month(2024, 1)
    assert Month(2024, 1).previous == Month(2023, 12)
    assert Month(2023, 11).begin == datetime(2023, 11, 1, tzinfo=UTC).timestamp()
    assert Month(2023, 11).end == datetime(2023, 12, 1, tzinfo=UTC).timestamp()
    assert str(month_before(Month(2024, 1).begin)) == "2023-12"
    assert str(month_before(Month(2024, 1).begin - 1)) == "2023-11"
