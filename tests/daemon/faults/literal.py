"""The ledger by its definition: from all records that Slurm has in the end, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapleyprio.fairness.ledger import Standing
from shapleyprio.fairness.tenure import NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from shapleyprio.fairness.runs import Run
    from shapleyprio.fairness.tenure import Kind


def literal_standings(
    runs: Iterable[Run],
    holder: Callable[[Kind, str, int], str],
    moves: Iterable[int],
    names: list[str],
    t: int,
    horizon: int | None,
) -> dict[str, Standing]:
    """What organizations gave and got, as docs/semantics.md defines it.

    Args:
        runs: all there ever were.
        holder: who held a node or an account at a second.
        moves: seconds at which anything may have changed hands.
        names: of the organizations.
        t: when.
        horizon: seconds, None for never.
    """
    gave, got, parts = (dict.fromkeys(names, 0) for _ in range(3))
    cuts = sorted(set(moves))
    for run in runs:
        end = run.end if run.paused_at is None else run.paused_at
        for first, last in _stretches(run.begin, t if end is None else min(end, t), cuts):
            organization = holder("account", run.account, first)
            if organization == NOBODY:
                continue
            worth, young = worth_and_young_parts(first, last, t, horizon)
            for node, processors in run.processors.items():
                if organization in got:
                    got[organization] += processors * worth
                    parts[organization] += processors * young
                owner = holder("node", node, first)
                if owner in gave:
                    gave[owner] += processors * worth
    return {name: Standing(gave[name], got[name], parts[name]) for name in names}


def worth_and_young_parts(begin: int, end: int, t: int, horizon: int | None) -> tuple[int, int]:
    """Σ min(t − τ, H) over the parts τ of [begin, end), and how many are no older than H.

    Days are long, so the sums are those of arithmetic series.
    """
    oldest, youngest = t - begin, t - end + 1  # ages
    if horizon is None or oldest <= horizon:
        return (oldest + youngest) * (oldest - youngest + 1) // 2, oldest - youngest + 1
    if youngest > horizon:
        return horizon * (oldest - youngest + 1), 0
    young = horizon - youngest + 1
    return horizon * (oldest - horizon) + (horizon + youngest) * young // 2, young


def _stretches(begin: int, end: int, cuts: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Divides [begin, end) at the cuts."""
    for cut in cuts:
        if begin < cut < end:
            yield begin, cut
            begin = cut
    if begin < end:
        yield begin, end
