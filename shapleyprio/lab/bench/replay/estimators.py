"""The errors of estimates of Shapley values, for a number of coalitions valued.

Beside ours stand Rand's random orderings (SPAA 2013), the same in antithetic pairs, paired
leverage sampling alone, and KernelSHAP of the package shapiq if it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shapleyprio.lab.bench.fairness.contended import real_logs
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, of_runs
from shapleyprio.replay.coalitions.contributions import (
    Draws,
    all_coalitions,
    fit,
    rounded_shapley_values,
)
from shapleyprio.replay.coalitions.estimate import estimate
from shapleyprio.replay.coalitions.first_come import values_of
from shapleyprio.replay.coalitions.game import Bools, Game, game_of
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Window, whole_log, workload_of

Floats = NDArray[np.float64]
Valued = Callable[[Bools], Floats]
"""bool[c, k] coalitions -> their values in part-seconds."""

Method = Callable[[Game, Valued, int, int], Floats]
"""Game, values of coalitions, budget, seed -> φ in part-seconds."""

LENGTHS = {"LPC": 40_000, "HPC2N": 200_000, "RICC": 40_000}
"""Name of a log -> seconds of its windows."""

ORGANIZATIONS = (8, 12, 18, 50)
UNIONS = {8: 3, 50: 8}
"""Organizations -> in how many unions they stand together, where Owen values are estimated."""

BUDGETS = (60, 180, 900)
WINDOWS = 3
LEAST_LOAD = 0.5
EXACT_ORGANIZATIONS = 18
TRUTH = 100
"""With more organizations the truth is our estimate with so many times the largest budget."""


@dataclass(frozen=True, slots=True)
class EstimatorCase:
    """A game whose Shapley values are known.

    Attributes:
        game: its window's.
        truth: float64[k], φ in part-seconds.
        parts: completed in the coalition of all.
    """

    game: Game
    truth: Floats
    parts: float


def measure_estimators(asked: BenchParameters) -> Iterator[Measurement]:
    """Estimates Shapley values of windows of real logs from few coalitions.

    Yields:
        errors Σ|φ̂ − φ| in seconds per part, the median of the windows, by log, organizations,
        budget and estimator.
    """
    for log_file, log in real_logs(asked.real_logs, LENGTHS):
        name, length = log_file.name, LENGTHS[log_file.name]
        for k in ORGANIZATIONS:
            show = asked.bar(f"{name}, {k} organizations", WINDOWS)
            cases = []
            for case in cases_of(log, k, length):
                cases.append(case)
                show(len(cases))
            for budget in BUDGETS:
                for method, estimator in estimators().items():
                    errors = [error_of(case, estimator, budget) for case in cases]
                    yield of_runs(
                        f"{name}, {k} organizations, {budget} coalitions",
                        method,
                        errors,
                        unit="s per part",
                    )
                if k in UNIONS:
                    nested = [in_unions(case, UNIONS[k]) for case in cases]
                    yield of_runs(
                        f"{name}, {k} organizations in {UNIONS[k]} unions, {budget} coalitions",
                        "orderings of unions and fluid",
                        [error_of(case, ours, budget) for case in nested],
                        unit="s per part",
                    )


def in_unions(case: EstimatorCase, unions: int) -> EstimatorCase:
    """Returns the game with organizations dealt to so many unions in turn, with Owen values."""
    dealt = tuple(u % unions for u in range(case.game.organizations))
    game = replace(case.game, unions=dealt)
    known = estimate(game, budget=TRUTH * max(BUDGETS), seed=2, most_starts=0)
    return replace(case, game=game, truth=np.array(known.contribution, dtype=np.float64))


def cases_of(log: Log, organizations: int, length: int) -> Iterator[EstimatorCase]:
    """Yields windows of a log that have work enough, with their Shapley values."""
    assert log.system_processors is not None
    consortium = deal(
        log, organizations, shares="zipf", processors=log.system_processors, seed=organizations
    )
    random = np.random.default_rng(organizations)
    whole = whole_log(log)
    found = 0
    while found < WINDOWS:
        start = whole.start + int(random.integers(0, whole.length - length))
        try:
            window = Window(start=start, length=length)
            game = game_of(workload_of(log, consortium, window=window, wide="expand"))
        except WorkloadError:
            continue
        _, parts, _ = values_of(game, game.everybody)[0].tolist()
        if parts < LEAST_LOAD * log.system_processors * length:
            continue
        yield EstimatorCase(game, _truth(game), float(parts))
        found += 1


def error_of(case: EstimatorCase, estimator: Method, budget: int) -> float:
    """Returns Σ|φ̂ − φ| per part, in seconds."""

    def valued(coalitions: Bools) -> Floats:
        return values_of(case.game, coalitions)[:, 0].astype(np.float64)

    found = estimator(case.game, valued, budget, 1)
    return float(np.abs(found - case.truth).sum() / case.parts)


def estimators() -> Mapping[str, Method]:
    """Maps names to estimators, that of shapiq only if it is installed."""
    found: dict[str, Method] = {
        "orderings": orderings,
        "antithetic orderings": antithetic,
        "leverage": leverage,
        "leverage and fluid": ours,
    }
    if find_spec("shapiq") is not None:
        found["shapiq KernelSHAP"] = kernel_shap
    return found


def orderings(game: Game, valued: Valued, budget: int, seed: int) -> Floats:
    """Estimates by what organizations add when they join in random orderings."""
    random = np.random.default_rng(seed)
    k = game.organizations
    return _joining(valued, [random.permutation(k) for _ in range(max(budget // k, 1))])


def antithetic(game: Game, valued: Valued, budget: int, seed: int) -> Floats:
    """Estimates as `orderings` does, each ordering together with its reverse."""
    random = np.random.default_rng(seed)
    k = game.organizations
    drawn = [random.permutation(k) for _ in range(max(budget // (2 * k), 1))]
    return _joining(valued, [way for order in drawn for way in (order, order[::-1])])


def leverage(game: Game, valued: Valued, budget: int, seed: int) -> Floats:
    """Estimates by paired leverage sampling of the values themselves."""
    sample = Draws(game.organizations, seed).sample(budget)
    return fit(sample, valued(sample.coalitions)[:, None], valued(game.everybody))[:, 0]


def ours(game: Game, _valued: Valued, budget: int, seed: int) -> Floats:
    """Estimates by `shapleyprio.replay.coalitions.estimate`."""
    found = estimate(game, budget=budget, seed=seed, exact_organizations=0)
    return np.array(found.contribution, dtype=np.float64)


def _truth(game: Game) -> Floats:
    if game.organizations > EXACT_ORGANIZATIONS:
        return ours(game, lambda _: np.zeros(0), TRUTH * max(BUDGETS), 2)
    values = values_of(game, all_coalitions(game.organizations))[:, :1]
    return rounded_shapley_values(values.astype(np.float64))[:, 0]


def _joining(valued: Valued, drawn: Sequence[NDArray[np.int64]]) -> Floats:
    k = len(drawn[0])
    found = np.zeros(k)
    for ordering in drawn:
        joined = np.zeros((k + 1, k), dtype=np.bool_)
        for place, u in enumerate(ordering.tolist()):
            joined[place + 1 :, u] = True
        for u, (before, after) in zip(ordering, pairwise(valued(joined).tolist()), strict=True):
            found[u] += (after - before) / len(drawn)
    return found


def kernel_shap(game: Game, valued: Valued, budget: int, seed: int) -> Floats:
    """Estimates by KernelSHAP of the package shapiq."""
    import shapiq

    k = game.organizations
    values = shapiq.KernelSHAP(n=k, random_state=seed).approximate(
        budget, lambda members: valued(np.atleast_2d(members).astype(bool))
    )
    return np.array([float(values[(u,)]) for u in range(k)])
