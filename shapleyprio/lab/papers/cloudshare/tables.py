"""Table 1 of CloudShare: how many times an algorithm is more fair than another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shapleyprio.common.wording import percent
from shapleyprio.lab.experiment.cells import ExperimentTable, Row
from shapleyprio.lab.papers.cloudshare.brokers import ALGORITHMS

PAPER: Mapping[str, Mapping[int, int]] = {
    "orig-direct": {1: 3051, 2: 3095, 3: 2110},
    "rel-direct": {1: 3840, 2: 3793, 3: 2420},
    "simpl-direct": {1: 4061, 2: 3955, 3: 2415},
    "fairshare": {1: 3108, 2: 3436, 3: 1621},
    "roundrobin": {1: 1302, 2: 917, 3: 871},
}
"""Algorithm -> scenario -> total score in the paper's Table 1."""


def score_tables(rows: Sequence[Row]) -> list[ExperimentTable]:
    """Returns the scores of all logs beside the paper's."""
    scenarios = sorted({_number(row, "scenario") for row in rows})
    lines = []
    for algorithm in ALGORITHMS:
        line = [algorithm]
        for scenario in scenarios:
            ours = {name: _score(rows, name, scenario) for name in ALGORITHMS}
            theirs = {name: PAPER[name][scenario] for name in ALGORITHMS}
            line += [_with_share(ours, algorithm), _with_share(theirs, algorithm)]
        lines.append(line)
    table = ExperimentTable(
        title="Total scores: how many times a policy is more fair than another one",
        header=(
            "policy",
            *(text for number in scenarios for text in (f"scenario {number}", "paper")),
        ),
        lines=lines,
        notes=(
            "in brackets: the part of all points of the scenario",
            *(_undecided(rows, scenario) for scenario in scenarios),
        ),
    )
    return [table]


def _undecided(rows: Sequence[Row], scenario: int) -> str:
    """Says how many pairs of policies were equally fair, mostly where nobody had to wait."""
    mine = [row for row in rows if row["scenario"] == scenario]
    pairs = sum(_number(row, "rivals") for row in mine) // 2
    equal = pairs - sum(_number(row, "points") for row in mine)
    return f"scenario {scenario}: {equal:,} of {pairs:,} pairs of policies were equally fair"


def _score(rows: Sequence[Row], algorithm: str, scenario: int) -> int:
    return sum(
        _number(row, "points")
        for row in rows
        if row["policy"] == algorithm and row["scenario"] == scenario
    )


def _with_share(scores: Mapping[str, int], algorithm: str) -> str:
    share = scores[algorithm] / max(sum(scores.values()), 1)
    return f"{scores[algorithm]:,} ({percent(share, digits=0)})"


def _number(row: Row, column: str) -> int:
    return int(row[column] or 0)
