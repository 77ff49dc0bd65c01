"""What a store's ledger says, beside what accounting says when it is read afresh."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.worth import Moments
from shapleyprio.store import AllocatedRun
from tests.end_to_end.consortium import Consortium


def stored_ledger(consortium: Consortium, store: str) -> tuple[Ledger, list[AllocatedRun], int]:
    """The ledger and the runs of a store, and the second at which they stand."""
    with consortium.reading(store) as view:
        watermark = view.ledger.watermark()
        assert watermark is not None
        ledger = Ledger(
            watermark.horizon, folded_to=watermark.folded_to, entries=view.ledger.entries()
        )
        runs = sorted(view.runs.all_runs(), key=lambda placed: placed[0].key)
        return ledger, runs, watermark.accounted_to


def moments(ledger: Ledger) -> dict[tuple[str, str], Moments]:
    """What makes two ledgers equal at any time."""
    return {pair: entry.total for pair, entry in ledger.entries.items() if entry.total != Moments()}


def _without_releases(runs: Iterable[AllocatedRun]) -> list[AllocatedRun]:
    """Runs but for since when their jobs counted: what kept them back no record of Slurm's has."""
    return [(replace(run, release=0), allocation) for run, allocation in runs]


def like_one_read_afresh(consortium: Consortium, config: Path | None = None) -> tuple[Ledger, int]:
    """The ledger of the daemon's store, which must be that of a new one, and its second.

    Args:
        consortium: whose store.
        config: by which the new one is read; the consortium's if left out.
    """
    ledger, runs, t = stored_ledger(consortium, "store.db")
    afresh, runs_afresh, _ = stored_ledger(consortium, consortium.from_scratch(config))
    assert _without_releases(runs) == _without_releases(runs_afresh)
    for (run, _), (run_afresh, _) in zip(runs, runs_afresh, strict=True):
        assert run_afresh.release <= run.release <= run.begin
    assert moments(ledger) == moments(afresh)
    return ledger, t
