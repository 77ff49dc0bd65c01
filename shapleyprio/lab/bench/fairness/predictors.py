"""How fair the policy `live` is with each predictor of processing times, on the same windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shapleyprio.lab.bench.fairness.contended import LOGS, ContendedWindow, WindowKind, collected
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, mean_of
from shapleyprio.replay.policies import LIVE, PREDICTORS, SHAPLEY
from shapleyprio.replay.workloads.choices import DEFAULT_ESTIMATION

ORGANIZATIONS = 5
WINDOWS = 16


def measure_predictors(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures `live` with every predictor, beside what needs none.

    Yields:
        Δψ/p_tot in the mean over the windows, of jobs that are kept whole and of cut ones, by log
        and predictor; for comparison also of policies that predict nothing.
    """
    kinds = {
        f", {jobs} jobs": WindowKind(organizations=ORGANIZATIONS, windows=WINDOWS, whole=whole)
        for jobs, whole in (("whole", True), ("cut", False))
    }
    for what, name, values in collected(asked, [log.name for log in LOGS], kinds, _unfairness):
        yield mean_of(name, f"{what}: mean Δψ/p_tot", values, unit="s")


def _unfairness(window: ContendedWindow) -> Iterator[tuple[str, float]]:
    """Yields Δψ/p_tot of `live` with every predictor, and of other policies, in seconds."""
    yield from window.unfairness.items()
    yield SHAPLEY, window.unfairness_of(SHAPLEY, estimation=DEFAULT_ESTIMATION)
    for predictor in PREDICTORS:
        estimation = replace(DEFAULT_ESTIMATION, predictor=predictor)
        yield f"{LIVE}, {predictor}", window.unfairness_of(LIVE, estimation=estimation)
