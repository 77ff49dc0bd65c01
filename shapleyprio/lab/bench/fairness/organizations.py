"""How fair policies are among many organizations, where Ref is out of reach.

What counts as fair is then the policy `shapley` with many times the coalitions that `live` values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from shapleyprio.lab.bench.fairness.contended import (
    ContendedWindow,
    Fair,
    contended_windows,
    mean_unfairness,
    real_logs,
)
from shapleyprio.lab.bench.measure import Measurement
from shapleyprio.replay.coalitions.options import DEFAULT_ESTIMATION
from shapleyprio.replay.policies import LIVE, SHAPLEY

ORGANIZATIONS = 20
WINDOWS = 4
MEASURED_LOGS = ("LPC", "HPC2N", "RICC", "METACENTRUM")

FAIR = Fair(policy=SHAPLEY, estimation=replace(DEFAULT_ESTIMATION, coalitions=4_000))


def measure_organizations(
    logs: Path, bar: Callable[[str, int], Callable[[int], None]]
) -> Iterator[Measurement]:
    """Measures policies against `FAIR` on the same contended windows.

    Args:
        logs: directory with the logs.
        bar: makes a progress bar.

    Yields:
        Δψ/p_tot in the mean over the windows, by log and policy.
    """
    for log_file, log in real_logs(logs, MEASURED_LOGS):
        yield from mean_unfairness(
            contended_windows(
                log, log_file, organizations=ORGANIZATIONS, windows=WINDOWS, fair=FAIR
            ),
            _unfairness,
            what=f"{log_file.name}, {ORGANIZATIONS} organizations",
            show=bar(log_file.name, WINDOWS),
        )


def _unfairness(window: ContendedWindow) -> dict[str, float]:
    """Returns Δψ/p_tot of every policy, in seconds."""
    estimated = {
        policy: window.unfairness_of(policy, estimation=DEFAULT_ESTIMATION)
        for policy in (SHAPLEY, LIVE)
    }
    return {**window.unfairness, **estimated}
