"""The ranking rules there are, for the daemon and the replay alike."""

from __future__ import annotations

from shapleyprio.fairness.by_shapley import ByShapley
from shapleyprio.fairness.directcontr import DirectContr
from shapleyprio.fairness.rule import RankingRule

DEFAULT_RULE = ByShapley.name

_RULES: tuple[RankingRule, ...] = (DirectContr(), ByShapley())

RULES: dict[str, RankingRule] = {rule.name: rule for rule in _RULES}
"""The value of ``fairness.rule`` that chooses it -> the rule."""
