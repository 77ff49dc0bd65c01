"""Whatever the database undoes for the sake of others, cycles and commands come to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.accounting.ownership import Correction, correct
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.fairness.tenure import Tenure
from shapleyprio.store import PushState, tables
from tests.daemon.consortium import FIRST, NAME
from tests.store.rivals import Rival
from tests.store.servers import on_each_server

if TYPE_CHECKING:
    from sqlalchemy import Table

    from shapleyprio.daemon.accounting.ownership import CorrectedOwnership
    from shapleyprio.store import ClusterStore
    from tests.daemon.consortium import Service


class Contended:
    """A daemon's service, in whose way another connection can stand.

    Attributes:
        store: as the daemon has it, behind its lease.
        cycle: of that daemon.
    """

    def __init__(self, service: Service) -> None:
        rows = service.store.cluster(NAME)
        lease = Lease(rows, seconds=60)
        lease.take()
        self.rival = Rival(service.store, NAME, lease)
        self.store: ClusterStore = rows.fenced(self.rival)
        self.cycle = Cycle(service.config, service.slurm, self.store, lambda: service.slurm.now)


@on_each_server
def test_a_cycle_succeeds_though_its_accounting_was_undone(steered: Service) -> None:
    contended = Contended(steered)
    contended.cycle.run()
    steered.slurm.wait(5)
    contended.rival.arm(tables.watermark)
    report = contended.cycle.run()
    contended.rival.end()
    assert (contended.rival.met, report.conflicts) == (1, 1)
    assert (report.t, report.tally.kept) == (steered.slurm.now, 0)
    assert steered.standings()["biology"].utility == sum(12 * age for age in range(1, 16))
    steered.slurm.wait(5)
    assert contended.cycle.run().conflicts == 0
    assert steered.standings()["biology"].utility == sum(12 * age for age in range(1, 21))


@on_each_server
def test_what_was_written_stays_right_though_its_record_was_undone(steered: Service) -> None:
    job = steered.slurm.submit("physics", processing_time=9)
    contended = Contended(steered)
    steered.slurm.writes.clear()
    steered.slurm.after_write = lambda: contended.rival.arm(tables.push)
    report = contended.cycle.run()
    contended.rival.end()
    assert (contended.rival.met, report.conflicts) == (1, 1)
    assert steered.slurm.writes == [("site_factor", {str(job): FIRST})]
    assert steered.slurm.job(job).site_factor == FIRST
    assert (report.pushed.applied, report.pushed.unconfirmed) == (1, 0)
    assert [push.state for push in steered.pushes(job)] == [PushState.APPLIED]
    managed = steered.managed_value("site_factor", job)
    assert managed is not None
    assert (managed.original, managed.written) == (0, (FIRST,))


@on_each_server
def test_a_rollback_ends_though_its_record_was_undone(steered: Service) -> None:
    contended = Contended(steered)
    steered.slurm.writes.clear()
    steered.slurm.after_write = lambda: contended.rival.arm(tables.push)
    counts = roll_back(contended.store, steered.slurm)
    contended.rival.end()
    assert (contended.rival.met, contended.store.conflicts) == (1, 1)
    assert steered.slurm.writes == [("site_factor", {"2": 0})]
    assert (counts.applied, counts.unconfirmed) == (1, 0)
    assert roll_back(contended.store, steered.slurm).applied == 0


@on_each_server
@pytest.mark.parametrize("table", [tables.watermark, tables.tenure], ids=["watermark", "tenure"])
def test_ownership_is_corrected_once_though_that_was_undone(steered: Service, table: Table) -> None:
    contended = Contended(steered)
    contended.rival.arm(table)
    corrected = _give_to_physics(contended.store, steered)
    contended.rival.end()
    assert (contended.rival.met, contended.store.conflicts) == (1, 1)
    assert corrected.number == 1
    with contended.store.reading() as view:
        assert view.ledger.tenures().of("node", "b1") == [
            Tenure("node", "b1", "physics", None, None)
        ]
        assert len(view.ledger.corrections()) == 1
    assert _give_to_physics(contended.store, steered).number is None


def _give_to_physics(store: ClusterStore, service: Service) -> CorrectedOwnership:
    """The node of biology has been that of physics for always."""
    correction = Correction(
        holders={"node": {"b1": "physics"}},
        since=0,
        at=service.slurm.now,
        user="eve",
        processors={"b1": 4},
        partitions_of={"b1": ("all", "pb")},
        organizations=["physics", "biology"],
        longest_age=600,
    )
    return correct(store, correction)
