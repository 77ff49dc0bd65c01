"""Jobs that count for shorter than Slurm has called them eligible, as the store has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.store import KeptBack

if TYPE_CHECKING:
    from shapleyprio.store import Store

ROWS = [
    KeptBack(job_id=7, counts_since=None, kept_since=2**40),
    KeptBack(job_id=8, counts_since=2**40, kept_since=None),
]


def test_jobs_that_were_kept_back_are_remembered_until_they_are_gone(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        assert rows.observed.kept_back() == {}
        rows.observed.save_kept_back(ROWS)
        rows.observed.save_kept_back([replace(ROWS[0], counts_since=9)])
    with store.cluster("c").transaction() as rows:
        assert rows.observed.kept_back() == {7: replace(ROWS[0], counts_since=9), 8: ROWS[1]}
        assert rows.observed.prune_kept_back({8, 9}) == 1
        assert rows.observed.kept_back() == {8: ROWS[1]}
    with store.cluster("another").reading() as view:
        assert view.observed.kept_back() == {}


@pytest.mark.parametrize(
    ("counts_since", "kept_since", "start", "release"),
    [
        (None, 150, 200, 200),  # kept back until it started
        (None, 150, 120, 100),  # its start was heard of late
        (150, None, 200, 150),
        (150, None, 120, 120),  # a start before it counted anew is not put off
        (150, 180, 170, 150),
        (150, 180, 190, 190),
        (50, None, 200, 100),  # it has been held since
    ],
)
def test_a_run_could_start_when_its_job_began_to_count(
    counts_since: int | None, kept_since: int | None, start: int, release: int
) -> None:
    row = KeptBack(job_id=7, counts_since=counts_since, kept_since=kept_since)
    assert row.release(100, start) == release
