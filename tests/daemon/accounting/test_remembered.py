"""What is remembered between transactions holds only if nobody else has written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.remembered import AccountedRecords, KnownRuns
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.pushing.managed import KnownValues
from shapleyprio.fairness.tenure import Tenure
from shapleyprio.store import CorrectionRow, Store
from tests.fairness.examples import job_record
from tests.store.examples import new_push, placed_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from shapleyprio.daemon.accounting.remembered import Remembered
    from shapleyprio.store import ClusterStore

NOW = 1000


@pytest.fixture
def rows(store: Store) -> ClusterStore:
    return store.cluster("c")


def accounted(
    rows: ClusterStore, remembered: Remembered | None = None, *, now: int = NOW
) -> OpenLedger:
    """A round in which one job is seen to run; it is committed."""
    with rows.transaction() as transaction:
        opened = OpenLedger(
            transaction,
            horizon=None,
            opens=0,
            ask_holders=lambda: {"account": {"phys": "physics"}, "node": {"n1": "physics"}},
            remembered=remembered,
        )
        opened.ingest([job_record(1, start=100, state="RUNNING")], now)
        opened.close(now, observed_until=now)
    return opened


def nothing(_rows: ClusterStore) -> None:
    pass


def another_daemon(rows: ClusterStore) -> None:
    with Lease(rows, seconds=60).held():
        pass


def a_later_round(rows: ClusterStore) -> None:
    accounted(rows, now=NOW + 1)


def a_correction(rows: ClusterStore) -> None:
    with rows.transaction() as transaction:
        transaction.ledger.save_tenures(
            {("node", "n1"): [Tenure("node", "n1", "biology", None, None)]}
        )
        row = CorrectionRow(number=1, kind="node", name="n1", at=0, user="", before=(), after=())
        transaction.ledger.save_corrections([row])


@pytest.mark.parametrize(
    ("what", "holds"),
    [(nothing, True), (another_daemon, False), (a_later_round, False), (a_correction, False)],
)
def test_what_is_remembered_holds_until_somebody_else_writes(
    rows: ClusterStore, what: Callable[[ClusterStore], None], *, holds: bool
) -> None:
    remembered = accounted(rows).remember()
    what(rows)
    opened = accounted(rows, remembered, now=NOW + 1)
    assert (opened.tenures is remembered.tenures) is holds
    with rows.reading() as view:
        assert set(opened.tenures) == set(view.ledger.tenures())
        assert opened.ledger.entries == view.ledger.entries()


def test_nothing_is_remembered_under_another_horizon(rows: ClusterStore) -> None:
    remembered = accounted(rows).remember()
    with rows.transaction() as transaction:
        opened = OpenLedger(
            transaction, horizon=600, opens=0, ask_holders=dict, remembered=remembered
        )
        assert opened.ledger is not remembered.ledger


def test_an_unfinished_run_counts_once_for_its_organization(rows: ClusterStore) -> None:
    first = [
        placed_run(1, owners=("biology", "chemistry")),
        placed_run(2),
        placed_run(3, end=placed_run(3)[0].begin + 1),
    ]
    with rows.transaction() as transaction:
        transaction.runs.put(first)
        runs = KnownRuns()
        assert runs.running(transaction.runs) == {"physics": 2}
        runs.put(transaction.runs, [placed_run(4, organization="chemistry")], [])
        ended = placed_run(2, end=placed_run(2)[0].begin + 1)
        runs.put(transaction.runs, [ended], [ended[0].key])
        assert runs.running(transaction.runs) == {"physics": 1, "chemistry": 1}
        runs.remove(transaction.runs, [first[0][0].key])
        assert runs.running(transaction.runs) == {"chemistry": 1}
        assert runs.unfinished(transaction.runs) == {placed_run(4)[0].key}
        assert runs.running(transaction.runs) == KnownRuns().running(transaction.runs)


def test_values_that_were_pushed_since_are_read_anew(rows: ClusterStore) -> None:
    values = KnownValues("nice")

    def push(job: int, new: int, channel: str = "nice") -> None:
        with rows.transaction() as transaction:
            transaction.pushes.plan([new_push(str(job), new, channel=channel)])

    def agrees() -> None:
        with rows.reading() as view:
            assert values.read(view) == view.pushes.managed_values("nice")

    for job in range(3):
        push(job, -5)
    agrees()
    push(1, -7)
    push(4, -9, "site_factor")
    push(9, -1)
    agrees()
    with rows.transaction() as transaction:
        transaction.pushes.prune_managed_values("nice", {"9"})
    values.forget()
    agrees()
    another_daemon(rows)
    agrees()


def test_a_record_of_a_waiting_job_is_known_while_answers_bring_it() -> None:
    records, waiting = AccountedRecords(), job_record(1, start=None, state="PENDING")
    records.begin()
    records.add_unstarted(waiting)
    same = replace(waiting)
    for _ in range(3):
        records.begin()
        assert list(records.new_among([waiting, same])) == [same]
        assert list(records.find([waiting, same])) == [(waiting, waiting), (same, None)]
    records.begin()
    records.begin()
    assert list(records.find([waiting])) == [(waiting, None)]


def test_records_are_forgotten_when_they_would_be_accounted_otherwise() -> None:
    records, waiting = AccountedRecords(), job_record(1, start=None, state="PENDING")
    for sizes, at in (({"n1": 4}, 9), ({"n1": 4}, 8)):
        records.hold_for({}, 9)
        records.add_unstarted(waiting)
        records.hold_for(sizes, at)
        assert list(records.new_among([waiting])) == [waiting]
