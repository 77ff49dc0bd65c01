"""How fair policies are among many organizations, where Ref is out of reach.

What counts as fair is then the policy `shapley` with many times the coalitions that `live` values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from shapleyprio.bench.contended import LOGS, Fair, contended_windows
from shapleyprio.bench.measure import Measurement
from shapleyprio.replay.policies import LIVE, SHAPLEY
from shapleyprio.replay.reading import read_log
from shapleyprio.replay.shapley.options import DEFAULT_ESTIMATION

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
    for log_file in LOGS:
        if log_file.name not in MEASURED_LOGS or not (logs / log_file.file).exists():
            continue
        show = bar(log_file.name, WINDOWS)
        log = read_log(str(logs / log_file.file))
        found: dict[str, list[float]] = {}
        drawn = contended_windows(
            log, log_file, organizations=ORGANIZATIONS, windows=WINDOWS, fair=FAIR
        )
        for number, window in enumerate(drawn, start=1):
            away = {
                **window.unfairness,
                **{
                    policy: window.unfairness_of(policy, estimation=DEFAULT_ESTIMATION)
                    for policy in (SHAPLEY, LIVE)
                },
            }
            for name, seconds in away.items():
                found.setdefault(name, []).append(seconds)
            show(number)
        for name, values in found.items():
            yield Measurement(
                name=name,
                what=f"{log_file.name}, {ORGANIZATIONS} organizations: mean Δψ/p_tot",
                value=fmean(values),
                unit="s",
                runs=len(values),
                worst=max(values),
            )
