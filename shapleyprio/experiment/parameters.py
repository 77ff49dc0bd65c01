"""Parameters of the general experiment; numpy is not imported, so that help texts can name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapleyprio.replay.choices import (
    DEFAULT_BACKFILL,
    DEFAULT_SEED,
    DEFAULT_SHARES,
    DEFAULT_WIDE,
    Backfill,
    Shares,
    Wide,
)
from shapleyprio.replay.policies import EXPERIMENT_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsParameters:
    """How windows are drawn and dealt out, and which policies are compared in them.

    Attributes:
        policies: as `WindowCell` names them.
        windows: number of windows of each log.
        length: of a window, seconds.
        contended: seconds by which directcontr or fairshare is away from ref at least, so that
            there is something to compare; None for any window.
        deals: number of deals of each window.
        organizations: numbers of organizations to deal out to.
        shares: how to deal the processors out.
        processors: how many; None: as many as the log says.
        wide: what becomes of jobs of several processors.
        backfill: what may pass a rigid job that does not fit.
        seed: of all random draws.
    """

    policies: Sequence[str] = EXPERIMENT_POLICIES
    windows: int = 100
    length: int = 50_000
    contended: int | None = None
    deals: int = 1
    organizations: Sequence[int] = (5,)
    shares: Sequence[Shares] = (DEFAULT_SHARES,)
    processors: int | None = None
    wide: Wide = DEFAULT_WIDE
    backfill: Backfill = DEFAULT_BACKFILL
    seed: int = DEFAULT_SEED


DEFAULT_WINDOWS = WindowsParameters()
