"""A ranking rule of somebody else decides what the daemon does, and when."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.answering.explain import explain_job
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.fairness.rule import Ranking, Situation
from shapleyprio.fairness.rules import RULES
from shapleyprio.fairness.worth import Trajectory
from tests.daemon.consortium import FIRST, LAST, NAME, Cluster, Service, config

if TYPE_CHECKING:
    from shapleyprio.store import Store

SECONDS_TO_SWAP = 7


class InTurn:
    """The last of the configuration comes first, until `SECONDS_TO_SWAP` have passed."""

    name = "in_turn"
    criterion = "the reverse order of the configuration"
    dynamics = "An organization's rank changes with time alone."
    estimates = False
    by_balance = False

    def rank(self, situation: Situation) -> Ranking:
        names = [item.name for item in situation.organizations]
        return Ranking(
            rule=self.name,
            trajectories={
                name: Trajectory(value=number * SECONDS_TO_SWAP, rate=-number, acceleration=0)
                for number, name in enumerate(names)
            },
            contributions=dict.fromkeys(names, 0),
            reasons={name: f"number {number}" for number, name in enumerate(names)},
        )


def test_another_rule_decides_order_points_reasons_and_when_the_next_cycle_comes(
    monkeypatch: pytest.MonkeyPatch, slurm: Cluster, store: Store
) -> None:
    monkeypatch.setitem(RULES, InTurn.name, InTurn())
    service = Service(slurm, store, config(fairness={"rule": "in_turn"}))
    slurm.fill("biology")  # so that DirectContr would have physics come first
    jobs = {name: slurm.submit(name, processing_time=9) for name in ("physics", "biology")}
    slurm.wait(100)
    report = service.run()
    assert report.seconds_until_reorder == SECONDS_TO_SWAP
    assert service.points() == {"physics": LAST, "biology": FIRST}
    assert {name: slurm.job(job).site_factor for name, job in jobs.items()} == service.points()
    (push,) = service.pushes(jobs["biology"])
    assert push.reason == "rank 1 of 2, number 1"
    status = json.loads(json.dumps(read_status(store.cluster(NAME)).as_json()))
    assert status["rule"] == "in_turn"
    assert [(row["organization"], row["reason"]) for row in status["organizations"]] == [
        ("biology", "number 1"),
        ("physics", "number 0"),
    ]
    ranked = explain_job(store.cluster(NAME), slurm, str(jobs["physics"])).ranked
    assert ranked is not None
    assert (ranked.rank, ranked.reason, ranked.before) == (2, "number 0", {"biology": 1})


@pytest.mark.parametrize(("section", "key"), [("fairness", "rule"), ("push", "channel")])
def test_only_what_is_registered_can_be_chosen(section: str, key: str) -> None:
    with pytest.raises(ValueError, match=key):
        config(**{section: {key: "unheard_of"}})
