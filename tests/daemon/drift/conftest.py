"""A store that knows a past of two organizations with a processor each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.fairness.pool import Stay
from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.fairness.tenure import Allocation
from shapleyprio.store import AllocatedRun, Store
from tests.daemon.consortium import NAME
from tests.store.examples import BEGIN, standing, watermark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.store.servers import Databases

END = BEGIN + 300
PROCESSORS = {"biology": 1, "physics": 1}


def run(
    job_id: int,
    organization: str,
    start: int,
    end: int | None,
    *,
    submit: int = 0,
    owner: str = "biology",
    processors: int = 1,
    paused_at: int | None = None,
    release: int | None = None,
    limit: int | None = None,
) -> AllocatedRun:
    """A run, its seconds counted from BEGIN."""
    stop = None if end is None else BEGIN + end
    item = Run(
        key=RunKey(job_id, BEGIN + submit, BEGIN + start),
        label=str(job_id),
        account=organization,
        user="ann",
        state="COMPLETED",
        release=BEGIN + min(submit if release is None else release, start),
        limit=limit,
        begin=BEGIN + start,
        end=stop,
        paused_at=None if paused_at is None else BEGIN + paused_at,
        processors={f"{owner}1": processors},
    )
    placed_until = stop if item.paused_at is None else item.paused_at
    place = Allocation(organization, owner, processors, BEGIN + start, placed_until)
    return item, (place,)


FLOOD = (
    run(1, "biology", 0, 100),
    run(2, "biology", 0, 100, owner="physics"),
    run(3, "biology", 100, 200),
    run(4, "biology", 100, 200, owner="physics"),
    run(5, "physics", 200, 300, submit=10),
)
"""Biology floods both processors; physics gets its own back when it is done, 200 s later."""


def remember(
    store: Store,
    *runs: AllocatedRun,
    opened: int = 0,
    until: int = 300,
    pruned: int = 0,
    cluster: str = NAME,
    weight: str = "cpus",
    stay: Stay | None = None,
) -> None:
    """Puts runs into the store, whose accounting is complete up to then."""
    with store.cluster(cluster).transaction() as rows:
        if stay is not None:
            rows.pools.change_stay(stay)
        rows.ledger.save_watermark(
            watermark(
                weight=weight,
                opened=BEGIN + opened,
                pruned_until=BEGIN + pruned,
                observed_until=BEGIN + until,
                accounted_to=BEGIN + until + 5,
            )
        )
        rows.runs.put(runs)
        rows.history.save_standings(
            [
                replace(standing(1, name, BEGIN + until), processors=processors)
                for name, processors in PROCESSORS.items()
            ]
        )


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    with databases.made("sqlite") as url:
        yield url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as store:
        yield store
