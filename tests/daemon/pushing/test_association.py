"""The channel association: priorities at accounts, which jobs have from their submission on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.daemon.answering.explain import explain_job
from shapleyprio.daemon.checking.check import check
from shapleyprio.daemon.pushing.following import Foreign
from shapleyprio.fairness.scale import scale
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import UNSET_PRIORITY, Coordinators
from shapleyprio.slurm.port import SlurmUnavailableError
from shapleyprio.store import PushState, Store
from tests.daemon.consortium import (
    FIRST,
    LAST,
    NAME,
    NOW,
    PHYSICS,
    QUIET,
    Cluster,
    Crash,
    Service,
    config,
)

SETTINGS = replace(
    QUIET, weights={"Age": 0, "QOS": 0, "Assoc": 1}, flags=frozenset({"NO_NORMAL_ASSOC"})
)
BELOW = {"lab": "physics", "desk": "lab"}
"""Accounts of physics, each below the one before."""

OF_PHYSICS = ("physics", *BELOW)
BIOLOGY = {"name": "biology", "accounts": ["biology"], "partitions": ["pb"]}
CONFIG = config(PHYSICS, BIOLOGY, push={"channel": "association"})
TURNED = config(BIOLOGY, PHYSICS, push={"channel": "association"})


@pytest.fixture
def service(store: Store) -> Service:
    """Physics is listed first and leads, as nobody has done anything."""
    return Service(Cluster(settings=SETTINGS, accounts=BELOW), store, CONFIG)


def own(service: Service) -> dict[str, int]:
    """Account -> what is set at it."""
    found = service.slurm.account_priorities()
    return {account: priority.stored for account, priority in found.items()}


def in_force(service: Service) -> Mapping[str, int]:
    """Account -> what the controller goes by."""
    return service.slurm.priorities_in_force(list(own(service)))


def steered(first: tuple[str, ...], last: tuple[str, ...]) -> dict[str, int]:
    nobody = {"guest": UNSET_PRIORITY}
    return nobody | dict.fromkeys(first, FIRST) | dict.fromkeys(last, LAST)


def test_every_account_of_an_organization_is_named_in_one_write(service: Service) -> None:
    service.run()
    assert own(service) == steered(OF_PHYSICS, ("biology",))
    assert [channel for channel, _ in service.slurm.writes] == ["association"]
    service.run()
    assert service.slurm.writes == []
    (push,) = service.pushes("desk")
    assert (push.original, push.old, push.new) == (UNSET_PRIORITY, UNSET_PRIORITY, FIRST)
    assert push.state == PushState.APPLIED


def test_a_new_job_has_its_priority_when_it_is_submitted(service: Service) -> None:
    service.run()
    service.slurm.fill("guest")
    job = service.slurm.submit("desk", processing_time=9)
    assert service.slurm.job(job).priority == FIRST
    assert service.cycle.activity() is None, "nobody has to look for new jobs"


def test_waiting_jobs_are_touched_once_when_the_order_turns(service: Service) -> None:
    service.slurm.fill("guest")
    jobs = {name: service.slurm.submit(name, processing_time=9) for name in ("desk", "biology")}
    array = service.slurm.submit("biology", processing_time=9, array=5)
    service.slurm.write("site_factor", {str(jobs["desk"]): 7})
    assert service.run().touched == 3
    service.restart(TURNED)
    report = service.run()
    assert report.touched == 3
    found = {job.job_id: job for job in service.slurm.jobs()}
    assert found[jobs["desk"]].association == LAST
    assert found[array].association == found[jobs["biology"]].association == FIRST
    assert found[jobs["desk"]].site_factor == 7
    assert service.run().touched == 0
    assert service.slurm.writes == []


def test_untouched_jobs_follow_after_the_calculation_period(service: Service) -> None:
    service.slurm.fill("guest")
    job = service.slurm.submit("physics", processing_time=9)
    service.restart(config(PHYSICS, BIOLOGY, push={"channel": "association", "touch": False}))
    report = service.run()
    assert (report.touched, service.slurm.job(job).association) == (0, 0)
    assert report.plan.foreign == Foreign()
    service.slurm.wait(SETTINGS.calc_period_seconds)
    assert service.slurm.job(job).association == FIRST


def test_what_others_set_later_at_an_account_stays_and_is_reported(service: Service) -> None:
    service.run()
    service.slurm.write("association", {"lab": 5})
    service.restart(TURNED)
    report = service.run()
    assert report.plan.foreign.targets == ("lab",)
    assert own(service) == steered(("biology",), OF_PHYSICS) | {"lab": 5}
    service.slurm.write("association", {"lab": UNSET_PRIORITY})
    assert service.run().plan.foreign == Foreign()
    assert own(service) == steered(("biology",), OF_PHYSICS)


def test_jobs_of_a_user_with_an_own_priority_are_reported(service: Service) -> None:
    service.slurm.fill("guest")
    service.run()
    service.slurm.set_user_priority("lab", "ann", 10**9)
    job = service.slurm.submit("lab", processing_time=9, user="ann")
    service.slurm.submit("lab", processing_time=9, user="bob")
    report = service.run()
    assert report.plan.foreign.jobs == (str(job),)
    (finding,) = findings(service, "user ann of account lab")
    assert str(10**9) in finding.message
    service.slurm.set_user_priority("lab", "ann", LAST)  # a value that we might have written
    service.slurm.write("site_factor", {str(job): 0})
    service.restart(TURNED)
    service.run()
    service.restart(CONFIG)
    service.run()
    assert service.run().plan.foreign.jobs == (str(job),), "it was touched and did not follow"


def test_a_restored_dump_of_accounting_is_written_over(service: Service) -> None:
    service.run()
    service.slurm.write("association", dict.fromkeys(OF_PHYSICS, UNSET_PRIORITY))
    assert service.run().plan.foreign == Foreign()
    assert own(service) == steered(OF_PHYSICS, ("biology",))


def test_rollback_puts_back_what_was_found_and_leaves_what_others_set(service: Service) -> None:
    found = {"lab": 500, "biology": 0, "guest": 3}
    service.slurm.write("association", found)
    service.run()
    assert own(service) == {**steered(OF_PHYSICS, ("biology",)), "guest": 3}
    service.slurm.write("association", {"desk": 9})
    service.restart(TURNED)
    service.run()
    service.roll_back()
    assert own(service) == {**found, "physics": UNSET_PRIORITY, "desk": 9}
    service.slurm.write("association", {"physics": 8})
    assert service.run().plan.foreign.targets == ("desk",), (
        "what was rolled back is not ours any more"
    )


def test_an_account_that_is_claimed_no_more_is_put_back(service: Service) -> None:
    service.run()
    service.restart(config(BIOLOGY, push={"channel": "association"}))
    service.run()
    assert {own(service)[account] for account in OF_PHYSICS} == {UNSET_PRIORITY}


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
def test_a_daemon_that_dies_at_a_write_loses_nothing(service: Service, moment: str) -> None:
    service.slurm.die(moment)
    with pytest.raises(Crash):
        service.run()
    service.restart(TURNED)
    service.run()
    assert own(service) == steered(("biology",), OF_PHYSICS)
    assert {push.state for push in service.pushes("desk")} <= {
        PushState.APPLIED,
        PushState.UNCONFIRMED,
    }
    service.roll_back()
    assert set(own(service).values()) == {UNSET_PRIORITY}


def test_a_session_that_is_cut_off_is_completed_by_the_next_cycle(service: Service) -> None:
    service.slurm.stop_write_after(2)
    with pytest.raises(SlurmUnavailableError):
        service.run()
    assert {own(service)["physics"], own(service)["desk"]} == {FIRST, UNSET_PRIORITY}
    service.run()
    assert own(service) == steered(OF_PHYSICS, ("biology",))


def test_what_the_controller_has_not_heard_of_is_written_again(service: Service) -> None:
    service.run()
    service.slurm.fill("guest")
    job = service.slurm.submit("desk", processing_time=9)
    service.restart(TURNED)
    service.slurm.lose_changes(2)
    report = service.run()
    assert (report.pushed.applied, report.pushed.unconfirmed, report.touched) == (2, 2, 0)
    last = [service.pushes(account)[-1] for account in (*OF_PHYSICS, "biology")]
    lost = {push.target for push in last if push.state == PushState.UNCONFIRMED}
    assert own(service) == steered(("biology",), OF_PHYSICS)
    stands = in_force(service)
    assert {account for account in lost if stands[account] != own(service)[account]} == lost

    service.slurm.writes.clear()
    report = service.run()
    assert (report.pushed.applied, report.plan.foreign) == (2, Foreign())
    (_, values), _ = service.slurm.writes
    assert values.keys() == lost
    assert {in_force(service)[account] for account in OF_PHYSICS} == {LAST}
    assert service.slurm.job(job).association == LAST
    push = service.pushes(min(lost))[-1]
    assert (push.old, push.new) == (values[push.target], values[push.target])
    assert "until then Slurm went by" in push.reason
    service.slurm.writes.clear()
    service.run()
    assert service.slurm.writes == []


def test_a_rollback_that_the_controller_has_not_heard_of_is_done_again(service: Service) -> None:
    service.run()
    service.slurm.lose_changes(3)
    service.roll_back()
    assert set(own(service).values()) == {UNSET_PRIORITY}
    assert set(in_force(service).values()) == {0}
    service.slurm.writes.clear()
    service.roll_back()
    assert service.slurm.writes == []


def test_what_is_in_force_at_accounts_of_others_is_their_business(service: Service) -> None:
    service.run()
    service.slurm.lose_changes(2)
    service.slurm.write("association", {"guest": 5, "lab": 7})
    service.run()
    assert own(service) == steered(OF_PHYSICS, ("biology",)) | {"guest": 5, "lab": 7}
    assert in_force(service)["guest"] == 0


def test_an_explanation_shows_what_was_written_to_the_account(service: Service) -> None:
    service.run()
    service.slurm.fill("guest")
    job = service.slurm.submit("desk", processing_time=9)
    explained = explain_job(service.store.cluster(NAME), service.slurm, str(job))
    assert [(push.channel, push.target, push.new) for push in explained.pushes] == [
        ("association", "desk", FIRST)
    ]


@given(st.integers(1, 64), st.integers(0, 2**32), st.none() | st.integers(1, 10**9))
def test_all_points_are_priorities_that_an_association_can_have(
    organizations: int, others: int, influence: int | None
) -> None:
    points = scale(organizations, others, influence)
    for level in (0, organizations - 1):
        value = CHANNELS["association"].value(UNSET_PRIORITY, points.points(level))
        assert 1 <= value < 2**31


# -- check


def findings(service: Service, subject: str) -> list[Finding]:
    found = check(service.config, service.slurm, NOW)
    return [finding for finding in found if finding.subject.startswith(subject)]


@pytest.mark.parametrize(
    ("weights", "flags", "subject"),
    [
        ({"Assoc": 0}, {"NO_NORMAL_ASSOC"}, "PriorityWeightAssoc"),
        ({"Assoc": 2}, {"NO_NORMAL_ALL"}, "PriorityWeightAssoc"),
        ({"Assoc": 1}, {"NO_NORMAL_QOS"}, "PriorityFlags"),
    ],
)
def test_check_demands_the_weight_and_the_flag(
    service: Service, weights: dict[str, int], flags: set[str], subject: str
) -> None:
    assert not findings(service, "Priority")
    settings = replace(SETTINGS, weights=weights, flags=frozenset(flags))
    service.slurm.layout_changes["settings"] = settings
    (finding,) = findings(service, subject)
    assert finding.severity == Severity.ERROR
    assert "NO_NORMAL_ASSOC" in finding.remedy


@pytest.mark.parametrize(
    ("touch", "period", "count"), [(False, 300, 1), (False, 60, 0), (True, 300, 0)]
)
def test_check_warns_where_waiting_jobs_follow_late(
    service: Service, *, touch: bool, period: int, count: int
) -> None:
    service.restart(config(push={"channel": "association", "touch": touch}))
    service.slurm.layout_changes["settings"] = replace(SETTINGS, calc_period_seconds=period)
    found = findings(service, "push.touch")
    assert [finding.severity for finding in found] == [Severity.WARNING] * count
    assert all("is 300 s" in finding.message for finding in found)


@pytest.mark.parametrize(
    ("version", "powerless", "severity"),
    [
        ("22.05.8", False, Severity.ERROR),
        ("24.11.5", False, Severity.WARNING),
        ("24.11.5", True, None),
    ],
)
def test_check_warns_of_coordinators(
    service: Service, version: str, *, powerless: bool, severity: Severity | None
) -> None:
    service.slurm.layout_changes["version"] = version
    service.slurm.coordinators_found = Coordinators({"lab": ("ann",)}, powerless=powerless)
    found = findings(service, "coordinators ann")
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_check_finds_accounts_that_differ_and_those_that_inherit(service: Service) -> None:
    assert not findings(service, "organization physics")
    service.slurm.write("association", {"lab": 500})
    (finding,) = findings(service, "organization physics")
    assert "lab: 500" in finding.message
    assert "name=lab " in finding.remedy
    only = {**PHYSICS, "sub_accounts": False}
    service.restart(config(only, BIOLOGY, push={"channel": "association"}))
    (heirs,) = (one for one in findings(service, "accounts") if "inherit" in one.message)
    assert heirs.subject == "accounts desk"


@pytest.mark.parametrize(("version", "count"), [("24.11.5", 1), ("25.05.1", 0), ("26.05.5", 0)])
def test_check_notices_depth_where_slurm_does_not_reach(
    service: Service, version: str, count: int
) -> None:
    service.slurm.layout_changes["version"] = version
    assert len(findings(service, "accounts desk")) == count
