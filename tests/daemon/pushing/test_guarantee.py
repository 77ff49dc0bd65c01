"""Guarantees: jobs go first as long as their organization uses less than it brings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from shapleyprio.cli.offline.in_force import read_in_force
from shapleyprio.cli.shown.explanations import sentences_on_job
from shapleyprio.daemon.answering.changes import read_changes
from shapleyprio.daemon.answering.explain import explain_job
from shapleyprio.daemon.answering.freshness import sentences_on_guarantees
from shapleyprio.daemon.pushing import orders
from shapleyprio.daemon.pushing.lasting import STARTED
from shapleyprio.daemon.ranking.guarantees import AHEAD
from shapleyprio.replay.logs.exports.rows import PARTS, ExportSpan
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.store import GUARANTEE, Store
from tests.daemon.consortium import BIOLOGY, NAME, NOW, PHYSICS, Cluster, Service, config
from tests.daemon.pushing.test_going_first import (
    QOS,
    SETTINGS,
    exceptions,
    found,
    order,
    put_first,
    undo,
)
from tests.daemon.pushing.test_pausing import pause, resume
from tests.store.examples import exception

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shapleyprio.slurm.port import PendingQueue

HOUR = 3600


def service_with(
    store: Store,
    own: Mapping[str, Any],
    channel: str = "site_factor",
    guests: int = 12,
    **fairness: Any,
) -> Service:
    """Guests occupy the cluster; biology, which has 4 processors, comes last."""
    slurm = Cluster(settings=SETTINGS, qos={"normal": 0, "phys": 0, "bio": 0})
    slurm.submit("guest", processors=guests, processing_time=3 * HOUR)
    slurm.advance(slurm.now)
    configured = config(PHYSICS, {**BIOLOGY, **own}, push={"channel": channel}, fairness=fairness)
    return Service(slurm, store, configured)


def submit(service: Service, account: str, processors: int, **more: Any) -> int:
    return service.slurm.submit(
        account, qos=QOS[account], processors=processors, processing_time=600, **more
    )


def follow(service: Service, seconds: int) -> dict[tuple[str, str], int]:
    """Lets time pass and a cycle run; returns what became of guarantees."""
    service.slurm.wait(seconds)
    return dict(service.run().plan.guarantees)


@pytest.mark.parametrize("channel", sorted(CHANNELS))
def test_a_job_goes_first_once_it_has_waited_and_what_was_found_comes_back(
    store: Store, channel: str
) -> None:
    service = service_with(store, {"guarantee": "1h"}, channel)
    others = [submit(service, "physics", 8) for _ in range(2)]
    wide, job = submit(service, "biology", 5), submit(service, "biology", 3)
    follow(service, 0)
    follow(service, SETTINGS.calc_period_seconds)
    usual, of_jobs = found(service), service.slurm.jobs()
    assert order(service) == [*others, wide, job]
    assert follow(service, HOUR - SETTINGS.calc_period_seconds - 1) == {}
    assert follow(service, 1) == {("biology", "asked"): 1}
    assert order(service) == [job, *others, wide]  # one that does not fit is not promised anything
    (row,) = exceptions(service)
    assert (row.job_id, row.organization, row.before_all) == (job, "biology", True)
    assert row.reason == (
        "biology uses 0 of its 4 processors in partition all, and the job has waited 60 min"
    )
    explained = " ".join(
        sentences_on_job(explain_job(store.cluster(NAME), service.slurm, str(job)), None, channel)
    )
    assert "by fairness.guarantee, and is to start by" in explained
    assert row.reason in explained
    service.restart()  # nothing of it is in memory alone
    assert follow(service, 10) == {}
    assert service.slurm.writes == []
    service.restart(config(PHYSICS, BIOLOGY, push={"channel": channel}))
    follow(service, 10)
    assert exceptions(service) == []
    assert exceptions(service, since=0)[0].ended_by == "its guarantee no longer holds"
    assert {**found(service), "jobs": usual["jobs"]} == usual
    assert [job.site_factor for job in service.slurm.jobs()] == [job.site_factor for job in of_jobs]


@pytest.mark.parametrize(("limit", "asks"), [(5400, False), (9000, True), (None, True)])
def test_it_is_asked_for_ahead_where_limits_allow_others_to_hold_what_it_needs(
    store: Store, limit: int | None, *, asks: bool
) -> None:
    """Nine processors are free after so long at the latest, and the others at no known time."""
    service = service_with(store, {"guarantee": "2h"}, guests=3, guarantee_ahead=True)
    service.slurm.submit("guest", processors=9, processing_time=3 * HOUR, limit=limit)
    service.slurm.advance(service.slurm.now)
    submit(service, "biology", 5)
    job = submit(service, "biology", 3)
    assert follow(service, 60) == ({("biology", "asked"): 1} if asks else {})
    if asks:
        (row,) = exceptions(service)
        assert row.job_id == job
        assert row.reason.endswith(f"the job has waited 60 s{AHEAD}")


def test_it_is_kept_by_a_start_in_time_and_what_the_job_uses_counts(store: Store) -> None:
    service = service_with(store, {"guarantee": "1h"})
    others = [submit(service, "physics", 12) for _ in range(3)]
    first, second = (submit(service, "biology", 3) for _ in range(2))
    follow(service, 0)
    follow(service, 2 * HOUR)
    assert order(service)[0] == first
    service.slurm.wait(HOUR)  # the guest's job ends
    assert follow(service, 10) == {("biology", "kept"): 1}
    assert exceptions(service) == []
    assert exceptions(service, since=0)[0].ended_by == "the job started"
    assert order(service)[0] == others[0]  # biology uses 3 of its 4
    assert follow(service, 600) == {("biology", "asked"): 1}
    assert order(service)[0] == second
    assert service.standings()["biology"].utility > 0
    told = read_in_force([store.cluster(NAME)], NOW, service.slurm.now + 1)
    assert told.orders == ("Guarantee of biology: asked for by 2 jobs, kept for 1, broken for 0",)
    with store.cluster(NAME).reading() as view:
        assert "exception" not in {change.kind for change in read_changes(view, NOW, HOUR)}
        assert list(PARTS["exceptions.jsonl"].read(view, ExportSpan())) == []
    (sentence,) = sentences_on_guarantees(exceptions(service))
    assert sentence.startswith("1 job of biology goes before all others by fairness.guarantee")


def test_those_of_all_clusters_of_a_pool_are_counted_together(store: Store) -> None:
    clusters = [store.cluster(name) for name in ("c1", "c2", "c3")]
    for cluster, name in zip(clusters, ("physics", "physics", "biology"), strict=True):
        row = exception(1, NOW, organization=name, user=GUARANTEE, before_all=True)
        kept = replace(row, job_id=2, ended=NOW + 9, ended_by=STARTED)
        with cluster.transaction() as transaction:
            transaction.orders.put_exceptions([row, kept])
    assert read_in_force(clusters, NOW, NOW + HOUR).orders == (
        "Guarantee of physics: asked for by 4 jobs, kept for 2, broken for 0",
        "Guarantee of biology: asked for by 2 jobs, kept for 1, broken for 0",
    )


def test_a_job_that_ran_before_and_is_cancelled_while_it_asks_has_not_started(
    store: Store,
) -> None:
    service = service_with(store, {"guarantee": "1h"}, guests=6)
    job, other = submit(service, "biology", 3), submit(service, "physics", 3)
    follow(service, 10)
    for one in (job, other):
        service.slurm.requeue(one)
    service.slurm.submit("guest", processors=6, processing_time=3 * HOUR)
    service.slurm.advance(service.slurm.now)
    follow(service, 200)
    put_first(service, other)
    assert follow(service, HOUR) == {("biology", "asked"): 1}
    for one in (job, other):
        service.slurm.cancel(one)
    assert follow(service, 10) == {}
    assert {row.ended_by for row in exceptions(service, since=0)} == {"the job left the queue"}


def test_a_job_that_starts_while_a_cycle_reads_has_asked_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = service_with(store, {"guarantee": "1h"})
    job = submit(service, "biology", 3)
    follow(service, 0)
    assert follow(service, 2 * HOUR) == {("biology", "asked"): 1}
    service.slurm.wait(HOUR - 10)
    read = service.slurm.pending

    def read_and_go_on() -> PendingQueue:
        queue = read()
        service.slurm.wait(20)  # the guest's job ends
        return queue

    with monkeypatch.context() as patched:
        patched.setattr(service.slurm, "pending", read_and_go_on)
        found = [follow(service, 0)]
    found += [follow(service, 10) for _ in range(2)]
    assert service.slurm.started()[0].job_id == job
    assert [one for one in found if one] == [{("biology", "kept"): 1}]


def test_what_an_admin_puts_first_goes_before_it(store: Store) -> None:
    service = service_with(store, {"guarantee": "1h"})
    other = submit(service, "physics", 8)
    first, second = (submit(service, "biology", 2) for _ in range(2))
    follow(service, HOUR)
    assert order(service) == [first, second, other]
    put_first(service, other, before_all=True)
    put_first(service, second, before_all=True)
    assert follow(service, 10) == {}
    assert order(service) == [other, second, first]
    undo(service, second)
    assert follow(service, 10) == {("biology", "asked"): 1}
    with pytest.raises(orders.OrderError, match="does not go first by an exception"):
        undo(service, first)


def test_it_is_broken_when_it_is_not_kept_within_as_long_again(store: Store) -> None:
    service = service_with(store, {}, guarantee="1h")
    submit(service, "biology", 4)
    follow(service, 0)
    assert follow(service, HOUR) == {("biology", "asked"): 1}
    assert follow(service, HOUR - 1) == {}
    assert follow(service, 1) == {("biology", "broken"): 1, ("biology", "asked"): 1}
    assert follow(service, HOUR + 10) == {("biology", "kept"): 1}  # it started just in time
    rows = sorted(exceptions(service, since=0), key=lambda row: row.since)
    assert [row.ended_by for row in rows] == ["its time was up", "the job started"]


@pytest.mark.parametrize("keep", [False, True])
def test_during_a_pause_it_is_neither_asked_for_nor_broken(store: Store, *, keep: bool) -> None:
    service = service_with(store, {"guarantee": "1h"})
    submit(service, "biology", 3)
    follow(service, 0)
    assert follow(service, HOUR) == {("biology", "asked"): 1}
    pause(service, keep=keep)
    assert [follow(service, HOUR - 60), follow(service, HOUR)] == [{}, {}]
    (row,) = exceptions(service, since=0)
    assert row.ended_by == "its guarantee no longer holds"
    resume(service)
    assert follow(service, 10) == {("biology", "asked"): 1}


def test_of_an_array_as_many_tasks_go_first_as_fit(store: Store) -> None:
    service = service_with(store, {"guarantee": "2h"})
    other = submit(service, "physics", 12)
    array = submit(service, "biology", 2, array=9)
    follow(service, 0)
    assert follow(service, 2 * HOUR) == {}  # until they are jobs of their own
    assert follow(service, 5) == {("biology", "asked"): 2}
    labels = {job.job_id: job.label for job in service.slurm.jobs()}
    assert [labels[job] for job in order(service)] == [
        *(f"{array}_0", f"{array}_1"),
        *(str(other), f"{array}_[2-8]"),
    ]
    assert follow(service, HOUR) == {("biology", "kept"): 2}
    assert order(service)[0] == other
    follow(service, 600)
    assert follow(service, 5) == {("biology", "asked"): 2}


def test_an_array_that_fits_goes_first_as_a_whole(store: Store) -> None:
    service = service_with(store, {"guarantee": "2h"})
    other = submit(service, "physics", 12)
    array = submit(service, "biology", 2, array=2)
    follow(service, 0)
    assert follow(service, 2 * HOUR) == {("biology", "asked"): 1}
    assert order(service) == [array, other]
    assert follow(service, HOUR + 10) == {("biology", "kept"): 1}
    assert exceptions(service) == []


@pytest.mark.parametrize("closed", [False, True])
def test_a_node_that_is_down_is_not_brought(store: Store, *, closed: bool) -> None:
    service = service_with(store, {"guarantee": "1h"})
    job = submit(service, "biology", 4)
    service.slurm.wait(3 * HOUR - 10)
    node = service.slurm.nodes()["b1"]
    idle = replace(node, closed=closed, allocated={})
    service.slurm.layout_changes["nodes"] = {**service.slurm.nodes(), "b1": idle}
    asked = follow(service, 0)
    assert asked == ({} if closed else {("biology", "asked"): 1})
    assert [row.job_id for row in exceptions(service)] == ([] if closed else [job])


def test_a_job_asks_where_its_organization_has_nodes_for_it(store: Store) -> None:
    service = service_with(store, {"guarantee": "1h"})
    elsewhere, at_home = (submit(service, "biology", 2, partition=names) for names in ("pa", "all"))
    follow(service, 0)
    assert follow(service, HOUR) == {("biology", "asked"): 1}
    assert [row.job_id for row in exceptions(service)] == [at_home]
    assert elsewhere in {job.job_id for job in service.slurm.pending().jobs}


def test_a_job_asks_for_no_more_than_is_lent_where_it_may_start(store: Store) -> None:
    own = {"guarantee": "1h", "partitions": [], "nodes": ["a2", "b1"]}  # 4 of pa, 4 of pb
    service = service_with(store, own)
    wide, narrow, in_any, everywhere = (
        submit(service, "biology", processors, partition=names)
        for processors, names in ((5, "pa"), (3, "pa"), (4, "pa"), (2, "all"))
    )
    service.slurm.partitions[in_any] = "pa,pb"
    follow(service, 0)
    assert follow(service, HOUR) == {("biology", "asked"): 2}
    assert [row.job_id for row in exceptions(service)] == [narrow, in_any]
    assert order(service)[:2] == [narrow, in_any]
    assert {wide, everywhere} <= {job.job_id for job in service.slurm.pending().jobs}


def test_what_is_used_in_other_partitions_is_no_less_lent_here(store: Store) -> None:
    own = {"guarantee": "1h", "partitions": [], "nodes": ["a2"]}
    service = service_with(store, own, guests=8)
    service.slurm.submit("biology", processors=4, processing_time=3 * HOUR, partition="pb")
    elsewhere, at_home = (submit(service, "biology", 3, partition=names) for names in ("all", "pa"))
    follow(service, 0)
    assert follow(service, HOUR) == {("biology", "asked"): 1}
    (row,) = exceptions(service)
    assert row.job_id == at_home
    assert row.reason.startswith("biology uses 0 of its 4 processors in partition pa")
    assert elsewhere in {job.job_id for job in service.slurm.pending().jobs}


def test_an_organization_can_be_without(store: Store) -> None:
    service = service_with(store, {"guarantee": "off"}, guarantee="1h")
    submit(service, "biology", 2)
    follow(service, 0)
    assert follow(service, 2 * HOUR) == {}
    assert service.config.guarantees == {"physics": HOUR}


def test_a_guarantee_needs_jobs_whose_size_is_known() -> None:
    with pytest.raises(ValidationError, match="Slurm lists only their CPUs"):
        config(PHYSICS, fairness={"guarantee": "1h", "weight": "gres/gpu"})
    assert config(PHYSICS, fairness={"weight": "gres/gpu"}).guarantees == {}
