"""Shapley values as exact as the time allows, with their standard errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import factorial

import numpy as np

from shapleyprio.fairness.shapley import owen_denominator, owen_numerators
from shapleyprio.replay.coalitions.contributions import (
    GROUPS,
    Draws,
    Floats,
    OrderingDraws,
    all_coalitions,
    needed,
    needed_coalitions,
    random_orderings,
    rounded_owen_values,
    rounded_shapley_values,
    shapley_numerators,
)
from shapleyprio.replay.coalitions.first_come import Valuation
from shapleyprio.replay.coalitions.fluid import Fluid, fluid_of
from shapleyprio.replay.coalitions.game import Bools, Game, Ints
from shapleyprio.replay.coalitions.ways import (
    MOST_STARTS,
    DecidingCoalitions,
    WholeJobs,
    can_decide,
    can_pass,
)
from shapleyprio.replay.workloads.choices import EXACT_ORGANIZATIONS

FLUID_ORGANIZATIONS = 18
"""Up to so many the fluid approximation's own Shapley value is computed from all coalitions."""

FLUID_ORDERINGS = 2_000
"""Random orderings, and as many reversed, from which it is estimated else."""

FIRST_BUDGET = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Shapley values at the game's end, how they go on, and how sure they are.

    Attributes:
        numerators: of each organization φ, its rate and its acceleration, as
            `first_come.values_of` has them of values, times the denominator.
        denominator: as `denominator_of` has it.
        error: float64[k], standard error of each φ in part-seconds; 0 if all coalitions were
            valued. Few coalitions, and nearly all, make it too large rather than too small.
        coalitions: how many were valued.
        certain: second of the game before which nothing that the values rest on is a guess; None
            unless all coalitions decide.
    """

    numerators: tuple[tuple[int, int, int], ...]
    denominator: int
    error: Floats
    coalitions: int
    certain: int | None = None

    @property
    def contribution(self) -> tuple[Fraction, ...]:
        """φ of each organization in part-seconds."""
        return tuple(Fraction(value, self.denominator) for value, _, _ in self.numerators)

    def later(self, seconds: int) -> Estimate:
        """Returns what it is so many seconds later, if nothing starts or ends in coalitions."""
        after = seconds * (seconds + 1) // 2
        numerators = tuple(
            (value + rate * seconds + growth * after, rate + growth * seconds, growth)
            for value, rate, growth in self.numerators
        )
        return replace(self, numerators=numerators)


def denominator_of(organizations: int, unions: Sequence[int] | None) -> int:
    """Returns what an estimate's numerators are divided by: k! if it is exact, else a rounding.

    Where organizations stand together, it is `owen_denominator` instead of k!.
    """
    if needed(organizations, unions) > 2**EXACT_ORGANIZATIONS:
        return 2**20
    return factorial(organizations) if unions is None else owen_denominator(unions)


class Estimator:
    """Estimates Shapley values of a game that grows, and goes on from what it found before.

    What it finds does not depend on what it was asked before, only how soon does: what cannot
    change any more (`Game.certain`) is not computed again.

    Args:
        budget: coalitions to value at most, where not all are; some more if it is very small.
        seed: of the draws; the same seed gives the same estimate.
        cores: to compute on; the result does not depend on it.
        exact_organizations: up to so many all coalitions are valued, and as many coalitions where
            organizations stand together.
        most_starts: jobs times coalitions up to which these decide by their own φ, as under Ref;
            with more, and where processors often change, they run first come, first served.
    """

    def __init__(
        self,
        *,
        budget: int,
        seed: int = 0,
        cores: int = 1,
        exact_organizations: int = EXACT_ORGANIZATIONS,
        most_starts: int = MOST_STARTS,
    ) -> None:
        self._budget = budget
        self._seed = seed
        self._exact_organizations = exact_organizations
        self._most_starts = most_starts
        self._valuation = Valuation(cores=cores)
        self._whole_jobs = WholeJobs()
        self._deciding = DecidingCoalitions()
        self._decided: tuple[Game, Ints | None] | None = None

    def estimate(
        self, game: Game, *, good_enough: Callable[[Estimate], bool] | None = None
    ) -> Estimate:
        """Estimates Shapley values of a game.

        With few organizations all coalitions are valued and the result is exact, and with few
        jobs as well these decide as under Ref; else they run first come, first served.

        Args:
            game: jobs and processors.
            good_enough: is asked about estimates of which each values twice as many coalitions as
                the one before, until it is content; it may also look at a clock. None spends the
                budget.
        """
        k, unions = game.organizations, game.unions
        if needed(k, unions) <= 2**self._exact_organizations:
            return self._exactly(game)
        total = self._first_come(game, game.everybody)[0].astype(np.float64)
        fluid = fluid_of(game)
        base, base_error = _fluid_shapley(fluid, k, unions, self._seed)
        rest_total = total - base.sum(axis=0)
        draws: Draws | OrderingDraws
        draws = Draws(k, self._seed) if unions is None else OrderingDraws(unions, self._seed)
        known = dict[bytes, Floats]()
        spent = self._budget if good_enough is None else min(FIRST_BUDGET, self._budget)
        while True:
            sample = draws.sample(spent)
            rest = self._values(game, sample.coalitions, known) - fluid.values(sample.coalitions)
            shares, error = sample.solved(rest, rest_total)
            found = Estimate(
                numerators=_rounded(base + shares, denominator_of(k, unions)),
                denominator=denominator_of(k, unions),
                error=np.hypot(error, base_error),
                coalitions=len(known) + 1,
            )
            enough = good_enough is None or good_enough(found)
            if enough or spent >= self._budget or sample.exact:
                return found
            spent = min(2 * spent, self._budget)

    def values(self, game: Game, coalitions: Bools) -> Ints:
        """Returns the values of coalitions that `estimate` rests on.

        Args:
            game: jobs and processors.
            coalitions: bool[c, k], the members of each.

        Returns:
            int64[c, 3], columns as in `first_come.values_of`.
        """
        if self._decided is None or self._decided[0] is not game:
            self._decided = game, self._decide(game)
        decided = self._decided[1]
        if decided is None:
            return self._first_come(game, coalitions)
        found: Ints = decided[coalitions @ (1 << np.arange(game.organizations))]
        return found

    def _first_come(self, game: Game, coalitions: Bools) -> Ints:
        valuation = self._valuation if can_pass(game) else self._whole_jobs
        return valuation.values(game, coalitions)

    def _decide(self, game: Game) -> Ints | None:
        """Returns the values of all coalitions that decide; None if they may not."""
        if game.organizations > self._exact_organizations:
            return None
        return self._deciding.values(game) if can_decide(game, self._most_starts) else None

    def _exactly(self, game: Game) -> Estimate:
        k, unions = game.organizations, game.unions
        coalitions = all_coalitions(k) if unions is None else needed_coalitions(unions)
        values = self.values(game, coalitions)
        have_decided = self._decided is not None and self._decided[1] is not None
        if unions is None:
            columns = [shapley_numerators(column) for column in values.T]
        else:
            masks = (coalitions @ (1 << np.arange(k))).tolist()
            valued = [dict(zip(masks, column, strict=True)) for column in values.T.tolist()]
            columns = [owen_numerators(column, unions) for column in valued]
        return Estimate(
            numerators=tuple(zip(*columns, strict=True)),
            denominator=denominator_of(k, unions),
            error=np.zeros(k),
            coalitions=len(values),
            certain=self._deciding.certain if have_decided else None,
        )

    def _values(self, game: Game, coalitions: Bools, known: dict[bytes, Floats]) -> Floats:
        """Returns v of coalitions, and computes only what is not known."""
        keys = [members.tobytes() for members in coalitions]
        new = [place for place, key in enumerate(keys) if key not in known]
        if new:
            values = self._first_come(game, coalitions[new]).astype(float)
            known.update(zip((keys[place] for place in new), values, strict=True))
        return np.array([known[key] for key in keys])


def estimate(
    game: Game,
    *,
    budget: int,
    seed: int = 0,
    cores: int = 1,
    exact_organizations: int = EXACT_ORGANIZATIONS,
    most_starts: int = MOST_STARTS,
    good_enough: Callable[[Estimate], bool] | None = None,
) -> Estimate:
    """Estimates Shapley values of one game from scratch, see `Estimator`."""
    estimator = Estimator(
        budget=budget,
        seed=seed,
        cores=cores,
        exact_organizations=exact_organizations,
        most_starts=most_starts,
    )
    return estimator.estimate(game, good_enough=good_enough)


def _rounded(contributions: Floats, denominator: int) -> tuple[tuple[int, int, int], ...]:
    scaled = (contributions * denominator).tolist()
    return tuple((round(a), round(b), round(c)) for a, b, c in scaled)


def _fluid_shapley(
    fluid: Fluid, k: int, unions: Sequence[int] | None, seed: int
) -> tuple[Floats, Floats]:
    """Returns the fluid approximation's own contributions, and the standard errors of φ."""
    if needed(k, unions) <= 2**FLUID_ORGANIZATIONS:
        if unions is None:
            return rounded_shapley_values(fluid.all_values()), np.zeros(k)
        return rounded_owen_values(fluid, unions), np.zeros(k)
    random = np.random.default_rng((seed % 2**64, k))
    if unions is None:
        drawn = random.permuted(np.tile(np.arange(k), (FLUID_ORDERINGS, 1)), axis=1)
    else:
        drawn = random_orderings(unions, FLUID_ORDERINGS, random)
    groups = np.array(
        [
            fluid.contributions(np.concatenate((part, part[:, ::-1])))
            for part in np.array_split(drawn, GROUPS)
        ]
    )
    error: Floats = groups[:, :, 0].std(axis=0, ddof=1) / np.sqrt(GROUPS)
    return groups.mean(axis=0), error
