"""Who owned what since when can be corrected, and the past then counts as if it had been so."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from shapleyprio.common.wording import clock_time
from shapleyprio.config.membership import membership
from shapleyprio.daemon.accounting.allocating import CorrectionError
from shapleyprio.daemon.accounting.ownership import (
    Correction,
    correct,
    find,
    find_organization,
    holders_in,
    read_ownership,
)
from shapleyprio.daemon.checking.check import check
from shapleyprio.daemon.steering.dry_run import private_copy
from shapleyprio.fairness.tenure import Tenure, Tenures
from shapleyprio.slurm.findings import Severity
from shapleyprio.store import Store
from shapleyprio.store.repositories.ledgers import Ledgers
from shapleyprio.store.repositories.observed import Observations
from shapleyprio.store.repositories.runs import Runs
from shapleyprio.store.scope import Scope
from tests.daemon.consortium import BIOLOGY, NAME, NOW, PHYSICS, Cluster, Service, config, estimate
from tests.store.servers import on_each_database, url_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from shapleyprio.config import Config
    from shapleyprio.daemon.accounting.ownership import CorrectedOwnership
    from shapleyprio.fairness.tenure import Kind

EMPTY = {**PHYSICS, "accounts": [], "partitions": []}
"""As `init` drafts an organization of which it knows nothing."""

SINCE = {"fairness": {"since": "2027-01-15T07:00:00Z"}}
"""Before all jobs."""

BEGAN = NOW - 30 * 86_400
"""Where ledgers open that nobody says more about."""


def recount(service: Service, since: int = 0) -> CorrectedOwnership:
    """All by the configuration that the service has now."""
    members = membership(service.config.organizations, service.slurm.layout())
    return apply(service, holders_in(members), since)


def apply(
    service: Service, holders: Mapping[Kind, Mapping[str, str]], since: int = 0, user: str = "eve"
) -> CorrectedOwnership:
    layout = service.slurm.layout()
    correction = Correction(
        holders=holders,
        since=since,
        at=service.slurm.now,
        user=user,
        processors={name: node.tres["cpu"] for name, node in layout.nodes.items()},
        partitions_of=layout.partitions_of_nodes(),
        organizations=[member.name for member in service.config.organizations],
        longest_age=service.config.estimation.longest_age,
    )
    return correct(service.store.cluster(service.name), correction)


def known(service: Service) -> dict[str, object]:
    """All that the next cycle goes on from, but for what is nothing."""
    with service.store.cluster(service.name).reading() as view:
        entries = view.ledger.entries().items()
        return {
            "ledger": {pair: entry for pair, entry in entries if entry.total.processors},
            "tenures": sorted(view.ledger.tenures(), key=repr),
            "runs": list(view.runs.all_runs()),
            "capacities": view.observed.capacities(),
            "watermark": view.ledger.watermark(),
        }


def values(service: Service) -> dict[str, tuple[int, int, int]]:
    """Organization -> φ̃, ψ and points after the last cycle."""
    return {
        name: (row.contribution, row.utility, row.priority)
        for name, row in service.standings().items()
    }


@pytest.fixture
def busy(slurm: Cluster) -> Cluster:
    """On which jobs of both organizations have run and run."""
    slurm.submit("physics", processors=2, processing_time=300)
    slurm.fill("biology", 700)
    slurm.submit("physics", processors=12, processing_time=10**6)
    slurm.wait(1000)
    return slurm


def afresh(slurm: Cluster, configured: Config, store: Store) -> Service:
    """After a cycle of another daemon that never knew better."""
    service = Service(slurm, store, configured, name="afresh")
    service.run(dry_run=True)
    return service


# -- the past is as if it had always been so


@pytest.mark.parametrize("cycles", ["the mistake", "the mistake, then the correction"])
def test_a_mistake_in_the_first_cycle_is_repaired_as_if_it_had_not_been(
    busy: Cluster, store: Store, cycles: str
) -> None:
    service = Service(busy, store, config(EMPTY, BIOLOGY, **SINCE))
    service.run(dry_run=True)
    assert values(service)["physics"][:2] == (0, 0)
    busy.wait(100)
    service.restart(config(**SINCE))
    if cycles != "the mistake":
        service.run(dry_run=True)
        busy.wait(50)
        service.run(dry_run=True)
        contribution, utility, _ = values(service)["physics"]
        assert (contribution, utility) == (8 * 1275, 12 * 1275)  # what came before is lost
        busy.wait(100)
    found = recount(service)
    service.run(dry_run=True)
    fresh = afresh(busy, config(**SINCE), store)
    assert values(service) == values(fresh)
    assert values(fresh)["physics"][0] > 700_000
    ours, theirs = known(service), known(fresh)
    assert ours.keys() == theirs.keys()
    for what in ours.keys() - {"watermark"}:
        assert ours[what] == theirs[what], what
    assert found.before["physics"].balance != found.after["physics"].balance != 0


def test_a_correction_says_what_the_next_cycle_then_finds(busy: Cluster, store: Store) -> None:
    service = Service(busy, store, config(EMPTY, BIOLOGY))
    service.run(dry_run=True)
    service.restart(config())
    found = recount(service)
    assert found.t == busy.now
    service.run(dry_run=True)
    for name, standing in found.after.items():
        assert values(service)[name][:2] == (standing.contribution, standing.utility)


def test_a_node_is_anothers_since_any_second_between(slurm: Cluster, store: Store) -> None:
    service = Service(slurm, store)
    slurm.submit("physics", processors=12, processing_time=10**6)
    slurm.advance(slurm.now)
    slurm.wait(100)
    service.run(dry_run=True)
    apply(service, {"node": {"a2": "biology"}}, NOW + 40)
    with store.cluster(NAME).reading() as view:
        found = view.ledger.tenures().of("node", "a2")
        capacities = view.observed.capacities()
    assert [(one.organization, one.since, one.until) for one in found] == [
        ("physics", None, NOW + 40),
        ("biology", NOW + 40, None),
    ]
    opened = slurm.now - 30 * 86_400
    assert [(row.organization, row.since, row.processors) for row in capacities] == [
        ("biology", opened, {("all", "pb"): 4}),
        ("physics", opened, {("all", "pa"): 8}),
        ("biology", NOW + 40, {("all", "pb"): 4, ("all", "pa"): 4}),
        ("physics", NOW + 40, {("all", "pa"): 4}),
    ]
    service.restart(config({**PHYSICS, "nodes": ["a1"], "partitions": []},
                           {**BIOLOGY, "nodes": ["a2"]}))  # fmt: skip
    service.run(dry_run=True)
    physics, biology = values(service)["physics"], values(service)["biology"]
    whole, late = 4 * 100 * 101 // 2, 4 * 60 * 61 // 2
    assert physics[0] == 2 * whole - late
    assert biology[0] == whole + late
    assert physics[1] == 3 * whole
    apply(service, {"node": {"a2": "physics"}}, NOW + 70)
    apply(service, {"node": {"a2": "biology"}}, NOW + 40)
    with store.cluster(NAME).reading() as view:
        assert view.ledger.tenures().of("node", "a2") == found
        assert view.observed.capacities() == capacities


def test_what_is_so_already_changes_nothing_and_is_not_on_record(
    busy: Cluster, store: Store
) -> None:
    service = Service(busy, store)
    service.run(dry_run=True)
    before = known(service)
    for since in (0, BEGAN, NOW + 5):
        found = recount(service, since)
        assert (found.number, list(found.tenures)) == (None, [])
    assert known(service) == before
    assert read_ownership(store.cluster(NAME)).corrections == []


def test_who_corrected_what_is_on_record(busy: Cluster, store: Store) -> None:
    service = Service(busy, store)
    service.run(dry_run=True)
    apply(service, {"node": {"a1": "biology", "a2": "biology"}}, NOW + 10)
    apply(service, {"account": {"guest": "physics"}}, user="root, by sudo of ann")
    rows = read_ownership(store.cluster(NAME)).corrections
    assert [(row.number, row.kind, row.name, row.user) for row in rows] == [
        (1, "node", "a1", "eve"),
        (1, "node", "a2", "eve"),
        (2, "account", "guest", "root, by sudo of ann"),
    ]
    assert rows[0].before == (("physics", None),)
    assert rows[0].after == (("physics", None), ("biology", NOW + 10))
    assert rows[2].after == (("physics", None),)
    assert {row.at for row in rows} == {busy.now}


def test_names_that_were_never_heard_of_are_left_to_the_next_cycle(
    busy: Cluster, store: Store
) -> None:
    service = Service(busy, store)
    service.run(dry_run=True)
    found = apply(service, {"node": {"z9": "physics"}, "account": {"chemistry": "physics"}})
    assert list(found.tenures) == []


def test_estimates_that_may_still_be_relied_on_are_deleted(busy: Cluster, store: Store) -> None:
    service = Service(busy, store)
    service.run(dry_run=True)
    with store.cluster(NAME).transaction() as rows:
        for t in (busy.now - 5000, busy.now - 10):
            rows.estimates.save_estimate([estimate(t)], [])
    recount(service)
    with store.cluster(NAME).reading() as view:
        assert [row.t for row in view.estimates.latest_estimate()] == [busy.now - 10]
    apply(service, {"account": {"guest": "physics"}})
    with store.cluster(NAME).reading() as view:
        assert [row.t for row in view.estimates.latest_estimate()] == [busy.now - 5000]


@on_each_database
def test_a_correction_that_is_tried_on_a_copy_finds_the_same(busy: Cluster, store: Store) -> None:
    service = Service(busy, store, config(EMPTY, BIOLOGY))
    service.run(dry_run=True)
    service.restart(config())
    with private_copy(url_of(store), [NAME]) as (_, copy_url), Store.open(copy_url) as copy:
        tried = recount(Service(busy, copy, config()))
    assert read_ownership(store.cluster(NAME)).corrections == []
    found = recount(service)
    assert tried.after == found.after
    service.run(dry_run=True)
    fresh = afresh(busy, config(), store)
    assert values(service) == values(fresh)
    assert known(service)["capacities"] == known(fresh)["capacities"]
    rows = read_ownership(store.cluster(NAME)).corrections
    assert ("a1", (("", None),), (("physics", None),)) in [
        (row.name, row.before, row.after) for row in rows
    ]


# -- what cannot be done


def test_what_is_no_longer_stored_cannot_be_corrected(busy: Cluster, store: Store) -> None:
    service = Service(busy, store, config(fairness={"horizon": "100s"}, service={"overlap": "1s"}))
    for _ in range(3):
        service.run(dry_run=True)
        busy.wait(400)
    service.run(dry_run=True)
    assert service.cycle.prune()
    pruned = read_ownership(store.cluster(NAME)).correctable
    before = known(service)
    with pytest.raises(CorrectionError) as refused:
        apply(service, {"node": {"a1": "biology"}}, pruned - 1)
    assert str(refused.value) == (
        f"runs that ended by {clock_time(pruned)} are older than the horizon and no longer stored; "
        "ownership can be corrected from then on, not before"
    )
    assert known(service) == before
    assert apply(service, {"node": {"a1": "biology"}}, pruned).number == 1


def test_the_future_cannot_be_corrected(busy: Cluster, store: Store) -> None:
    service = Service(busy, store)
    service.run(dry_run=True)
    with pytest.raises(CorrectionError, match="lies in the future"):
        apply(service, {"node": {"a1": "biology"}}, busy.now + 1)


def test_before_the_first_cycle_there_is_nothing_to_correct(busy: Cluster, store: Store) -> None:
    service = Service(busy, store)
    with pytest.raises(CorrectionError, match="no ledger of cluster c1 yet"):
        recount(service)
    with pytest.raises(CorrectionError, match="no ledger of cluster c1 yet"):
        read_ownership(store.cluster(NAME))


def test_since_the_daemon_was_stopped_it_can_be_corrected_too(slurm: Cluster, store: Store) -> None:
    service = Service(slurm, store)
    slurm.submit("physics", processors=12, processing_time=10**6)
    slurm.advance(slurm.now)
    service.run(dry_run=True)
    slurm.wait(100)
    found = apply(service, {"node": {"b1": "physics"}}, slurm.now - 30)
    assert found.t == slurm.now - 30
    service.restart(config({**PHYSICS, "nodes": ["b1"]}, BIOLOGY))
    service.run(dry_run=True)
    assert values(service)["biology"][0] == 4 * (100 * 101 - 30 * 31) // 2


# -- kill -9


@pytest.mark.parametrize(
    ("repository", "moment"),
    [
        (Ledgers, "save_tenures"),
        (Runs, "put"),
        (Observations, "correct_capacities"),
        (Ledgers, "save_corrections"),
    ],
)
def test_killed_at_any_moment_all_of_it_was_done_or_nothing(
    busy: Cluster, store: Store, repository: type[Scope], moment: str
) -> None:
    service = Service(busy, store, config(EMPTY, BIOLOGY))
    service.run(dry_run=True)
    service.restart(config())
    before = known(service)
    url = url_of(store)
    store.close()
    child = os.fork()
    if child == 0:
        method = getattr(repository, moment)

        def and_die(*arguments: Any) -> None:
            method(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(repository, moment, and_die)
        with Store.open(url) as opened:
            recount(Service(busy, opened, config()))
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert known(service) == before
    assert read_ownership(store.cluster(NAME)).corrections == []
    assert recount(service).number == 1


# -- what is meant by a name


def tenures(*held: tuple[Kind, str, str]) -> Tenures:
    return Tenures(Tenure(kind, name, to, None, None) for kind, name, to in held)


SOME = tenures(
    ("account", "physics", "physics"), ("node", "a1", "physics"), ("node", "a2", "old"),
    ("account", "both", "physics"), ("node", "both", "old"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "meant"),
    [
        ("physics", None, ("account", ["physics"])),
        ("a2", None, ("node", ["a2"])),
        ("a[1-2]", None, ("node", ["a1", "a2"])),
        ("a1,a2", "node", ("node", ["a1", "a2"])),
        ("both", "node", ("node", ["both"])),
        ("both", "account", ("account", ["both"])),
    ],
)
def test_a_name_or_a_host_list_is_found(text: str, kind: Kind | None, meant: object) -> None:
    assert find(SOME, text, kind) == meant


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("both", None, "'both' is an account and a node; say which with --kind account or --kind"),
        ("physic", None, "no account or node 'physic' is known; did you mean 'phys"),
        ("physics", "node", "no node 'physics' is known; `shapleyprio ownership` lists"),
        ("a[1-3]", None, "no node 'a3' is known; `shapleyprio own"),
        ("a[1-", None, r"no account or node 'a\[1-' is known"),
    ],
)
def test_an_unknown_name_is_refused_with_a_remedy(
    text: str, kind: Kind | None, message: str
) -> None:
    with pytest.raises(CorrectionError, match=message):
        find(SOME, text, kind)


def test_organizations_are_those_configured_and_those_that_left() -> None:
    assert [find_organization(name, ["new"], SOME) for name in ("new", "old", "nobody")] == [
        *("new", "old", ""),
    ]
    with pytest.raises(CorrectionError, match="known are new, old, physics, nobody"):
        find_organization("gnu", ["new"], SOME)


# -- the log and check


def test_the_log_names_what_moved_and_who_has_nothing(busy: Cluster, store: Store) -> None:
    service = Service(busy, store)
    with capture_logs() as lines:
        service.run()
    assert [line["event"] for line in lines] == []
    service.restart(config({**PHYSICS, "nodes": ["a1"], "partitions": []},
                           {**BIOLOGY, "nodes": ["a2"]}, {"name": "beta"}))  # fmt: skip
    busy.wait(60)
    with capture_logs() as lines:
        service.run()
        service.run()
    assert [(line["event"], line.get("what")) for line in lines] == [
        ("changed hands", f"node a2: physics → biology since {clock_time(busy.now)}"),
        ("organization beta owns no node and no account", None),
    ]


@pytest.mark.parametrize("place", ["there", "unreadable", "missing"])
def test_check_names_what_moved_and_what_will(
    busy: Cluster, store: Store, tmp_path: Path, place: str
) -> None:
    service = Service(busy, store)
    service.run()
    moved = busy.now + 60
    busy.wait(60)
    to_biology = {**BIOLOGY, "nodes": ["a2"]}
    url = url_of(store) if place == "there" else f"sqlite:///{tmp_path / place}"
    (tmp_path / "unreadable").mkdir()
    service.restart(config(PHYSICS, to_biology, store={"url": url}))
    service.run()
    new = config({**PHYSICS, "accounts": ["physics", "guest"]}, to_biology, {"name": "beta"},
                 store={"url": url})  # fmt: skip
    findings = service.findings(new)
    beta = findings["organization beta"]
    assert beta.severity is Severity.WARNING
    assert beta.message == "owns no node and no account: nothing counts for it"
    if place != "there":
        assert "node a2" not in findings
        return
    assert findings["node a2"].severity is Severity.NOTICE
    assert findings["node a2"].message == f"physics → biology since {clock_time(moved)}"
    assert findings["account guest"].message == ("nobody → physics from the daemon's next cycle on")
    assert "ownership recount --since DATE" in findings["account guest"].remedy
    busy.wait(8 * 86_400)
    assert "node a2" not in {one.subject for one in check(new, busy, busy.now)}


def test_check_says_that_a_ledger_which_is_open_begins_when_it_began(
    busy: Cluster, store: Store
) -> None:
    place = {"url": url_of(store)}
    opened = busy.now - 3600
    begun = config(PHYSICS, BIOLOGY, store=place, fairness={"since": f"{clock_time(opened)}Z"})
    service = Service(busy, store, begun)
    service.run()
    assert "fairness.since" not in service.findings(begun)
    later = config(PHYSICS, BIOLOGY, store=place, fairness={"since": f"{clock_time(opened + 60)}Z"})
    finding = service.findings(later)["fairness.since"]
    assert finding.severity is Severity.NOTICE
    assert finding.message.endswith(f"counts work since {clock_time(opened)}")
