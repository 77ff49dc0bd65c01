"""The options of estimated contributions; without numpy, so that help texts can name them."""

from __future__ import annotations

from dataclasses import dataclass

PREDICTORS = ("survivors", "last-two", "limit")
"""Names of what can predict processing times; the first one is taken unless another is named."""


EXACT_ORGANIZATIONS = 10
"""Up to so many all coalitions are valued, whatever the budget, unless asked otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimation:
    """How contributions are estimated while a schedule is decided.

    Attributes:
        recompute: seconds for which an estimate is good while organizations compete.
        coalitions: to value for each estimate, where there are too many organizations to value
            all.
        predictor: of processing times, one of `PREDICTORS`.
    """

    recompute: int = 30
    coalitions: int = 500
    predictor: str = PREDICTORS[0]


DEFAULT_ESTIMATION = Estimation()
