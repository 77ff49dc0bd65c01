"""Clocks that were accepted, and what was on record from a second ahead of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shapleyprio.store import (
    AcceptedClockRow,
    AccountRow,
    CapacityRow,
    DriftRow,
    KeptBack,
    NodeRow,
    PauseRow,
    SteeringRow,
)
from tests.store.examples import BEGIN, exception

if TYPE_CHECKING:
    from shapleyprio.store import Store

NOW = BEGIN + 1000
ACCEPTED = AcceptedClockRow(at=NOW, before=NOW + 7200, ahead=2, user="ann")
STEERED = SteeringRow(since=BEGIN, rule="directcontr", chosen="directcontr", channel="nice")
PAUSE = PauseRow(since=NOW + 60, user="ann", reason="an odd clock", keep=False)
KEPT_BACK = KeptBack(job_id=3, counts_since=BEGIN, kept_since=NOW + 60)
SEEN = DriftRow(
    t=NOW,
    organization="physics",
    schedule="recorded",
    begin=BEGIN,
    reference="ref",
    utility=2,
    fair=1,
    parts=1,
)


def test_they_are_kept_as_long_as_history(store: Store) -> None:
    later = replace(ACCEPTED, at=NOW + 500, user="bob")
    with store.cluster("c").transaction() as rows:
        rows.history.note_accepted_clock(ACCEPTED)
        rows.history.note_accepted_clock(later)
        assert rows.history.accepted_clocks() == [ACCEPTED, later]
        assert rows.history.accepted_clocks(since=NOW + 1) == [later]
        assert rows.prune_history(NOW + 1, pushes_before=0) == 1
        assert rows.history.accepted_clocks() == [later]
    with store.cluster("d").reading() as view:
        assert view.history.accepted_clocks() == []


def test_what_was_so_from_a_second_ahead_is_so_from_the_clock_on(store: Store) -> None:
    node = NodeRow(name="a1", since=BEGIN, processors=4, partitions=("pa",))
    account = AccountRow(name="physics", since=NOW + 60, parent=None)
    brought = CapacityRow(organization="physics", since=NOW + 60, processors={("pa",): 4})
    first = exception(7, NOW + 60)
    over = replace(exception(8, NOW + 60), ended=NOW + 70, ended_by="the job started")
    with store.cluster("c").transaction() as rows:
        for row in (
            STEERED,
            replace(STEERED, since=NOW + 10, channel="qos"),
            replace(STEERED, since=NOW + 20, channel="site_factor"),
        ):
            rows.history.note_steering(row)
        rows.observed.put_layout([node, replace(node, since=NOW + 60, processors=8)], [account])
        rows.observed.correct_capacities((), [brought], 0)
        rows.orders.begin_pause(PAUSE)
        for one in (first, over):
            rows.orders.begin_exception(one)
        rows.history.save_drifts([SEEN, replace(SEEN, t=NOW + 60)])
        rows.observed.save_kept_back([KEPT_BACK])
        rows.runs.save_work_after_end((), asked_until=NOW + 60)
        rows.history.note_accepted_clock(ACCEPTED)

        assert rows.history.drifts() == [SEEN]
        assert rows.observed.kept_back() == {3: replace(KEPT_BACK, kept_since=NOW)}
        assert rows.runs.work_after_end_until() == NOW
        steers = replace(STEERED, since=NOW, channel="site_factor")
        assert rows.history.steering() == [STEERED, steers]
        rows.history.note_steering(replace(steers, since=NOW + 30))
        assert rows.history.steering() == [STEERED, steers]
        assert rows.observed.node_rows() == [node, replace(node, since=NOW, processors=8)]
        assert rows.observed.account_rows() == [replace(account, since=NOW)]
        assert rows.observed.capacities() == [replace(brought, since=NOW)]
        assert rows.orders.pause() == replace(PAUSE, since=NOW)
        assert rows.orders.exceptions(since=0) == [replace(first, since=NOW), over]
