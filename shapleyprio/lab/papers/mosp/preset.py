"""The preset `mosp-2007`: what the paper proves, held against figures, random batches and logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from shapleyprio.common.wording import whole
from shapleyprio.lab.experiment.cells import (
    Cell,
    Experiment,
    ExperimentError,
    ExperimentTable,
    PresetParameters,
    Row,
)
from shapleyprio.lab.experiment.general import label_of
from shapleyprio.lab.papers.mosp.cells import (
    BATCHES,
    COUNTEREXAMPLES,
    FIGURES,
    BatchCell,
    ExampleCell,
    LogCell,
)

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


NAME = "mosp-2007"

SYSTEM_PROCESSORS: Mapping[str, int] = {
    "LPC-EGEE-2004-1.2-cln.swf.gz": 70,  # as the papers on Ref use it; the header says 140
    "HPC2N-2002-2.2-cln.swf.gz": 240,
    "RICC-2010-2.swf.gz": 8_192,
    "METACENTRUM-2009-2.swf.gz": 806,  # its header is missing; the archive's page says so
    "DAS2-fs1-2003-1.swf.gz": 64,
    "CEA-Curie-2011-2.1-cln.swf.gz": 93_312,
}
"""Log -> processors of its system."""

EXHIBITS = ("figures", "counterexamples", "batches", "logs")
ORGANIZATIONS = 5
LENGTH = 500_000
"""Length of a window in seconds."""
INSTANCES = 100
"""Number of instances of each kind by default: the paper has none."""


def mosp_2007(parameters: PresetParameters) -> Experiment:
    """Makes local schedules and MOLBA's of many instances, and checks the paper's promises.

    Args:
        parameters: only logs of `SYSTEM_PROCESSORS` are used; windows counts the windows of each
            log and the random instances of each kind, None: 100.

    Raises:
        ExperimentError: an exhibit is unknown, or "logs" is asked for and none is known.
    """
    chosen = parameters.chosen(NAME, EXHIBITS)
    logs, seed = parameters.logs, parameters.seed
    used = {name: logs[name] for name in SYSTEM_PROCESSORS if name in logs}
    if "logs" in parameters.exhibits and not used:
        raise ExperimentError(
            f"{NAME} finds none of its logs; give one of {', '.join(SYSTEM_PROCESSORS)}"
        )
    count = INSTANCES if parameters.windows is None else parameters.windows
    cells: list[Cell] = []
    if "logs" in chosen:
        cells += [
            LogCell(
                source=str(path),
                log=label_of(name),
                system_processors=SYSTEM_PROCESSORS[name],
                organizations=ORGANIZATIONS,
                length=LENGTH,
                seed=seed,
                number=number,
            )
            for name, path in used.items()
            for number in range(count)
        ]
    if "batches" in chosen:
        cells += [
            BatchCell(kind=kind, seed=seed, number=number)
            for kind in reversed(list(BATCHES))  # the largest is the last
            for number in range(count)
        ]
    if "figures" in chosen:
        cells += [ExampleCell(workload="figures", example=figure) for figure in FIGURES]
    if "counterexamples" in chosen:
        cells += [
            ExampleCell(workload="counterexamples", example=example) for example in COUNTEREXAMPLES
        ]
    return Experiment(
        name=NAME,
        description="Makespan over max(LB, p_max), which the optimum cannot be below",
        cells=cells,
        by=("workload", "algorithm"),
        value="ratio",
        paired=("workload", "instance"),
        inputs=list(used.values()) if "logs" in chosen else [],
        notes=_notes(used),
        tables=tables_of,
    )


def _notes(used: Mapping[str, Path]) -> list[str]:
    notes = [
        "the paper measures nothing: beside our figures stand the bounds that it proves; random "
        "batches and windows of logs are our choice",
        f"logs: the jobs released in {LENGTH:,} s, all at once; users dealt out to "
        f"{ORGANIZATIONS} organizations, each with an equal part of the processors; wider jobs "
        "are left out",
    ]
    if missing := [label_of(name) for name in SYSTEM_PROCESSORS if name not in used]:
        notes.append(f"logs not at hand: {', '.join(missing)}")
    return notes
