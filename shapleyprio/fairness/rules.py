"""The ranking rules there are, by the value of ``fairness.rule`` that chooses them."""

from __future__ import annotations

from collections.abc import Callable

from shapleyprio.fairness.by_shapley import ByShapley
from shapleyprio.fairness.directcontr import DirectContr
from shapleyprio.fairness.rule import RankingRule

DEFAULT_RULE = ByShapley.name

RULES: dict[str, Callable[[], RankingRule]] = {
    DirectContr.name: DirectContr,
    ByShapley.name: ByShapley,
}
"""Name -> what makes the rule; one is made for every configuration that is read."""
