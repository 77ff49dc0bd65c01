"""What is said of an arm, from what was seen of it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from shapleyprio.common.errors import OutputError
from shapleyprio.fairness.runs import JobRecord, RunKey
from shapleyprio.lab.experiment.keeping import KeptResults
from shapleyprio.lab.rehearsal.answer import Answer, answer_of
from shapleyprio.lab.rehearsal.arms import ARMS, changed
from shapleyprio.lab.rehearsal.jobs import Days, SiteJobs
from shapleyprio.lab.rehearsal.report import answer_as_json, write_waits
from shapleyprio.lab.rehearsal.running import Kept, named_runs
from shapleyprio.lab.trial.report import executed_by
from shapleyprio.lab.trial.running import Trace
from shapleyprio.lab.trial.steering import CycleCounts
from tests.lab.rehearsal.test_jobs import ELEVEN, TEN, folder, jobs

__all__ = ["folder", "jobs"]  # fixtures

BEGIN = 5_000_000
NODES = {0: "a1", 1: "a2", 2: "b1", 3: "b2"}
DAYS = Days(begin=TEN, since=TEN + 300, until=ELEVEN)


def record(job: int, *, submit: int, start: int | None, end: int | None, wide: int) -> JobRecord:
    """Of job number 101 and so on; seconds count from the window's begin."""
    return JobRecord(
        job_id=101 + job,
        label=str(101 + job),
        account=f"u{job + 1}",
        user="root",
        partition="long",
        submit=BEGIN + submit,
        eligible=BEGIN + submit,
        start=None if start is None else BEGIN + start,
        end=None if end is None else BEGIN + end,
        limit=600,
        elapsed=0 if start is None or end is None else end - start,
        suspended=0,
        state="PENDING" if start is None else "COMPLETED",
        nodes=() if start is None else (NODES[job],),
        processors=0 if start is None else wide,
    )


def trace(*, late: int = 0, name: str = "today") -> Trace:
    """Jobs 2, 4, 3 and 5 of the log: the second waits 3 s, the last never starts."""
    return Trace(
        arm=ARMS[name],
        slurm_version="slurm 22.05",
        begin=BEGIN,
        submitted={101 + job: [job] for job in range(4)},
        records=[
            record(0, submit=60, start=65, end=665, wide=4),
            record(1, submit=600 + late, start=603 + late, end=905 + late, wide=2),
            record(2, submit=0, start=0, end=1205, wide=2),
            record(3, submit=900 + late, start=None, end=None, wide=1),
        ],
        held={RunKey(101, BEGIN + 60, BEGIN + 65): {"a1": 4}},
        refused={},
        unreadable=0,
        cycles=None,
        start_errors=None,
        real_seconds=1.0,
    )


@pytest.fixture
def answer(jobs: SiteJobs) -> Answer:
    return answer_of(jobs, [[trace()]], seed=0, cores=1)


def test_waits_of_jobs_that_count_stand_beside_what_happened(answer: Answer) -> None:
    assert [run.name for run in answer.runs] == ["recorded", "today"]
    assert answer.runs[0].waits.tolist() == [600, 3600 - 900]
    assert answer.runs[1].waits.tolist() == [3, 3600 - 900]
    assert answer.all_jobs.means == [1650, 1351.5]
    assert answer.trust == 1351.5 / 1650 - 1


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("organization", ["Science & Co", "nobody"]),
        ("partition", ["long", "short"]),
        ("size", ["1 processor", "2 to 15"]),
        ("account", ["guests", "physics"]),
    ],
)
def test_waits_are_shown_by_group(answer: Answer, group: str, names: list[str]) -> None:
    rows = answer.rows(group)
    assert [row.name for row in rows] == names
    assert sum(row.jobs for row in rows) == answer.all_jobs.jobs == 2
    assert {tuple(row.means) for row in rows} == {(600, 3), (2700, 2700)}


def test_arms_are_held_against_ref(answer: Answer) -> None:
    assert answer.fair is not None
    assert all(run.result.unfairness is not None for run in answer.runs)


def test_delays_are_measured_and_make_an_arm_doubtful(jobs: SiteJobs, answer: Answer) -> None:
    delays = answer.runs[1].delays
    assert delays is not None
    assert (delays.submission, delays.start, delays.prompt, delays.length) == (0, 3, 1, 2)
    assert answer.runs[1].faults == []
    late = answer_of(jobs, [[trace(late=16)]], seed=0, cores=1).runs[1]
    assert late.faults == ["today: the clock was too fast for this machine"]


def test_where_jobs_are_preempted_it_is_no_fault_that_they_run_again(jobs: SiteJobs) -> None:
    again = replace(record(0, submit=900, start=950, end=1550, wide=4), state="PREEMPTED")
    seen = trace()
    preempted = replace(seen, records=[*seen.records, again])
    assert jobs.plan.preempts(ARMS["today"])
    assert answer_of(jobs, [[preempted]], seed=0, cores=1).runs[1].faults == []
    executed = executed_by(jobs.plan, preempted, seed=0)
    assert executed.faults(preempts=False) == [
        "1 jobs ran more than once",
        "1 jobs are PREEMPTED",
    ]


def test_several_runs_of_an_arm_are_averaged_and_their_spread_is_shown(jobs: SiteJobs) -> None:
    from shapleyprio.lab.cli.rehearsing import waits_table
    from shapleyprio.lab.rehearsal.report import caveats

    answer = answer_of(jobs, [[trace(), trace(late=10)]], seed=0, cores=1)
    (today,) = answer.runs[1:]
    assert [each.tolist() for each in today.each] == [[3, 2700], [13, 2700]]
    assert today.waits.tolist() == [8, 2700]
    assert answer.all_jobs.each[1] == [1351.5, 1356.5]
    assert today.delays is not None
    assert (today.delays.submission, today.delays.prompt) == (10, 1)
    assert "Mean waits from run to run: today 23 min to 23 min" in caveats(answer)[1]
    console = Console(width=200, file=io.StringIO())
    console.print(waits_table(answer, "partition"))
    assert isinstance(console.file, io.StringIO)
    assert "8 s [3 s to 13 s]" in console.file.getvalue()


def test_what_is_kept_of_an_arm_is_what_was_seen(jobs: SiteJobs, tmp_path: Path) -> None:
    kept = Kept(results=KeptResults(tmp_path / "kept", asked_as="rehearsal"), inputs={"speed": 50})
    kept.results.make()
    today, steered = ARMS["today"], ARMS["directcontr"]
    seen = trace(name="directcontr")
    seen = replace(seen, cycles=CycleCounts(outcomes={"ok": 3}, fallen_back=0, written=2))
    kept.keep("directcontr", seen, steered)
    found = kept.traces(named_runs([today, steered], 2))
    assert set(found) == {"directcontr"}
    again = found["directcontr"]
    assert (
        answer_of(jobs, [[again]], seed=0, cores=1).all_jobs
        == answer_of(jobs, [[seen]], seed=0, cores=1).all_jobs
    )
    assert (again.records, again.held, again.cycles) == (seen.records, seen.held, seen.cycles)


def test_an_arm_of_other_inputs_or_a_broken_file_is_not_taken(tmp_path: Path) -> None:
    results = KeptResults(tmp_path / "kept", asked_as="rehearsal")
    results.make()
    Kept(results=results, inputs={"speed": 50}).keep("today", trace(), ARMS["today"])
    with pytest.raises(OutputError, match="other parameters"):
        Kept(results=results, inputs={"speed": 60}).traces(named_runs([ARMS["today"]], 1))
    other = changed(1, "PriorityWeightAge=1")
    Kept(results=results, inputs={}).keep(other.name, trace(), other)
    with pytest.raises(OutputError, match="other parameters"):
        Kept(results=results, inputs={}).traces({"today-1": changed(1, "PriorityWeightAge=2")})
    file = results.directory / "today.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "records": [[1]]}))
    with pytest.raises(OutputError, match="is not a kept arm"):
        Kept(results=results, inputs={"speed": 50}).traces(named_runs([ARMS["today"]], 1))


def test_machines_get_everything_and_a_row_for_each_job(answer: Answer) -> None:
    report = json.loads(json.dumps(answer_as_json(answer, DAYS, speed=50)))
    assert [run["run"] for run in report["runs"]] == ["recorded", "today"]
    assert report["runs"][1]["mean_wait"] == 1351.5
    assert report["waits"]["size"][0] == {
        "name": "1 processor",
        "jobs": 1,
        "mean_wait": {"recorded": 2700, "today": 2700},
        "each": {"recorded": [2700], "today": [2700]},
    }
    assert report["site"]["left_out"]["TopologyPlugin"]
    file = io.StringIO()
    write_waits(file, answer)
    first, second = csv.DictReader(io.StringIO(file.getvalue()))
    assert (first["job"], first["user"], first["release"]) == ("4", "ben", str(TEN + 600))
    assert (first["wait recorded"], first["wait today"]) == ("600", "3")
    assert second["job"] == "5"


def test_the_page_says_all_that_a_board_asks(answer: Answer) -> None:
    from shapleyprio.lab.rehearsal.report import rehearsal_page
    from shapleyprio.reports.html.writing import render

    page = rehearsal_page(answer, days=DAYS, speed=50, command="shapleyprio rehearse")
    assert page.verdict == "Jobs waited 28 min in what happened, 23 min under today on average."
    assert page.front is not None
    assert "−18.1% compared with what really happened" in page.front.caveats[0]
    titles = [section.title for section in page.sections]
    assert {"How long did jobs wait?", "Who waited how long?", "Was the clock slow enough?"} <= set(
        titles
    )
    text = render(page)
    assert "Science &amp; Co" in text
    assert "TopologyPlugin" in text
