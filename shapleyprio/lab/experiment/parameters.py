"""Parameters of the general experiment; numpy is not imported, so that help texts can name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapleyprio.replay.coalitions.options import DEFAULT_ESTIMATION
from shapleyprio.replay.policies import COMPARED, LIVE, SAMPLED_REFERENCE, Estimation
from shapleyprio.replay.workloads.choices import (
    DEFAULT_BACKFILL,
    DEFAULT_SEED,
    DEFAULT_SHARES,
    DEFAULT_WIDE,
    Backfill,
    Shares,
    Wide,
)

EXPERIMENT_POLICIES = (
    *(SAMPLED_REFERENCE, *COMPARED),
    *("utfairshare", "currfairshare", "roundrobin"),
)
"""Policies that experiments compare with the reference by default: those of SPAA 2013."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellParameters:
    """What all cells of the general experiment have in common.

    Attributes:
        policies: names of `shapleyprio.replay.POLICIES`, or rand-N for rand with N orderings.
        length: of a window, seconds.
        contended: seconds by which directcontr or fairshare is away from ref at least, or else
            the window is redrawn, so that there is something to compare; None for any window.
        processors: how many are dealt out; None for as many as the log says.
        wide: what becomes of jobs of several processors.
        backfill: what may pass a rigid job that does not fit.
        estimation: of contributions by shapley and live.
        seed: of all random draws.
    """

    policies: Sequence[str] = EXPERIMENT_POLICIES
    length: int = 50_000
    contended: int | None = None
    processors: int | None = None
    wide: Wide = DEFAULT_WIDE
    backfill: Backfill = DEFAULT_BACKFILL
    estimation: Estimation = DEFAULT_ESTIMATION
    seed: int = DEFAULT_SEED


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsParameters(CellParameters):
    """How many windows are drawn, and to whom users and processors are dealt out in each.

    Attributes:
        windows: number of windows of each log.
        deals: number of deals of each window.
        organizations: numbers of organizations to deal out to.
        shares: how to deal the processors out.
    """

    windows: int = 100
    deals: int = 1
    organizations: Sequence[int] = (5,)
    shares: Sequence[Shares] = (DEFAULT_SHARES,)


FORECAST_POLICIES = (LIVE, "fairshare")
"""Policies under which starts are forecast by default."""

DEFAULT_WINDOWS = WindowsParameters()
