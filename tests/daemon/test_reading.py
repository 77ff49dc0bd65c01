"""What pools of one cluster share of what was read, and when it is read anew."""

from __future__ import annotations

import pytest

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.port import SlurmUnavailableError
from shapleyprio.slurm.remembering import LONGEST_SECONDS, SharedReading, Source
from tests.daemon.consortium import NOW, Cluster


@pytest.fixture
def slurm() -> Cluster:
    """One job has ended at NOW + 10, one at NOW + 100, one runs and one waits, without a record."""
    slurm = Cluster()
    for seconds in (10, 100, 10**6):
        slurm.submit("physics", processors=4, processing_time=seconds)
    slurm.submit("physics", processors=12, processing_time=10**6)
    slurm.wait(200)
    return slurm


def labels(source: Source, since: int, until: int) -> list[str]:
    return sorted(one.label for one in source.records(since, until) if isinstance(one, JobRecord))


def test_a_pool_that_is_behind_reads_for_those_that_are_not(slurm: Cluster) -> None:
    until = slurm.now
    found = {
        since: labels(slurm, since, until) for since in (NOW, NOW + 10, NOW + 11, NOW + 100, until)
    }
    assert [len(some) for some in found.values()] == [3, 3, 2, 2, 1]
    slurm.windows.clear()
    reading = SharedReading(slurm)
    for since, alone in found.items():
        assert labels(reading, since, until) == alone
    assert slurm.windows == [(NOW, until)]
    assert labels(reading, NOW - 1, until) == found[NOW]
    labels(reading, NOW, until - 1)
    assert slurm.windows == [(NOW, until), (NOW - 1, until), (NOW, until - 1)]


def test_an_answer_that_nobody_has_taken_in_whole_is_asked_for_again(slurm: Cluster) -> None:
    whole = labels(slurm, NOW, slurm.now)
    slurm.windows.clear()
    reading = SharedReading(slurm)
    next(reading.records(NOW, slurm.now))
    assert labels(reading, NOW, slurm.now) == whole
    assert len(slurm.windows) == 2


def test_a_question_that_failed_is_put_again(slurm: Cluster) -> None:
    reading = SharedReading(slurm)
    slurm.take_down("slurmctld")
    with pytest.raises(SlurmUnavailableError):
        reading.controller()
    slurm.bring_up("slurmctld")
    assert reading.controller() == slurm.controller()


def test_all_is_as_it_was_when_it_was_first_asked(slurm: Cluster) -> None:
    reading = SharedReading(slurm)
    begun, queue = reading.controller(), reading.pending()
    slurm.wait(10**7)
    assert reading.controller() is begun
    assert reading.pending() is queue
    assert slurm.pending().jobs != queue.jobs


def test_what_was_read_long_ago_is_old(slurm: Cluster) -> None:
    seconds = 5.0
    reading = SharedReading(slurm, clock=lambda: seconds)
    seconds += LONGEST_SECONDS
    assert not reading.is_old
    seconds += 1
    assert reading.is_old
