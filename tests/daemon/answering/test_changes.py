"""One timeline has all that can make priorities other than they were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shapleyprio.daemon.accounting.cluster_clock import AccountingError
from shapleyprio.daemon.answering.changes import Change, read_changes
from shapleyprio.slurm.port import SlurmUnavailableError
from shapleyprio.store import AcceptedClockRow, CorrectionRow, PauseRow
from tests.daemon.consortium import BIOLOGY, NAME, NOW, PHYSICS, Service, config
from tests.store.examples import exception

PATIENCE = 90


def changes(service: Service, since: int = NOW) -> list[Change]:
    with service.store.cluster(NAME).reading() as view:
        return read_changes(view, since, PATIENCE)


def told(service: Service, since: int = NOW) -> list[tuple[int, str, str]]:
    return [(one.at - NOW, one.kind, one.what) for one in changes(service, since)]


def test_nothing_changed_before_the_first_cycle(service: Service) -> None:
    assert told(service) == []


def test_who_got_what_by_which_rule_and_channel(service: Service) -> None:
    service.run()
    service.slurm.wait(30)
    service.restart(
        config(PHYSICS | {"nodes": ["a1"]}, BIOLOGY | {"nodes": ["a2"]}, push={"channel": "nice"})
    )
    service.run()
    assert told(service) == [
        (0, "steering", "rule directcontr, channel site_factor"),
        (30, "ownership", "node a2: physics → biology"),
        (30, "steering", "rule directcontr, channel nice"),
    ]
    assert [kind for _, kind, _ in told(service, NOW + 30)] == ["ownership", "steering"]


def test_a_correction_names_who_made_it(service: Service) -> None:
    service.run()
    row = CorrectionRow(
        number=1, kind="node", name="a1", at=NOW + 5, user="ann",
        before=(("physics", None),), after=(("biology", None),),
    )  # fmt: skip
    with service.store.cluster(NAME).transaction() as rows:
        rows.ledger.save_corrections([row, replace(row, name="a2")])
    assert (5, "ownership", "ann corrected who had node a1, node a2") in told(service)


def test_cycles_that_fail_for_one_reason_are_one_line_and_silence_is_one(service: Service) -> None:
    service.run()
    service.slurm.take_down("slurmctld")
    for _ in range(3):
        service.slurm.wait(30)
        with pytest.raises(SlurmUnavailableError):
            service.run()
    service.slurm.bring_up("slurmctld")
    service.slurm.wait(30)
    service.slurm.skew = -10_000
    with pytest.raises(AccountingError):
        service.run()
    service.slurm.skew = 0
    service.slurm.wait(3600)
    service.run()
    first, second, silence = changes(service)[1:]
    assert (first.at - NOW, first.until, first.kind) == (30, NOW + 90, "failure")
    assert first.what.startswith("3 cycles failed (slurm_unavailable): slurmctld does not answer")
    assert second.what.startswith("1 cycle failed (clock_backwards): ")
    assert (silence.at - NOW, silence.until) == (120, NOW + 3720)
    assert (silence.kind, silence.what) == ("outage", "no cycle for 60 min")


def test_a_pause_names_who_why_and_for_how_long(service: Service) -> None:
    pause = PauseRow(since=NOW + 5, user="ann", reason="a demo", keep=False)
    with service.store.cluster(NAME).transaction() as rows:
        rows.orders.begin_pause(pause)
        rows.orders.end_pause(NOW + 65, "bob")
    (change,) = changes(service)
    assert (change.at, change.until, change.kind) == (NOW + 5, NOW + 65, "pause")
    assert change.what == "ann paused, priorities are put back: a demo"


def test_in_one_second_a_pause_comes_before_what_follows_from_it(service: Service) -> None:
    with service.store.cluster(NAME).transaction() as rows:
        rows.orders.begin_pause(PauseRow(since=NOW, user="ann", reason="a demo", keep=False))
    service.run()
    assert [kind for _, kind, _ in told(service)] == ["pause", "steering"]


def test_an_exception_names_whose_job_who_why_and_what_ended_it(service: Service) -> None:
    row = exception(7, NOW + 5)
    with service.store.cluster(NAME).transaction() as rows:
        rows.orders.begin_exception(row)
        rows.orders.end_exception(7, NOW + 65, "the job started")
    (change,) = changes(service)
    assert (change.at, change.until, change.kind) == (NOW + 5, NOW + 65, "exception")
    put = "ann put job 7 before all others of physics: a deadline (the job started)"
    assert change.what == put


def test_a_clock_that_was_accepted_names_who_accepted_it(service: Service) -> None:
    row = AcceptedClockRow(at=NOW + 5, before=NOW + 7205, ahead=1, user="ann")
    with service.store.cluster(NAME).transaction() as rows:
        rows.history.note_accepted_clock(row)
    what = "ann accepted the controller's clock, 2 h behind the ledger"
    assert changes(service) == [Change(at=NOW + 5, kind="clock", what=what)]


def test_pruned_cycles_are_no_outage(service: Service) -> None:
    for _ in range(9):
        service.slurm.wait(30)
        service.run()
    with service.store.cluster(NAME).transaction() as rows:
        failed = rows.history.cycles()[-1]
        rows.history.save_cycle(replace(failed, outcome="slurm_refused", message="no"))
        rows.prune_history(NOW + 200, pushes_before=0)
        assert [row.number for row in rows.history.cycles()] == [9, 8, 7, 1]
    assert [one.kind for one in changes(service, 0)] == ["steering", "failure"]


def test_another_slurm_and_another_shapleyprio_are_upgrades(service: Service) -> None:
    service.slurm.layout_changes["version"] = "24.11.5"
    service.run()
    service.slurm.wait(30)
    service.slurm.layout_changes["version"] = "25.05.1"
    service.restart()
    service.run()
    with service.store.cluster(NAME).transaction() as rows:
        rows.history.note_configuration(
            NOW - 10, "0.1", {"push.channel": "nice", "drift.window": "7 d"}
        )
        rows.history.note_refusal(NOW + 40, "0.1", "push.channel: no")
        rows.history.note_configuration(NOW + 50, "0.2", {"push.channel": "qos"})
    assert told(service)[1:] == [
        (30, "upgrade", "Slurm 24.11.5 → 25.05.1"),
        (
            40,
            "configuration",
            "a configuration was refused, the one before stays: push.channel: no",
        ),
        (50, "upgrade", "shapleyprio 0.1 → 0.2"),
        (50, "configuration", "push.channel: nice → qos"),
        (50, "configuration", "drift.window: 7 d → not set"),
    ]
