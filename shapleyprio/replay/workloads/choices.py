"""What can be chosen for a replay or audit; without numpy, so that help texts can name it.

The first of each is taken unless another is named; a log's format is found out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from shapleyprio.common.wording import DAY

Format = Literal["swf", "sacct", "store", "export"]
Shares = Literal["zipf", "uniform"]
Wide = Literal["rigid", "expand"]
Backfill = Literal["easy", "none"]
Placement = Literal["random", "least-loaded", "recorded"]

FORMATS: tuple[Format, ...] = get_args(Format)
SHARES: tuple[Shares, ...] = get_args(Shares)
WIDE: tuple[Wide, ...] = get_args(Wide)
BACKFILLS: tuple[Backfill, ...] = get_args(Backfill)


class Guarantee(NamedTuple):
    """When jobs go first that fit into what their organization lends.

    Attributes:
        wait: seconds that they have waited.
        ahead: whether it counts, too, how long they may still have to wait for processors.
    """

    wait: int
    ahead: bool


DEFAULT_SHARES = SHARES[0]
DEFAULT_WIDE = WIDE[0]
DEFAULT_BACKFILL = BACKFILLS[0]

DEFAULT_SEED = 0

DEFAULT_TIME_ZONE = "UTC"
"""Time zone of the local times in a file of sacct's."""

ALL_CLUSTERS = ""
"""Names the file of organizations of the clusters that have none of their own."""

Doubt = Literal["unseen", "no-processors", "no-organization", "utilization"]
"""What may be odd about a log and the organizations given for it."""

DOUBTS: tuple[Doubt, ...] = get_args(Doubt)


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


MOST_FOR_ALL = 14
"""Organizations up to which all coalitions count by default; each one more doubles the time."""

PERIOD = DAY
"""Seconds of the periods for which use and contribution are reported by default."""
