"""Ref on the workers of a Dask cluster: the same to the unit, and what can go wrong."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from shapleyprio.lab.bench.replay.replay_workloads import made_up
from shapleyprio.replay.engine.beginning import jobs_of, record_of
from shapleyprio.replay.engine.limits import ref_block
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.spans import Changes, Span, bounds_of
from shapleyprio.replay.errors import DaskError, PolicyError
from shapleyprio.replay.policies import on_dask, run_policy
from shapleyprio.replay.policies.coalitions import schedule_of_ref
from shapleyprio.replay.workloads.workload import Workload
from tests.cli.offline import OfflineCommand
from tests.replay.strategies import Job, workload_of_jobs

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")


def contended(organizations: int, jobs: int = 300) -> Workload:
    """Returns the first jobs of the benchmark's workload, in a window that they fill."""
    whole = made_up(organizations)
    early = np.sort(np.argsort(whole.release, kind="stable")[:jobs])
    columns = (
        *("job", "organization", "release", "processing_time", "processors", "limit"),
        *("start", "position"),
    )
    of_early = {name: getattr(whole, name)[early] for name in columns}
    return replace(whole, window=replace(whole.window, length=5000), **of_early)


def assert_same(one: Schedule, other: Schedule) -> None:
    assert one.coalitions is not None
    assert other.coalitions is not None
    assert (one.coalitions.values == other.coalitions.values).all()
    assert one.contribution == other.contribution
    for field in ("job", "start", "owner", "copies"):
        assert (getattr(one, field) == getattr(other, field)).all(), field


def in_spans(workload: Workload, spans: int) -> Schedule:
    """Returns Ref's schedule, by spans that take turns in this process."""
    k, length = len(workload.organizations), workload.window.length
    block, jobs, bounds = ref_block(workload), jobs_of(workload), bounds_of(k, spans).tolist()
    made = [
        Span(
            jobs,
            workload.owned,
            record_of(workload, jobs, 2**k - 1, 0, wide=block.wide),
            block,
            length,
            *ends,
        )
        for ends in pairwise(bounds)
    ]
    for _ in range(made[0].blocks):
        before: list[Changes] = []
        for span in made:
            before.append(span.run_block(before.copy()))
    last = made[-1].world
    return schedule_of_ref(workload, 0, last.state, last.record, 0.0)


@pytest.mark.parametrize(
    "workload",
    [
        contended(3),
        contended(7),
        replace(contended(4), wide="rigid", backfill="easy"),
        # of so many processors that sums take two limbs
        workload_of_jobs(
            [2**22, 2**21, 2**20],
            [Job(u, 100 * t, 5000, 2**21) for u in range(3) for t in range(3)],
            2**20,
        ),
    ],
    ids=["three", "seven", "rigid", "wide"],
)
def test_spans_decide_as_the_whole_lattice(workload: Workload) -> None:
    whole = run_policy(workload, "ref", cores=1)
    for spans in (1, 2, 3):
        assert_same(in_spans(workload, spans), whole)


def test_spans_are_as_many_as_asked_and_none_is_empty() -> None:
    for k in range(1, 12):
        for spans in range(1, min(k, on_dask.MOST_SPANS) + 1):
            bounds = bounds_of(k, spans)
            assert (bounds[0], bounds[-1], len(bounds)) == (1, 2**k, spans + 1)
            assert (np.diff(bounds) > 0).all()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="600MiB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_two_processes_decide_as_one(client: Any) -> None:
    workload, reached = contended(7), list[int]()
    spread = run_policy(workload, "ref", seed=3, dask=client, progress=reached.append)
    assert_same(spread, run_policy(workload, "ref", seed=3, cores=1))
    assert reached == sorted(reached)
    assert reached[-1] == workload.window.length


def test_the_command_shows_the_same(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = ((job, job % 7 + 3, job % 5) for job in range(1, 90))
    line = "{0} {0} 2 {1} 1 -1 -1 -1 -1 -1 1 {2} 1 -1 1 -1 -1 -1\n"
    Path("log.swf").write_text("".join(line.format(*job) for job in jobs))
    of_log = ("log.swf", "--deal-users", "4", "--processors", "5", "--policy", "ref")
    replay = OfflineCommand("replay", *of_log)
    here, there = replay.answer(), replay.answer("--dask", client.scheduler.address)
    for answer in (here, there):
        del answer["policies"][0]["seconds"]
    assert here == there


def test_what_is_under_way_ends_with_an_interrupt(client: Any) -> None:
    def interrupt(_second: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_policy(made_up(8), "ref", dask=client, progress=interrupt)
    until = monotonic() + 120
    while any(client.processing().values()) or any(client.has_what().values()):
        assert monotonic() < until
        sleep(0.05)


def test_workers_with_too_little_memory_say_how_much_it_takes(client: Any) -> None:
    with pytest.raises(
        DaskError, match=r"needs \d+ MiB for 18 organizations, but may use only 70% of the 600 MiB"
    ):
        run_policy(made_up(18), "ref", dask=client)


def test_a_worker_that_is_gone_ends_it(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_dask, "CHECK_SECONDS", 0.1)
    pids = client.run(os.getpid)

    def kill(_second: int) -> None:
        while pids:
            os.kill(pids.popitem()[1], signal.SIGKILL)

    with pytest.raises(DaskError, match="start again"):
        run_policy(made_up(8), "ref", dask=client, progress=kill)


def test_schedules_that_were_lost_are_not_gone_on_with() -> None:
    workload = contended(3)
    jobs, block = jobs_of(workload), ref_block(workload)
    record = record_of(workload, jobs, 7, 0, wide=block.wide)
    span = Span(jobs, workload.owned, record, block, workload.window.length, 1, 8)
    with pytest.raises(DaskError, match="its schedules are lost"):
        on_dask.run_chunk((workload, span), 1, 2, [], None)
    with pytest.raises(TypeError, match="no copy of them"):
        pickle.dumps(span)


def test_versions_must_agree() -> None:
    with pytest.raises(DaskError, match=r"here is 0\.0\.1; install the same there"):
        on_dask.open_span(pickle.dumps(contended(3)), 0, 1, 8, 1, "0.0.1")


def test_without_workers_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_dask, "FIRST_WORKER_SECONDS", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(DaskError, match="has no workers; start some"),
    ):
        run_policy(contended(3), "ref", dask=client)


def test_a_horizon_is_refused() -> None:
    with pytest.raises(PolicyError, match="not on Dask"):
        run_policy(replace(contended(3), horizon=100), "ref", dask=object())
