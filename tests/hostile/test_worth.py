"""Attacks on the ledger: worth that nobody earned, and work that nobody paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.daemon.consortium import BIOLOGY, PHYSICS, Cluster, Service, config

if TYPE_CHECKING:
    from shapleyprio.store import StandingRow, Store


def standings(service: Service) -> dict[str, StandingRow]:
    """What stands after one more cycle."""
    service.run()
    return service.standings()


def test_mint_contribution_by_guests_whose_account_nobody_claims(
    slurm: Cluster, store: Store
) -> None:
    service = Service(slurm, store, config())
    slurm.submit("biology", processing_time=90, processors=4, partition="pb")
    slurm.submit("guest", processing_time=60, processors=4, partition="pa")
    slurm.wait(200)
    rows = standings(service)
    assert (rows["physics"].contribution, rows["physics"].balance) == (0, 0)
    assert sum(row.balance for row in rows.values()) == 0

    sponsor = {**PHYSICS, "accounts": ["physics", "guest"]}
    service.restart(config(sponsor, BIOLOGY))
    assert standings(service)["physics"].balance == 0  # a claim holds from when it is seen
    slurm.submit("guest", processing_time=60, processors=4, partition="pb")
    slurm.wait(200)
    rows = standings(service)
    assert rows["physics"].balance == -rows["biology"].balance < 0
