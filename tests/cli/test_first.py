"""`shapleyprio first`, and who is told of it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_pause import cycle
from tests.daemon.consortium import FIRST

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine


@pytest.fixture
def queue(steered: CommandLine) -> CommandLine:
    """2 and 3 of physics and 4 of biology wait."""
    for account in ("physics", "biology"):
        steered.slurm.submit(account, processing_time=9)
    cycle(steered)
    return steered


def first(shell: CommandLine) -> int:
    return max(shell.slurm.jobs(), key=lambda job: job.priority).job_id


def test_everybody_is_told_which_job_goes_first_since_when_and_why(queue: CommandLine) -> None:
    result = queue.run("first", "3", "--reason", "a\ndeadline")
    assert (result.exit_code, result.stdout) == (
        0,
        "With the next cycle job 3 goes before all others of physics that are pending.\n",
    )
    assert "a job goes first by an exception" in cycle(queue)
    assert queue.slurm.job(3).priority > queue.slurm.job(2).priority
    sentence = "Job 3 goes before all others of physics since 2027-01-15 "
    status = queue.run("status").stdout
    assert sentence in status
    assert re.search(r"ordered by \S.*: a deadline\.\n", status)
    explained = queue.run("explain", "3").stdout
    assert "\nIt goes before all others of physics since 2027-01-15 " in explained
    assert "But in Slurm" not in explained
    other = queue.run("explain", "2").stdout
    assert "1 job goes first by exceptions or guarantees" in other
    for words in (("status",), ("explain", "2"), ("explain", "--user", "user")):
        (row,) = json.loads(queue.run(*words, "--json").stdout)["exceptions"]
        assert (row["job"], row["reason"], row["until"]) == ("3", "a deadline", None)
    found = json.loads(queue.run("explain", "3", "--json").stdout)
    assert (found["exception"], found["put_ahead"]) == (row, 0)
    changes = queue.run("changes", "--since", "2027-01-01").stdout
    assert re.search("exception .* put job 3 before all others of physics: a deadline", changes)


def test_it_may_go_before_all_until_a_time_and_be_undone(queue: CommandLine) -> None:
    until = datetime.fromtimestamp(queue.slurm.now + 3600, UTC).isoformat()
    owed = first(queue)
    job = "4" if owed != 4 else "2"
    words = ("first", job, "--reason", "x", "--before-all", "--until", until)
    result = queue.run(*words)
    assert (
        result.stdout == f"With the next cycle job {job} goes before all others that are pending.\n"
    )
    cycle(queue)
    assert first(queue) == int(job)
    assert f"Job {job} goes before all others since " in queue.run("status").stdout
    assert json.loads(queue.run("status", "--json").stdout)["exceptions"][0]["until"]
    result = queue.run("first", job, "--undo")
    assert (
        result.exit_code,
        result.stdout.startswith(f"Job {job} no longer goes first, as ordered at "),
    ) == (0, True)
    cycle(queue)
    assert first(queue) == owed
    assert queue.slurm.job(owed).site_factor == FIRST
    assert "goes before" not in queue.run("status").stdout


def test_a_heterogeneous_job_is_named_in_one_line(queue: CommandLine) -> None:
    queue.slurm.names = {3: "3+0", 4: "3+1"}
    result = queue.run("first", "3", "--reason", "x")
    assert (result.exit_code, result.stdout) == (
        0,
        "With the next cycle job 3 with its 2 components goes before all others of physics and all"
        " others of biology that are pending.\n",
    )
    status = queue.run("status").stdout
    assert "Job 3+0 goes before all others of physics since" in status
    assert "Job 3+1 goes before all others of biology since" in status
    result = queue.run("first", "3", "--undo")
    assert result.exit_code == 0
    assert result.stdout.startswith("Job 3 with its 2 components no longer goes first, as ordered")
    assert "goes before" not in queue.run("status").stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("9", "--reason", "x"), "no job 9 is pending; see `squeue -j 9`"),
        (("1", "--reason", "x"), "job 1 is not pending: it has started"),
        (("2", "--undo"), "job 2 does not go first by an exception; `status` lists those that do"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    queue: CommandLine, words: tuple[str, ...], line: str
) -> None:
    result = queue.run("first", *words)
    assert (result.exit_code, result.stderr) == (2, f"shapleyprio: {line}\n")


def test_a_second_order_and_odd_options_are_refused(queue: CommandLine) -> None:
    assert queue.run("first", "2", "--reason", "x").exit_code == 0
    result = queue.run("first", "2", "--reason", "y", "--before-all")
    assert result.exit_code == 2
    assert result.stderr.startswith("shapleyprio: job 2 goes first since ")
    for words in (
        ("2",),
        ("2", "--undo", "--before-all"),
        ("3", "--reason", " "),
        ("3", "--reason", "x", "--until", "2020-01-01"),
    ):
        assert queue.run("first", *words).exit_code == 2


@pytest.mark.parametrize("until", ["always", "9999-12-31", "9999-12-31T23:59:59Z"])
def test_an_end_that_is_no_date_or_too_late_is_refused(queue: CommandLine, until: str) -> None:
    result = queue.run("first", "2", "--reason", "x", "--until", until)
    assert result.exit_code == 2
    assert re.search("is not a date|is too late", result.stderr)
    assert "or always" not in result.stderr


def test_a_task_that_waits_within_its_array_is_not_said_to_be_missing(queue: CommandLine) -> None:
    array = queue.slurm.submit("physics", array=5, processing_time=9)
    queue.slurm.wait(10)
    result = queue.run("first", f"{array}_2", "--reason", "x")
    assert result.exit_code == 2
    assert f"the tasks of {array}_[0-4] wait as one; name the whole array: {array}" in result.stderr


def test_during_a_pause_it_is_said_that_it_counts_afterwards(queue: CommandLine) -> None:
    queue.run("pause", "--reason", "an odd queue")
    result = queue.run("first", "3", "--reason", "x")
    assert result.stdout.startswith("Once steering is resumed job 3 goes before all others")


def test_after_a_rollback_it_is_said_first_that_the_rest_may_be_out_of_date(
    queue: CommandLine,
) -> None:
    queue.run("first", "3", "--reason", "x")
    cycle(queue)
    queue.run("rollback")
    status = queue.run("status").stdout
    assert status.index("What follows may be out of date.") < status.index("Job 3 goes before")


@pytest.mark.parametrize("keep", [False, True])
def test_during_a_pause_nothing_is_said_to_go_first_now(queue: CommandLine, *, keep: bool) -> None:
    queue.run("first", "3", "--reason", "x", "--before-all", "--until", "2027-12-31")
    cycle(queue)
    queue.run("pause", "--reason", "an odd queue", *(["--keep"] if keep else []))
    cycle(queue)
    until = r" until 2027-12-31 00:00:00, ordered by \S.* at 2027-01-15 .*: x\.\n"
    later = "Once steering is resumed {} goes before all others" + until
    assert re.search(later.format("job 3"), queue.run("status").stdout)
    explained = queue.run("explain", "3").stdout
    assert re.search(later.format("it"), explained)
    assert "and would give its jobs 200000 points" in explained
    other = queue.run("explain", "2").stdout
    for said in (explained, other, queue.run("explain", "--account", "physics").stdout):
        assert "go first" not in said
        assert "goes first" not in said
        assert "order of organizations" not in said
        assert " ahead (" not in said
    queue.run("resume")
    cycle(queue)
    assert "Job 3 goes before all others since" in queue.run("status").stdout
    assert "gives its jobs 200000 points" in queue.run("explain", "3").stdout
