"""Two clusters in one pool, each with its own daemon, on one database of each make."""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import generate_latest
from rich.console import Console

from shapleyprio.cli.shown.status import render
from shapleyprio.daemon.answering.freshness import read_steering
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.checking.check import check
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.fairness.pool import PartState
from shapleyprio.fairness.rule import Ranking, RankingRule, Situation
from shapleyprio.fairness.rules import RULES
from shapleyprio.fairness.worth import Trajectory
from shapleyprio.slurm.findings import Severity
from shapleyprio.store import ClusterStore, Store, StoreError, StoreUnreachableError
from tests.daemon.consortium import BIOLOGY, FIRST, LAST, PHYSICS, Cluster, Crash, Service, config
from tests.store.servers import on_each_database, url_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Connection

    from shapleyprio.config import Config
    from tests.store.servers import Databases

STALE_SECONDS = 600


def in_pool(
    *clusters: str, members: Sequence[Mapping[str, Any]] = (BIOLOGY, PHYSICS), **fairness: str
) -> Config:
    """A pool of these clusters; biology comes first where the balances are equal."""
    return config(
        *members,
        fairness=fairness,
        consortium={"name": "North", "stale_after": f"{STALE_SECONDS}s"},
        pool=[{"name": "all", "clusters": list(clusters)}] if clusters else [],
    )


class Site(Service):
    """One cluster of the pool, whose network to the database can be cut."""

    def __init__(self, name: str, store: Store, configured: Config) -> None:
        self.is_cut = False
        super().__init__(Cluster(name), store, configured, name)

    def restart(self, config: Config | None = None) -> None:
        super().restart(config)
        self.cycle = type(self.cycle)(
            self.config,
            self.slurm,
            ClusterStore(self._begin, "test", self.name),
            clock=lambda: self.slurm.now,
        )

    def scores(self) -> dict[str, int]:
        """Organization -> its score in the last cycle."""
        return {name: row.score for name, row in self.standings().items()}

    def order(self) -> list[str]:
        """The organizations, the first to be served first."""
        points = self.points()
        return sorted(points, key=lambda name: -points[name])

    @contextmanager
    def _begin(self, *, reading: bool = False) -> Iterator[Connection]:
        if self.is_cut:
            raise StoreUnreachableError("store test: no route to host")
        with self.store._begin(reading=reading) as connection:
            yield connection


def pass_time(sites: list[Site], seconds: int) -> None:
    for site in sites:
        site.slurm.wait(seconds)


def lend(site: Site, seconds: int) -> None:
    """Biology fills the cluster, two thirds of which are physics'."""
    site.slurm.submit("biology", processors=12, processing_time=seconds)


@on_each_database
def test_who_lends_at_one_cluster_is_served_first_at_the_other(sites: list[Site]) -> None:
    one, other = sites
    assert other.order() == ["biology", "physics"]
    other.slurm.fill("guest")
    jobs = {name: other.slurm.submit(name, processing_time=60) for name in ("biology", "physics")}
    lend(one, 100)
    pass_time(sites, 200)
    one.run()
    other.run()
    assert other.order() == ["physics", "biology"]
    assert {name: other.slurm.job(job).site_factor for name, job in jobs.items()} == {
        "physics": FIRST,
        "biology": LAST,
    }
    assert other.scores() == one.scores()
    assert other.standings()["physics"].balance == 0  # all of it was earned at the other


def test_a_running_job_counts_by_its_known_course_until_the_next_cycle(
    sites: list[Site],
) -> None:
    one, other = sites
    lend(one, 10**6)
    pass_time(sites, 10)
    one.run()
    before = one.scores()
    pass_time(sites, 50)
    other.run()
    extrapolated = other.scores()
    assert extrapolated["physics"] > before["physics"]
    one.run()
    assert one.scores() == extrapolated


class LeastUsed:
    """Who has used the least comes first; what was used is added up over the pool."""

    name = "least_used"
    criterion = "processor time used, the least first"
    dynamics = "An organization's rank falls as its jobs run."
    estimates = False
    by_balance = False

    def rank(self, situation: Situation) -> Ranking:
        own = {one.name: Trajectory(-one.parts, -one.running, 0) for one in situation.organizations}
        used = situation.with_pool(own)
        return Ranking(
            rule=self.name,
            trajectories=used,
            contributions=dict.fromkeys(used, 0),
            reasons={name: f"used {-path.after(0)}" for name, path in used.items()},
            additive=own,
        )


class LeastUsedHere(LeastUsed):
    """The same, but that each cluster counts for itself."""

    def rank(self, situation: Situation) -> Ranking:
        return replace(super().rank(replace(situation, elsewhere=None)), additive={})


@pytest.mark.parametrize(
    ("rule", "used"), [(LeastUsed(), 12 * 100), (LeastUsedHere(), 0)], ids=["added", "alone"]
)
def test_a_pool_adds_what_the_rule_calls_additive_and_the_reason_is_the_rules(
    rule: RankingRule, used: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, rule.name, rule)
    alone, other = (Site(name, store, in_pool(rule=rule.name)) for name in ("c1", "c2"))
    alone.slurm.submit("physics", processors=12, processing_time=50)  # before the stay
    pass_time([alone, other], 100)
    alone.run()
    assert alone.scores() == {"biology": 0, "physics": -12 * 50}
    both = [alone, other]
    for site in both:
        site.restart(in_pool("c1", "c2", rule=rule.name))
        site.run()
    lend(alone, 100)
    pass_time(both, 150)
    alone.run()
    other.run()
    assert other.scores() == {"biology": -used, "physics": 0}
    assert other.standings()["biology"].reason == f"used {used}"
    if used:
        assert other.order() == ["physics", "biology"]
        assert alone.scores() == other.scores()  # what was used before the stay does not count
    else:
        assert other.order() == ["biology", "physics"]
        assert alone.scores() == {"biology": -12 * 100, "physics": -12 * 50}
    assert read_status(other.store.cluster("c2")).pool is None  # no delays could be shown


def test_an_outage_shows_and_gives_and_takes_nothing(sites: list[Site]) -> None:
    one, other = sites
    lend(one, 10**6)
    pass_time(sites, 60)
    one.run()
    stood = one.scores()
    one.is_cut = True
    pass_time(sites, STALE_SECONDS + 1)
    with pytest.raises(StoreError):
        one.run()
    report = other.run()
    assert other.scores() == stood
    (part,) = report.ranked.pool
    assert part.state is PartState.STALE
    status = read_status(other.store.cluster("c2"))
    assert status.pool is not None
    assert "c1 is stale: its last cycle was at" in " ".join(status.pool.sentences())
    console = Console(file=io.StringIO(), width=200)
    steering = read_steering(other.store.cluster("c2"), 30, clock=lambda: other.slurm.now)
    render(console, status, steering, "command_line")
    assert "c1 is stale: its last cycle was at" in console.file.getvalue()  # type: ignore[attr-defined]
    (shown,) = status.as_json()["pool"]["clusters"]
    assert (shown["cluster"], shown["state"]) == ("c1", "stale")
    metrics = Metrics("c2")
    metrics.publish(report)
    text = generate_latest(metrics.registry).decode()
    assert 'shapleyprio_pool_stale{cluster="c2",other="c1"} 1.0' in text
    assert f'shapleyprio_pool_age_seconds{{cluster="c2",other="c1"}} {STALE_SECONDS + 1}.0' in text
    one.is_cut = False
    one.run()
    (part,) = other.run().ranked.pool
    assert part.state is PartState.CURRENT
    assert other.scores() == one.scores()


def life(sites: list[Site], *, cut: bool = False, killed: bool = False) -> list[dict[str, int]]:
    """The scores at the end of a life in which the first site has trouble in the middle."""
    one, other = sites
    for number in range(8):
        lend(one, 20 + number)
        other.slurm.submit("physics", processors=5, processing_time=45)
        pass_time(sites, 30)
        one.is_cut = cut and 2 <= number < 6
        if killed and number == 4:
            one.slurm.die("before_write")
            waiting = one.slurm.submit("physics", processors=12, processing_time=1)
            with pytest.raises(Crash):
                one.run()
            one.slurm.cancel(waiting)
            one.restart()
        elif one.is_cut:
            standing, asked = one.slurm.jobs(), len(one.slurm.writes)
            with pytest.raises(StoreError):
                one.run()
            assert (one.slurm.jobs(), one.slurm.writes[asked:]) == (standing, [])
        else:
            one.run()
        other.run()
    for site in sites:
        site.run()
    return [site.scores() for site in sites]


@on_each_database
@pytest.mark.parametrize("trouble", ["cut", "killed"])
def test_who_was_cut_off_or_killed_catches_up_exactly(
    trouble: str, sites: list[Site], databases: Databases
) -> None:
    troubled = life(sites, **{trouble: True})
    with databases.store("sqlite") as quiet:
        others = [Site(name, quiet, in_pool("c1", "c2")) for name in ("c1", "c2")]
        for site in others:
            site.run()
        assert troubled == life(others)
    assert troubled[0] == troubled[1]


def test_a_cluster_counts_from_its_join_on_and_what_it_had_before_stays_its_own(
    store: Store,
) -> None:
    one, other = (Site(name, store, in_pool()) for name in ("c1", "c2"))
    lend(one, 100)
    pass_time([one, other], 100)
    one.run()
    alone = one.scores()
    assert alone["physics"] > 0
    for site in (one, other):
        site.restart(in_pool("c1", "c2"))
        site.run()
        assert set(site.scores().values()) == {0}
    assert one.standings()["physics"].balance == alone["physics"]
    lend(one, 100)
    pass_time([one, other], 100)
    one.run()
    other.run()
    assert 0 < other.scores()["physics"] < one.standings()["physics"].balance
    one.restart(in_pool())
    one.run()
    assert one.scores()["physics"] == one.standings()["physics"].balance


def test_what_was_earned_at_a_cluster_that_has_left_counts_as_it_stood(sites: list[Site]) -> None:
    one, other = sites
    lend(one, 10**6)
    pass_time(sites, 100)
    one.run()
    stood = one.scores()
    one.restart(in_pool("c2"))
    other.restart(in_pool("c2"))
    pass_time(sites, 100)
    one.run()
    (part,) = other.run().ranked.pool
    assert part.state is PartState.LEFT
    assert other.scores() == stood
    for site in sites:
        site.restart(in_pool("c1", "c2"))
    one.run()
    assert one.scores() == stood  # and counts once more from now on
    pass_time(sites, 10)
    one.run()
    assert one.scores()["physics"] == stood["physics"] + 8 * 10 * 11 // 2
    other.run()
    assert other.scores() == one.scores()


@on_each_database
def test_a_copy_for_a_dry_run_has_the_whole_pool(sites: list[Site], tmp_path: Path) -> None:
    one, other = sites
    lend(one, 100)
    pass_time(sites, 200)
    one.run()
    other.run()
    other.store.cluster("c2").copy(tmp_path / "copy.db", ["c2"])
    with Store.open(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        rehearsed = Service(other.slurm, copy, other.config, "c2")
        rehearsed.run(dry_run=True)
        assert {name: row.score for name, row in rehearsed.standings().items()} == other.scores()


def test_an_organization_under_another_name_is_shown(store: Store) -> None:
    named = config({**BIOLOGY, "name": "Biology"}, pool=[{"name": "all", "clusters": ["c1", "c2"]}])
    Site("c1", store, in_pool("c1", "c2")).run()
    Site("c2", store, named).run()
    status = read_status(store.cluster("c2"))
    assert status.pool is not None
    assert status.pool.strangers == ("biology", "physics")
    assert "do not exist here: biology, physics" in status.pool.sentences()[-1]


def test_another_horizon_at_a_cluster_of_the_pool_is_shown(store: Store) -> None:
    Site("c1", store, in_pool("c1", "c2", horizon="unlimited")).run()
    site = Site("c2", store, in_pool("c1", "c2", horizon="10d"))
    site.run()
    line = (
        "fairness.horizon is unlimited at c1, and 10 days here: a sum of such balances means little"
    )
    status = read_status(store.cluster("c2"))
    assert status.pool is not None
    assert status.pool.sentences()[-1] == f"{line}."
    assert status.pool.as_json()["other_horizons"] == {"c1": None}

    stored = site.config.store.model_copy(update={"url": url_of(store)})
    found = site.findings(site.config.model_copy(update={"store": stored}))["pool"]
    assert (found.severity, found.message) == (Severity.WARNING, line)

    site.restart(in_pool("c1", "c2", horizon="unlimited").model_copy(update={"store": stored}))
    assert "pool" not in site.findings(site.config)
    site.run()
    status = read_status(store.cluster("c2"))
    assert status.pool is not None
    assert status.pool.other_horizons == {}


def test_a_cluster_of_the_pool_that_never_ran_is_named(store: Store) -> None:
    site = Site("c1", store, in_pool("c1", "c7"))
    site.run()
    status = read_status(store.cluster("c1"))
    assert status.pool is not None
    assert "c7 has had no cycle in the pool yet." in status.pool.sentences()


def test_check_warns_of_a_cluster_that_is_in_no_pool_though_there_are_some(store: Store) -> None:
    site = Site("c1", store, in_pool("c1"))
    assert "pool" not in site.findings(site.config)
    found = site.findings(in_pool("c10", "c2"))["pool"]
    assert found.severity is Severity.WARNING
    assert "is 'c10' this one?" in found.message
    assert "pool" not in site.findings(in_pool())


def pool_findings(site: Site, *clusters: str) -> dict[Severity, str]:
    """What `check` says of the pool, with these clusters in the configuration."""
    configured = in_pool(*clusters)
    stored = configured.store.model_copy(update={"url": url_of(site.store)})
    findings = check(configured.model_copy(update={"store": stored}), site.slurm, site.slurm.now)
    return {found.severity: found.message for found in findings if found.subject == "pool"}


def test_check_points_out_that_the_clusters_of_a_pool_do_not_agree_on_it(
    sites: list[Site],
) -> None:
    one, _ = sites
    assert pool_findings(one, "c1", "c2") == {}
    misspelt = pool_findings(one, "c1", "cc2")
    assert "c2 had its last cycle in this pool, but `clusters` here" in misspelt[Severity.WARNING]
    assert "does 'cc2' mean 'c2'?" in misspelt[Severity.WARNING]
    third = Site("c3", one.store, in_pool("c1", "c2", "c3"))
    assert (
        "`clusters` at c1, c2 does not name"
        in pool_findings(third, "c1", "c2", "c3")[Severity.WARNING]
    )


def test_check_points_out_another_pool_than_that_of_the_last_cycle(sites: list[Site]) -> None:
    """As on a second head node whose configuration is an old one."""
    one, _ = sites
    assert (
        "was in pool 'all' of c1, c2: the next one is in another"
        in pool_findings(one, "c1", "c2", "c9")[Severity.NOTICE]
    )
    assert "was in pool 'all', which the configuration lacks" in pool_findings(one)[Severity.NOTICE]
