"""How fair the policy `live` is with each predictor of processing times, on the same windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from shapleyprio.lab.bench.fairness.contended import (
    LOGS,
    ContendedWindow,
    contended_windows,
    mean_unfairness,
    real_logs,
)
from shapleyprio.lab.bench.measure import Measurement
from shapleyprio.replay.coalitions.options import DEFAULT_ESTIMATION
from shapleyprio.replay.policies import LIVE, PREDICTORS, SHAPLEY

ORGANIZATIONS = 5
WINDOWS = 16


def measure_predictors(
    logs: Path, bar: Callable[[str, int], Callable[[int], None]]
) -> Iterator[Measurement]:
    """Measures `live` with every predictor, beside what needs none.

    Args:
        logs: directory with the logs.
        bar: makes a progress bar.

    Yields:
        Δψ/p_tot in the mean over the windows, of jobs that are kept whole and of cut ones, by log
        and predictor; for comparison also of policies that predict nothing.
    """
    for log_file, log in real_logs(logs, [known.name for known in LOGS]):
        for whole in (True, False):
            what = f"{log_file.name}, {'whole' if whole else 'cut'} jobs"
            yield from mean_unfairness(
                contended_windows(
                    log, log_file, organizations=ORGANIZATIONS, windows=WINDOWS, whole=whole
                ),
                _unfairness,
                what=what,
                show=bar(what, WINDOWS),
            )


def _unfairness(window: ContendedWindow) -> dict[str, float]:
    """Returns Δψ/p_tot of `live` with every predictor, and of other policies, in seconds."""
    away = {
        **window.unfairness,
        SHAPLEY: window.unfairness_of(SHAPLEY, estimation=DEFAULT_ESTIMATION),
    }
    for predictor in PREDICTORS:
        estimation = replace(DEFAULT_ESTIMATION, predictor=predictor)
        away[f"{LIVE}, {predictor}"] = window.unfairness_of(LIVE, estimation=estimation)
    return away
