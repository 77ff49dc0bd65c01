"""A mutual gain says by how much parts come sooner because an organization is there."""

from __future__ import annotations

from fractions import Fraction

from shapleyprio.common.wording import clock_time
from shapleyprio.daemon.answering.estimated import mutual_gains
from shapleyprio.store import EstimateRow

BEGIN = 1_700_000_000


def row(organization: str, *, utility: int, alone: int, without: int, parts: int) -> EstimateRow:
    return EstimateRow(
        t=BEGIN + 9000,
        organization=organization,
        begin=BEGIN,
        value=0,
        rate=0,
        acceleration=0,
        denominator=1,
        error=7,
        utility=utility,
        alone=alone,
        without=without,
        parts=parts,
        coalitions=8,
    )


ROWS = [
    row("astro", utility=500, alone=800, without=9_000, parts=3),
    row("bio", utility=12_600, alone=0, without=500, parts=2),
    row("idle", utility=0, alone=0, without=13_100, parts=0),
]


def test_worth_lost_for_each_part_is_by_how_much_it_would_come_later() -> None:
    found = mutual_gains(ROWS)
    assert {name: (one.others_sooner, one.own_sooner) for name, one in found.items()} == {
        "astro": (Fraction(1800), Fraction(-100)),
        "bio": (Fraction(0), Fraction(6300)),
        "idle": (Fraction(0), None),
    }


def test_it_is_said_in_plain_words() -> None:
    since = clock_time(BEGIN)
    found = mutual_gains(ROWS)
    assert found["astro"].sentences() == [
        f"Without astro, its nodes and its jobs, the others' work since {since} would have been "
        "done 30 min later on average.",
        f"Alone on its own nodes, astro's work since {since} would have been done 1.7 min sooner "
        "on average.",
    ]
    (idle,) = found["idle"].sentences()
    assert idle.endswith("would have been done as soon on average.")


def test_machines_read_numbers() -> None:
    assert mutual_gains(ROWS)["astro"].as_json() == {
        "since": BEGIN,
        "others_sooner_seconds": 1800.0,
        "own_sooner_seconds": -100.0,
        "contribution_error": 7,
    }
