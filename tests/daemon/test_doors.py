"""A ranking rule and a channel of somebody else work from the configuration to the rollback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.answering.explain import explain_job
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.checking.check import check
from shapleyprio.fairness.rule import Contributions, Ranking
from shapleyprio.fairness.rules import RULES
from shapleyprio.fairness.trajectory import Trajectory
from shapleyprio.slurm.channels import CHANNELS, Claims
from shapleyprio.slurm.channels.jobs import SiteFactor
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.port import unchecked
from tests.daemon.consortium import FIRST, LAST, NAME, Cluster, Service, config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from shapleyprio.fairness.ledger import Ledger
    from shapleyprio.slurm.port import Layout
    from shapleyprio.store import Store

SECONDS_TO_SWAP = 7


class InTurn:
    """The last of the configuration comes first, until `SECONDS_TO_SWAP` have passed."""

    name = "in_turn"
    criterion = "the reverse order of the configuration"
    dynamics = "An organization's rank changes with time alone."
    estimates = False

    def rank(
        self,
        ledger: Ledger,
        t: int,
        organizations: Sequence[str],
        estimated: Contributions | None,
    ) -> Ranking:
        return Ranking(
            rule=self.name,
            trajectories={
                name: Trajectory(value=number * SECONDS_TO_SWAP, rate=-number, acceleration=0)
                for number, name in enumerate(organizations)
            },
            contributions=dict.fromkeys(organizations, 0),
            reasons={name: f"number {number}" for number, name in enumerate(organizations)},
        )


class Doubled(SiteFactor):
    """Site factors of twice the points."""

    name = "doubled"

    def value(self, original: int, points: int) -> int:
        return 2 * super().value(original, points)

    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:
        yield Finding(Severity.NOTICE, "doubled", f"{layout.cluster}: {len(claims.qos)} QOS", "-")


class ClusterWithDoubled(Cluster):
    """A Slurm whose adapter has the channel as well."""

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        return super().write("site_factor" if channel == "doubled" else channel, values, check)


def test_another_rule_decides_order_points_reasons_and_when_the_next_cycle_comes(
    monkeypatch: pytest.MonkeyPatch, slurm: Cluster, store: Store
) -> None:
    monkeypatch.setitem(RULES, InTurn.name, InTurn)
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


def test_another_channel_is_written_checked_recorded_and_put_back(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setitem(CHANNELS, Doubled.name, Doubled())
    slurm = ClusterWithDoubled()
    chosen = config(push={"channel": "doubled"})
    service = Service(slurm, store, chosen)
    slurm.fill("biology")
    job = slurm.submit("physics", processing_time=9)
    slurm.wait(10)
    service.run()
    assert slurm.job(job).site_factor == 2 * FIRST
    assert [push.channel for push in service.pushes(job)] == ["doubled"]
    assert ("doubled", "c1: 2 QOS") in {
        (finding.subject, finding.message) for finding in check(chosen, slurm, slurm.now)
    }
    service.roll_back()
    assert slurm.job(job).site_factor == 0
    service.run()
    service.restart(config(push={"channel": "nice"}))
    service.run()
    assert (slurm.job(job).site_factor, slurm.job(job).nice) == (0, -FIRST)


@pytest.mark.parametrize(("section", "key"), [("fairness", "rule"), ("push", "channel")])
def test_only_what_is_registered_can_be_chosen(section: str, key: str) -> None:
    with pytest.raises(ValueError, match=key):
        config(**{section: {key: "unheard_of"}})
