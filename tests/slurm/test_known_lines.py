"""Lines that were read before say what they would say if they were read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.accounting import FIELDS, KnownRecords, accounting_line
from shapleyprio.slurm.text.queue import Factors
from shapleyprio.slurm.text.squeue import OWN_SEPARATOR, ListedAgainError, WaitingRecords
from shapleyprio.slurm.text.values import SEPARATOR

RECORDED = Path(__file__).parent / "recorded"
RELEASES = sorted(folder.name for folder in RECORDED.iterdir() if folder.is_dir())


def lines_of(name: str, *releases: str) -> list[str]:
    return [
        line
        for release in releases or RELEASES
        for line in (RECORDED / release / f"{name}.txt").read_text().splitlines()
    ]


WAITING = lines_of("squeue_tasks", RELEASES[-1])


def read(known: KnownRecords, lines: list[str], delimiter: str = "#") -> list[object]:
    return list(known.read([line.replace(SEPARATOR, delimiter) for line in lines], delimiter))


def with_state(line: str, state: str) -> str:
    fields = line.split(SEPARATOR)
    fields[FIELDS.index("State")] = state
    return SEPARATOR.join(fields)


def with_elapsed(line: str, seconds: int) -> str:
    fields = line.split(SEPARATOR)
    fields[FIELDS.index("ElapsedRaw")] = str(seconds)
    return SEPARATOR.join(fields)


def started(lines: list[str]) -> list[JobRecord | Malformed]:
    """What lines of sacct say that are not of jobs that wait."""
    said = [accounting_line(line, "cpu", SEPARATOR) for line in lines]
    return [one for one in said if not isinstance(one, JobRecord) or one.state != "PENDING"]


def test_a_line_that_is_printed_again_gives_the_same_record() -> None:
    known, lines = KnownRecords("cpu"), lines_of("sacct")
    first = read(known, lines)
    again = read(known, lines, delimiter="another")
    assert first == started(lines)
    assert len(first) < len(lines)
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_a_job_that_waits_is_heard_of_when_it_has_started() -> None:
    known, line = KnownRecords("cpu"), with_state(lines_of("sacct")[0], "PENDING")
    others = [with_state(other, "PENDING") for other in lines_of("sacct")[1:]]
    for answer in ([line, *others], [line], [], [line, line], others):
        assert read(known, answer) == []
    (record,) = read(known, [with_state(line, "COMPLETED")])
    assert isinstance(record, JobRecord)
    assert record.state == "COMPLETED"
    assert read(known, [line, *others]) == []


def test_only_of_jobs_that_run_the_executed_seconds_do_not_matter() -> None:
    known, lines = KnownRecords("cpu"), lines_of("sacct")
    first = read(known, lines)
    later = read(known, [with_elapsed(line, 4321) for line in lines])
    for one, other in zip(first, later, strict=True):
        assert isinstance(one, JobRecord)
        assert isinstance(other, JobRecord)
        assert (one is other) is (one.state == "RUNNING")
        assert one is other or other.elapsed == 4321


def test_a_line_that_was_not_printed_is_forgotten() -> None:
    known, lines = KnownRecords("cpu"), lines_of("sacct")[:1]
    (first,) = read(known, lines)
    assert read(known, []) == []
    (later,) = read(known, lines)
    assert later == first
    assert later is not first


@pytest.mark.parametrize("field", ["Account", "NodeList"])
def test_a_text_with_the_separator_in_it_is_taken_for_no_other_line(field: str) -> None:
    known = KnownRecords("cpu")
    line = lines_of("sacct")[0]
    read(known, [line])
    forged = line.split(SEPARATOR)
    forged[FIELDS.index(field)] += SEPARATOR
    text = "#".join(forged)
    assert list(known.read([text], "#")) == [accounting_line(text, "cpu", "#")]


@given(
    st.lists(st.sampled_from(WAITING)),
    st.lists(st.sampled_from(WAITING)),
    st.dictionaries(st.integers(1, 20), st.builds(Factors, st.integers(0, 2), st.integers(0, 2))),
)
def test_a_queue_is_the_same_as_without_knowing_the_last_one(
    earlier: list[str], lines: list[str], factors: dict[int, Factors]
) -> None:
    before = WaitingRecords([line.replace(SEPARATOR, "#") for line in earlier], "#")
    before.queue()
    later = [line.replace(SEPARATOR, "%%") for line in lines]
    afresh = WaitingRecords(later, "%%")
    try:
        knowing = WaitingRecords(later, "%%", before.known)
    except ListedAgainError:
        assert len({line.partition(OWN_SEPARATOR)[0] for line in lines}) < len(lines)
        return
    assert knowing.has_arrays() == afresh.has_arrays()
    found, expected = knowing.queue(factors), afresh.queue(factors)
    assert found.jobs == expected.jobs
    assert sorted(found.malformed, key=repr) == sorted(expected.malformed, key=repr)
    assert found.more_malformed == expected.more_malformed


def test_a_queue_of_other_jobs_forgets_the_first() -> None:
    records = WaitingRecords([line.replace(SEPARATOR, "#") for line in WAITING], "#")
    records.queue()
    assert records.known
    empty = WaitingRecords([], "#", records.known)
    assert not empty.queue().jobs
    assert not empty.known


def test_a_job_that_is_listed_as_before_is_the_same_object() -> None:
    factors = {job: Factors(site_factor=7, association=0) for job in range(100)}
    first = WaitingRecords([line.replace(SEPARATOR, "#") for line in WAITING], "#")
    jobs = {job.label: job for job in first.queue(factors).jobs}
    second = WaitingRecords([line.replace(SEPARATOR, "%") for line in WAITING], "%", first.known)
    same = [job for job in second.queue(factors).jobs if jobs[job.label] is job]
    assert len(same) == len([job for job in jobs.values() if job.tasks == 1]) > 5
