"""What counts in a pool of an organization or a cluster that has left remains as it was."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from shapleyprio.daemon.answering.status import read_status
from shapleyprio.fairness.rules import RULES
from tests.daemon.consortium import BIOLOGY, PHYSICS
from tests.daemon.pools.test_pools import LeastUsed, Site, in_pool, lend, pass_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shapleyprio.fairness.rule import RankingRule
    from shapleyprio.store import Store


@pytest.mark.parametrize("departed", [BIOLOGY, PHYSICS], ids=["debtor", "creditor"])
@pytest.mark.parametrize(
    ("rule", "owed"),
    [(None, 8 * 30 * 31 // 2), (LeastUsed(), 0)],
    ids=["directcontr", "least used"],
)
def test_what_an_organization_earned_and_owes_remains_when_a_cluster_has_it_no_more(
    rule: RankingRule | None,
    owed: int,
    departed: Mapping[str, Any],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the stay there was more of it, which does not count."""
    fairness: dict[str, Any] = {}
    if rule is not None:
        monkeypatch.setitem(RULES, rule.name, rule)
        fairness = {"rule": rule.name}
    sites = [Site(name, store, in_pool(**fairness)) for name in ("c1", "c2")]
    one, other = sites
    for configured in (in_pool(**fairness), in_pool("c1", "c2", **fairness)):
        for site in sites:
            site.restart(configured)
            site.run()
        lend(one, 30)
        pass_time(sites, 30)
        one.run()
    other.run()
    stood = other.scores()
    assert stood["physics"] == owed
    assert stood["biology"] == (-owed if rule is None else -12 * 30)

    (remaining,) = {"biology", "physics"} - {departed["name"]}
    members = [each for each in (BIOLOGY, PHYSICS) if each is not departed]
    one.restart(in_pool("c1", "c2", members=members, **fairness))
    one.slurm.submit("guest", processors=12, processing_time=1)
    one.slurm.advance(one.slurm.now)
    one.run()
    (part,) = other.run().ranked.pool
    assert part.balances.keys() == {"biology", "physics"}
    assert other.scores() == stood
    assert one.scores() == {remaining: stood[remaining]}
    one.restart(in_pool("c1", "c2", **fairness))
    one.run()
    assert one.scores() == stood


def test_an_organization_that_has_left_all_clusters_is_no_stranger(sites: list[Site]) -> None:
    one, other = sites
    lend(one, 100)
    pass_time(sites, 100)
    one.run()
    left = in_pool("c1", "c2", members=[PHYSICS])
    for site in (other, one):
        site.restart(left)
        site.run()
        pool = read_status(other.store.cluster("c2")).pool
        assert pool is not None
        assert pool.strangers == (("biology",) if site is other else ())


def test_the_balance_in_the_pool_is_spread_over_what_was_executed_in_it_alone(store: Store) -> None:
    sites = [Site(name, store, in_pool()) for name in ("c1", "c2")]
    one, other = sites

    def after(seconds: int, *clusters: str) -> list[int | None]:
        """Parts of the pool, as each sees it, once c1 has executed for so long with these in it."""
        for site in sites:
            site.restart(in_pool(*clusters))
            site.run()
        lend(one, seconds)
        pass_time(sites, seconds)
        for site in (one, other):
            site.run()
        pools = [read_status(store.cluster(site.name)).pool for site in sites]
        return [None if pool is None else pool.all_parts for pool in pools]

    assert after(100) == [None, None]
    assert after(50, "c1", "c2") == [12 * 50] * 2
    pool = read_status(store.cluster("c2")).pool
    assert pool is not None
    assert pool.balance_per_part("physics") == Fraction(8 * 50 * 51 // 2, 12 * 50)
    assert after(1000, "c2") == [None, 12 * 50]
    left = read_status(store.cluster("c2")).pool
    assert left is not None
    assert left.balance_per_part("physics") == pool.balance_per_part("physics")
    assert after(10, "c1", "c2") == [12 * 60] * 2
