"""The preset `mosp-2007`: what the paper proves, held against figures, random batches and logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shapleyprio.lab.experiment.cells import Cell, Experiment, ExperimentError, PresetParameters
from shapleyprio.lab.experiment.general import label_of
from shapleyprio.lab.papers.mosp.cells import BatchCell, ExampleCell, LogCell
from shapleyprio.lab.papers.mosp.instances import BATCHES, COUNTEREXAMPLES, FIGURES
from shapleyprio.lab.papers.mosp.tables import tables_of

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
