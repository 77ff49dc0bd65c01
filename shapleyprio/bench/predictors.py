"""How fair the policy `live` is with each predictor of processing times, on the same windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from shapleyprio.bench.contended import LOGS, contended_windows
from shapleyprio.bench.measure import Measurement
from shapleyprio.replay.policies import LIVE, PREDICTORS, SHAPLEY
from shapleyprio.replay.reading import read_log
from shapleyprio.replay.shapley.options import DEFAULT_ESTIMATION

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
        Δψ/p_tot in the mean over the windows, by log and predictor; for comparison also of
        policies that predict nothing.
    """
    for log_file in LOGS:
        if not (logs / log_file.file).exists():
            continue
        show = bar(log_file.name, WINDOWS)
        log = read_log(str(logs / log_file.file))
        found: dict[str, list[float]] = {}
        drawn = contended_windows(log, log_file, organizations=ORGANIZATIONS, windows=WINDOWS)
        for number, window in enumerate(drawn, start=1):
            known = window.unfairness_of(SHAPLEY, estimation=DEFAULT_ESTIMATION)
            away = {**window.unfairness, SHAPLEY: known}
            for predictor in PREDICTORS:
                estimation = replace(DEFAULT_ESTIMATION, predictor=predictor)
                away[f"{LIVE}, {predictor}"] = window.unfairness_of(LIVE, estimation=estimation)
            for name, seconds in away.items():
                found.setdefault(name, []).append(seconds)
            show(number)
        for name, values in found.items():
            yield Measurement(
                name=name,
                what=f"{log_file.name}: mean Δψ/p_tot",
                value=fmean(values),
                unit="s",
                runs=len(values),
                worst=max(values),
            )
