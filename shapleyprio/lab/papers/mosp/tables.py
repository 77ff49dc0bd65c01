"""The tables of `mosp-2007`: promises and whether they were kept, the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from shapleyprio.common.wording import whole
from shapleyprio.lab.experiment.cells import ExperimentTable, Row
from shapleyprio.lab.papers.mosp.instances import FIGURES

_PAPER: Mapping[str, tuple[str, str]] = {
    "local": ("up to n", "nobody"),
    "molba-2": ("3 if low or n = 2", "nobody if low"),
    "molba-2-backfill": ("3 if low or n = 2", "nobody if low"),
    "molba-3": ("4", "nobody"),
    "molba-3-long": ("4", "nobody"),
    "unconstrained": ("", "somebody"),
}
"""Algorithm -> the paper's bound on makespan over optimum, and who may be worse off than alone."""


def tables_of(rows: Sequence[Row]) -> list[ExperimentTable]:
    """Returns all tables that the rows are enough for."""
    examples = {
        workload: [row for row in rows if row["workload"] == workload]
        for workload in ("figures", "counterexamples")
    }
    drawn = [row for row in rows if row["workload"] not in examples]
    tables = [_ratios(drawn), _losses(drawn)] if drawn else []
    if examples["figures"]:
        tables.append(_figures(examples["figures"]))
    if examples["counterexamples"]:
        tables.append(_counterexamples(examples["counterexamples"]))
    return tables


def _ratios(rows: Sequence[Row]) -> ExperimentTable:
    return ExperimentTable(
        title="Makespan / max(LB, p_max), with the paper's bound, on all batches and logs",
        header=("algorithm", "instances", "mean", "largest", "paper", "bound", "there", "beyond"),
        lines=[_ratio(algorithm, of) for algorithm, of in _grouped(rows, "algorithm").items()],
        notes=(
            "paper: makespan / optimum is at most that; low: a job of at most half a cluster ends "
            "last; bound: instances to which this applies; there: the largest ratio among them; "
            "beyond: how many exceed the bound",
        ),
    )


def _ratio(algorithm: str, rows: Sequence[Row]) -> list[str]:
    bounded = [row for row in rows if row["promised_ratio"] is not None]
    return [
        algorithm,
        whole(len(rows)),
        f"{fmean(_values(rows, 'ratio')):.3f}",
        _largest(rows, "ratio"),
        _PAPER[algorithm][0],
        whole(len(bounded)),
        _largest(bounded, "ratio"),
        whole(_sum(rows, "breaks_ratio")),
    ]


def _losses(rows: Sequence[Row]) -> ExperimentTable:
    return ExperimentTable(
        title="Who is worse off than alone, on all batches and logs",
        header=("algorithm", "instances", "worse off", "worst", "paper", "promised", "broken"),
        lines=[_loss(algorithm, of) for algorithm, of in _grouped(rows, "algorithm").items()],
        notes=(
            "worse off: instances in which an organization completes later than alone; worst: its "
            "makespan / that alone; promised: instances to which the paper's word applies; broken: "
            "how many of these have somebody worse off",
        ),
    )


def _loss(algorithm: str, rows: Sequence[Row]) -> list[str]:
    return [
        algorithm,
        whole(len(rows)),
        whole(sum(bool(row["worse_off"]) for row in rows)),
        _largest(rows, "worst_to_alone"),
        _PAPER[algorithm][1],
        whole(_sum(rows, "promised_alone")),
        whole(_sum(rows, "breaks_alone")),
    ]


def _figures(rows: Sequence[Row]) -> ExperimentTable:
    algorithms = list(_grouped(rows, "algorithm"))
    lines = []
    for name, of in _grouped(rows, "instance").items():
        figure = FIGURES[name]
        makespans = {row["algorithm"]: f"{row['makespan']}" for row in of}
        lines.append(
            [
                name,
                *(makespans[algorithm] for algorithm in algorithms),
                str(figure.cooperative),
                str(figure.optimum),
                figure.claim,
            ]
        )
    return ExperimentTable(
        title="The paper's figures 1 to 3: makespans",
        header=("instance", *algorithms, "best with nobody worse off", "optimum", "shows"),
        lines=lines,
    )


def _counterexamples(rows: Sequence[Row]) -> ExperimentTable:
    algorithms = list(_grouped(rows, "algorithm"))
    return ExperimentTable(
        title="Made to break a promise: the largest makespan of an organization / that alone",
        header=("instance", *algorithms),
        lines=[
            [name, *(f"{_number(row, 'worst_to_alone'):.3f}{_broken(row)}" for row in of)]
            for name, of in _grouped(rows, "instance").items()
        ],
        notes=("broken: although the paper promises that nobody is worse off",),
    )


def _broken(row: Row) -> str:
    return " broken" if row["breaks_alone"] else ""


def _grouped(rows: Sequence[Row], column: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row[column]), []).append(row)
    return groups


def _number(row: Row, column: str) -> float:
    value = row[column]
    assert isinstance(value, int | float)
    return value


def _values(rows: Sequence[Row], column: str) -> list[float]:
    return [_number(row, column) for row in rows]


def _sum(rows: Sequence[Row], column: str) -> int:
    return int(sum(_values(rows, column)))


def _largest(rows: Sequence[Row], column: str) -> str:
    return f"{max(_values(rows, column)):.3f}" if rows else ""
