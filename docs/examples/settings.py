"""Judges the same jobs under many settings of Slurm's weights.

python settings.py LOG ORGANIZATIONS WAITS SETTINGS

WAITS has the seconds that each job waited under each setting (JobID, wait_00, wait_01, ...), and
SETTINGS a row for each (sim_id, and what was set). All figures are in minutes but those of what
was out of turn, in percent; an organization's is how far it was ahead, negative: late.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

from shapleyprio.replay import (
    Workload,
    consortium_of,
    drifts,
    load_organizations,
    measure,
    read_log,
    run_policy,
    turns_of,
    unfairness,
    whole_log,
    workload_of,
)


def judged(workload: Workload, waits: pd.DataFrame) -> pd.DataFrame:
    """Returns a row of figures for each column of waits, by job."""
    fair = measure(workload, run_policy(workload, "ref"))
    starts = [workload.release + waits[column].to_numpy() for column in waits]
    schedules = [run_policy(replace(workload, start=start), "recorded") for start in starts]
    rows = []
    for column, schedule, turns in zip(
        waits, schedules, turns_of(workload, schedules), strict=True
    ):
        measures = measure(workload, schedule)
        ahead = zip(workload.organizations, drifts(measures, fair), strict=True)
        rows.append(
            {
                "unfairness": float(unfairness(measures, fair)) / 60,
                "out_of_turn": 100 * turns.out_of_turn / turns.contested,
                "wait": waits[column].mean() / 60,
                **{name: float(drift) / 60 for name, drift in ahead},
            }
        )
    return pd.DataFrame(rows)


def main(log_file: str, organizations: str, waits_file: str, settings_file: str) -> None:
    """Prints the range of all figures, and their means over the settings with a value in common."""
    log = read_log(log_file)
    consortium = consortium_of(log, load_organizations(Path(organizations)))
    workload = workload_of(log, consortium, window=whole_log(log), wide="rigid", backfill="easy")
    settings = pd.read_csv(settings_file, index_col="sim_id")
    columns = [f"wait_{number:02}" for number in settings.index]
    waits = pd.read_csv(waits_file, index_col="JobID").loc[workload.job, columns]
    figures = judged(workload, waits).set_index(settings.index)
    print(settings.loc[[figures.unfairness.idxmin(), figures.unfairness.idxmax()]].to_string())
    print(figures.agg(["min", "max"]).round(1).to_string())
    for name in settings:
        print(figures.groupby(settings[name]).mean().round(1).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
