"""Who ordered the queue while what is audited came about, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shapleyprio.common.wording import clock_time
from shapleyprio.replay.audit.auditing import Audit, audit
from shapleyprio.replay.audit.findings import advice
from shapleyprio.replay.audit.in_force import MOST_NAMED, InForce
from shapleyprio.store import SteeringRow
from tests.replay.audit.recorded import recorded
from tests.replay.strategies import Job

BEGIN, END = 1_800_000_000, 1_800_100_000
SHAPLEY = SteeringRow(since=BEGIN - 500, rule="shapley", chosen="shapley", channel="nice")
DIRECTCONTR = replace(SHAPLEY, rule="directcontr", chosen="directcontr")
OVER = SteeringRow(since=END - 10, rule="", chosen="", channel="")
WAITED = recorded(
    [1, 1], [(Job(0, 0, 10), 30, 0), (Job(1, 0, 40), 0, 1), (Job(1, 0, 30), 0, 0)], length=100
)
"""Under DirectContr organization 0 would not have waited for its own processor."""


def window(*steering: SteeringRow) -> InForce:
    return InForce(begin=BEGIN, end=END, steering=steering)


def order_of(found: Audit, *steering: SteeringRow) -> str:
    """What is advised about the order of the queue."""
    return advice(found, (), window(*steering))[0]


@pytest.fixture(scope="module")
def unfair() -> Audit:
    return audit(WAITED)


def test_the_rule_is_the_one_that_ranked_most_of_the_window() -> None:
    late = replace(SHAPLEY, since=END - 20_000)
    assert window().rule == window(late).rule == ""
    assert window(SHAPLEY).rule == "shapley"
    assert window(DIRECTCONTR, late).rule == "directcontr"
    assert window(DIRECTCONTR, replace(SHAPLEY, since=BEGIN + 20_000)).rule == "shapley"
    assert window(SHAPLEY, replace(OVER, since=BEGIN + 10)).rule == ""
    assert window(replace(SHAPLEY, since=END + 10)).rule == ""  # only since then


def test_a_moment_without_an_estimate_does_not_count_as_a_change() -> None:
    fallen_back = replace(SHAPLEY, since=BEGIN + 50, rule="directcontr")
    steered = window(SHAPLEY, fallen_back, replace(SHAPLEY, since=BEGIN + 100))
    assert (steered.rule, steered.whole, steered.since) == ("shapley", True, SHAPLEY.since)
    assert not window(SHAPLEY, replace(fallen_back, since=BEGIN + 20_000)).whole
    assert window(SHAPLEY, OVER).since is None


def test_directcontr_is_compared_unless_another_rule_steered() -> None:
    assert window().compared == window(DIRECTCONTR).compared == ("directcontr", "fairshare")
    assert window(SHAPLEY).compared == ["fairshare"]
    found = audit(WAITED, compared=window(SHAPLEY).compared)
    assert [one.result.schedule.policy for one in found.schedules][2:] == ["fairshare"]


def test_what_ordered_the_queue_and_what_changed_hands_is_said() -> None:
    assert window().sentences() == ()
    changed = replace(window(DIRECTCONTR, OVER), changes=("node b3: physics → biology since x",))
    assert changed.sentences() == (
        f"Order of the queue: the rule directcontr by the channel nice since "
        f"{clock_time(DIRECTCONTR.since)}, not by shapleyprio since {clock_time(OVER.since)}",
        "Changes of ownership: node b3: physics → biology since x",
    )
    waiting = replace(SHAPLEY, since=BEGIN + 5, rule="directcontr")
    (said,) = window(waiting).sentences()
    assert "nothing known of shapleyprio before, the rule directcontr instead of shapley" in said
    many = [replace(SHAPLEY, since=BEGIN + n, channel=f"c{n}") for n in range(MOST_NAMED + 5)]
    assert " and 5 more" in window(replace(SHAPLEY, since=BEGIN), *many[1:]).sentences()[0]


def test_what_is_advised_follows_from_who_orders_the_queue(unfair: Audit) -> None:
    assert order_of(unfair).startswith("Let shapleyprio order the queue, or ask what keeps it")
    assert order_of(unfair, SHAPLEY, OVER) == (
        "Let shapleyprio order the queue again, or say why not: it has not done so since "
        f"{clock_time(OVER.since)}."
    )
    late = replace(SHAPLEY, since=END + 10)
    assert order_of(unfair, late) == (
        "Wait for the next period before you change the order of the queue: the rule shapley of "
        f"shapleyprio has decided it only since {clock_time(late.since)}."
    )
    without = replace(SHAPLEY, rule="directcontr")
    assert "why the rule shapley has no estimates: directcontr ranks" in order_of(unfair, without)
    steered = audit(WAITED, compared=window(SHAPLEY).compared)
    said = order_of(steered, SHAPLEY)
    assert said.startswith("Leave the order of the queue to the rule shapley, which has decided it")
    assert clock_time(SHAPLEY.since) in said
    assert "let shapleyprio" not in " ".join(advice(steered, (), window(SHAPLEY))).lower()


def test_directcontr_is_held_against_what_it_would_have_done(unfair: Audit) -> None:
    said = order_of(unfair, DIRECTCONTR)
    assert said.startswith("Find out with `shapleyprio check` what keeps the rule directcontr")
    assert "7.5 s" in said
    assert "instead of" in said
    result = replace(
        unfair.recorded.result,
        schedule=replace(unfair.recorded.result.schedule, policy="directcontr"),
    )
    alike = replace(unfair.recorded, result=result)
    said = order_of(replace(unfair, schedules=(*unfair.schedules[:2], alike)), DIRECTCONTR)
    assert said.startswith("Consider the rule shapley: the rule directcontr")
    fair = audit(recorded([1, 1], [(Job(0, 0, 10), 0, 0), (Job(1, 0, 40), 0, 1)], length=100))
    assert order_of(fair, DIRECTCONTR).startswith("Leave the order of the queue to the rule direct")
