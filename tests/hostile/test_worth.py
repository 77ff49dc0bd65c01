"""Attacks on the ledger: worth that nobody earned, and work that nobody paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.accounting.after_end import MOST_ASKED
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.fairness.worth import worth
from shapleyprio.lab.simulated import SimulatedSlurm, SimulatedSpec
from shapleyprio.store import Store
from tests.daemon.consortium import (
    BIOLOGY,
    FIRST,
    LAST,
    NAME,
    NOW,
    PHYSICS,
    QUIET,
    Cluster,
    Service,
    config,
)

if TYPE_CHECKING:
    from shapleyprio.store import StandingRow


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


def test_keep_the_points_of_better_days_by_a_hold(slurm: Cluster, store: Store) -> None:
    service = Service(slurm, store)
    slurm.fill("guest")
    kept, other = (slurm.submit(name, processing_time=9) for name in ("physics", "biology"))
    service.run()
    assert (slurm.job(kept).site_factor, slurm.job(other).site_factor) == (FIRST, LAST)
    slurm.hold(kept)
    service.restart(config(BIOLOGY, PHYSICS))  # the one listed first leads while nobody is owed
    service.run()
    slurm.release(kept)
    assert slurm.job(kept).site_factor == FIRST
    service.run()  # the daemon looks for changes between two cycles, too
    assert (slurm.job(kept).site_factor, slurm.job(other).site_factor) == (LAST, FIRST)


def test_be_paid_twice_for_a_job_by_requeueing_it_again_and_again(
    slurm: Cluster, store: Store
) -> None:
    service = Service(slurm, store)
    job = slurm.submit("physics", processing_time=1000, processors=4, partition="pb")
    for _ in range(5):
        slurm.wait(7)
        slurm.requeue(job)
        service.run()
    slurm.cancel(job)
    slurm.wait(100)
    runs = standings(service)
    assert runs["physics"].utility == runs["biology"].contribution > 0
    assert runs["physics"].balance == -runs["biology"].balance < 0
    with Store.open("sqlite://", create=True) as afresh:
        once = standings(Service(slurm, afresh))
    assert once["physics"].utility == runs["physics"].utility


@pytest.mark.parametrize("more", [1, 2 * MOST_ASKED])
def test_lose_work_or_count_it_twice_by_ending_everything_in_one_second(
    store: Store, more: int
) -> None:
    count = MOST_ASKED + more
    slurm = SimulatedSlurm(
        SimulatedSpec(
            cluster=NAME,
            nodes={"a1": 1, "b1": count},
            partitions={"pa": ["a1"], "pb": ["b1"]},
            accounts={"physics": None, "biology": None},
            settings=QUIET,
        ),
        now=NOW,
    )
    cycle = Cycle(config(), slurm, store.cluster(NAME), clock=lambda: slurm.now)
    cycle.run()
    jobs = [slurm.submit("physics", processing_time=60, partition="pb") for _ in range(count)]
    slurm.works_on |= dict.fromkeys(jobs, 9)
    counted = 0
    for _ in range(9):
        slurm.advance(slurm.now + 20)
        counted += cycle.run().after_end.get("physics", 0)
    with store.cluster(NAME).reading() as view:
        ended = [run.end for run, _ in view.runs.all_runs()]
        rows = {row.organization: row for row in view.history.latest_standings()}
    assert ended == [NOW + 60] * count
    assert counted == 9 * count
    assert rows["physics"].utility == count * worth(NOW, NOW + 60, slurm.now)
    assert rows["physics"].balance == -rows["biology"].balance < 0
