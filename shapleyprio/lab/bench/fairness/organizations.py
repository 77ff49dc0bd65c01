"""How exact estimated contributions of whole jobs are, among few and many organizations.

Up to ten organizations coalitions decide, and contributions are those of Ref. With more they are
estimated from few coalitions that start jobs first come, first served. That is held against Ref's
where there are some, and else against the same from many more coalitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from shapleyprio.lab.bench.fairness.contended import ContendedWindow, WindowKind, collected
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, mean_of
from shapleyprio.replay.coalitions.estimate import estimate
from shapleyprio.replay.coalitions.game import game_of
from shapleyprio.replay.policies import COMPARED, REFERENCE, run_policy
from shapleyprio.replay.workloads.choices import DEFAULT_ESTIMATION, EXACT_ORGANIZATIONS

ORGANIZATIONS = (5, 8, 10, 20, 50)
WINDOWS = 4
MEASURED_LOGS = ("HPC2N", "LPC", "METACENTRUM", "Curie")

MANY_COALITIONS = 4_000

DIRECTCONTR, FAIRSHARE = COMPARED

FIRST_COME = "all coalitions, first come"
SAMPLED = "few coalitions"


def measure_organizations(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures contributions at the ends of contended windows of whole jobs.

    Windows with too many organizations for Ref are contended where directcontr is away from
    fairshare.

    Yields:
        Σ|φ̂ − φ| for each part of all work, in the mean over the windows, by log, number of
        organizations and estimate.
    """
    kinds = {
        f", {k} organizations": WindowKind(
            organizations=k,
            windows=WINDOWS,
            fair=REFERENCE if k <= EXACT_ORGANIZATIONS else FAIRSHARE,
            whole=True,
        )
        for k in ORGANIZATIONS
    }
    for what, name, values in collected(asked, MEASURED_LOGS, kinds, _errors):
        yield mean_of(name, f"{what}: mean Σ|φ̂ − φ|", values, unit="s per part")


def _errors(window: ContendedWindow) -> Iterator[tuple[str, float]]:
    """Yields how far estimates are from what counts as true, in seconds per part."""
    game, parts = game_of(window.workload), window.fair.p_tot
    true = estimate(game, budget=MANY_COALITIONS).contribution
    by_owner = run_policy(window.workload, DIRECTCONTR).contribution
    assert by_owner is not None  # a replay knows whose processors it uses
    yield DIRECTCONTR, _away(by_owner, true, parts)
    if game.organizations <= EXACT_ORGANIZATIONS:
        all_of_them = estimate(game, budget=MANY_COALITIONS, most_starts=0).contribution
        yield FIRST_COME, _away(all_of_them, true, parts)
    few = min(DEFAULT_ESTIMATION.coalitions, 2**game.organizations // 2)
    sampled = estimate(game, budget=few, exact_organizations=0).contribution
    yield SAMPLED, _away(sampled, true, parts)


def _away(found: Sequence[Fraction], true: Sequence[Fraction], parts: int) -> float:
    return float(sum(abs(a - b) for a, b in zip(found, true, strict=True)) / parts)
