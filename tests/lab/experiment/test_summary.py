"""Means, intervals and wins, against their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import NormalDist, fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.lab.experiment import results
from shapleyprio.lab.experiment.cells import Row, Share
from shapleyprio.lab.experiment.results import Line, bootstrap_interval, summary_of
from tests.lab.experiment.examples import experiment_of

MADE = experiment_of([])


def rows_of(**values: Sequence[float | None]) -> list[Row]:
    """Contender -> its values; those at the same place compete."""
    return [
        {"how": how, "number": number, "value": value}
        for how, of_one in values.items()
        for number, value in enumerate(of_one)
    ]


def by_name(rows: Sequence[Row], **changes: object) -> dict[object, Line]:
    lines = summary_of(replace(MADE, **changes), rows)  # type: ignore[arg-type]
    return {line.group["how"]: line for line in lines}


def test_mean_deviation_and_median() -> None:
    line = by_name(rows_of(one=[1.0, 2.0, 6.0]))["one"]
    assert (line.count, line.failed, line.mean, line.median) == (3, 0, 3.0, 2.0)
    assert line.deviation == pytest.approx(sqrt((4 + 1 + 9) / 2))


def test_the_least_value_wins_and_equal_ones_tie() -> None:
    lines = by_name(rows_of(a=[1.0, 2.0, 0.0], b=[2.0, 1.0, 0.0], c=[3.0, 3.0, 5.0]))
    assert [(lines[name].wins, lines[name].ties) for name in "abc"] == [(1, 1), (1, 1), (0, 0)]


def test_a_value_that_could_not_be_had_is_counted_and_wins_nothing() -> None:
    lines = by_name(rows_of(a=[None, None], b=[2.0, None]))
    assert (lines["a"].count, lines["a"].failed, lines["a"].mean) == (0, 2, None)
    assert (lines["b"].count, lines["b"].failed, lines["b"].wins) == (1, 1, 1)


def test_a_share_is_that_of_the_pooled_counts() -> None:
    counts: list[tuple[str, int | None, int | None]] = [
        *[("one", 5, 5), ("one", 0, 95), ("one", None, None)],
        *[("two", 0, 0), ("three", None, None)],
    ]
    rows: list[Row] = [
        {"how": how, "number": 0, "value": 1.0, "unlucky": part, "tried": whole}
        for how, part, whole in counts
    ]
    lines = by_name(rows, share=Share("bad luck", part="unlucky", whole="tried"))
    assert {how: line.share for how, line in lines.items()} == {
        "one": 0.05,
        "two": None,
        "three": None,
    }


def test_groups_come_by_size_of_numbers_and_names_as_they_come() -> None:
    rows: list[Row] = [
        {"k": k, "how": how, "number": 0, "value": 0.0} for k in (12, 5) for how in ("z", "a")
    ]
    lines = summary_of(replace(MADE, by=("k", "how")), rows)
    assert [tuple(line.group.values()) for line in lines] == [
        *((5, "z"), (5, "a"), (12, "z"), (12, "a"))
    ]


def test_nothing_is_summed_up_to_nothing() -> None:
    assert summary_of(MADE, []) == []


@given(st.lists(st.tuples(*[st.none() | st.integers(0, 3)] * 3), min_size=1, max_size=12))
def test_every_contest_has_one_winner_or_several_ties(
    contests: list[tuple[int | None, ...]],
) -> None:
    rows: list[Row] = [
        {"how": how, "number": number, "value": value}
        for number, values in enumerate(contests)
        for how, value in zip("abc", values, strict=True)
    ]
    held = [[value for value in values if value is not None] for values in contests]
    best = [[value for value in values if value == min(values)] for values in held if values]
    lines = summary_of(MADE, rows)
    assert sum(line.wins for line in lines) == sum(len(winners) == 1 for winners in best)
    assert sum(line.ties for line in lines) == sum(
        len(winners) for winners in best if len(winners) > 1
    )


# the bootstrap


def test_the_interval_of_two_values_is_known() -> None:
    # means of two draws of 0 and 1 are 0, 1/2 and 1 with probability 1/4, 1/2 and 1/4
    assert bootstrap_interval([0.0, 1.0], seed=0) == (0.0, 1.0)


def test_the_interval_of_many_values_is_that_of_the_normal_distribution() -> None:
    values = [(7919 * i % 1000) / 1000 for i in range(1000)]
    interval = bootstrap_interval(values, seed=1)
    assert interval is not None
    error = NormalDist().inv_cdf(0.975) * stdev(values) / sqrt(len(values))
    assert interval[0] == pytest.approx(fmean(values) - error, abs=error / 20)
    assert interval[1] == pytest.approx(fmean(values) + error, abs=error / 20)


def test_one_value_has_no_interval() -> None:
    assert bootstrap_interval([3.0], seed=0) is None


def test_the_seed_sets_the_interval() -> None:
    values = [float(i * i) for i in range(30)]
    assert bootstrap_interval(values, seed=1) == bootstrap_interval(values, seed=1)
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)


def test_drawing_in_pieces_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [float(i * i) for i in range(30)]
    at_once = bootstrap_interval(values, seed=1)
    monkeypatch.setattr(results, "MOST_AT_ONCE", 1000)
    assert bootstrap_interval(values, seed=1) == at_once
