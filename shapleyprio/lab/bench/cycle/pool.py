"""What a pool of clusters asks of the database: transactions, rows and bytes, counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from sqlalchemy import Connection, Engine, event
from structlog.testing import capture_logs

from shapleyprio.common.wording import DAY, HOUR
from shapleyprio.config import Config
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, of_runs
from shapleyprio.lab.simulated import SimulatedSlurm, SimulatedSpec
from shapleyprio.store import Store

CLUSTERS = 10
ORGANIZATIONS = 100
JOBS_OF_A_DAY = 1_000_000
"""All clusters have so many together."""

CYCLES = 20
WARM_UP = 3
"""Cycles before anything is counted: the first ones open ledgers."""

PROCESSORS_OF_A_NODE = 24
LONGEST_SECONDS = 1200
POLL_SECONDS = 30
NOW = 1_800_000_000


@dataclass(slots=True)
class Traffic:
    """What went to the database.

    Attributes:
        transactions: that ended well, those that only read among them.
        rows: that were inserted, deleted or changed, one by one.
        written_bytes: of the values in these, as text.
    """

    transactions: int = 0
    rows: int = 0
    written_bytes: int = 0


def measure_pool(asked: BenchParameters) -> list[Measurement]:
    """Counts what the cycles of all clusters ask of one store, for a cluster and an hour."""
    progress = asked.bar("cycles", WARM_UP + CYCLES)
    names = [f"c{number}" for number in range(1, CLUSTERS + 1)]
    config = _config(names)
    chance = Random(1)  # noqa: S311  # the same jobs every time are what is wanted
    # what clusters log of their first cycles is no measurement
    with capture_logs(), Store.open(f"sqlite:///{asked.folder / 'pool.db'}", create=True) as store:
        slurms = [_cluster(name) for name in names]
        sites = [
            (slurm, Cycle(config, slurm, store.cluster(name)))
            for name, slurm in zip(names, slurms, strict=True)
        ]
        for done in range(1, WARM_UP + 1):
            _all_at_work(sites, chance)
            progress(done)
        with counting() as traffic:
            for done in range(WARM_UP + 1, WARM_UP + CYCLES + 1):
                _all_at_work(sites, chance)
                progress(done)
    hours = CLUSTERS * CYCLES * POLL_SECONDS / HOUR
    what = f"of {CLUSTERS} clusters, {ORGANIZATIONS} organizations, {JOBS_OF_A_DAY:,} jobs a day"
    found = {
        f"{what}: transactions of a cluster in an hour": (traffic.transactions, ""),
        "rows written": (traffic.rows, ""),
        "bytes of values written": (traffic.written_bytes / 2**20, "MB"),
    }
    return [
        replace(of_runs("pool", each, [amount / hours], unit=unit), runs=CYCLES)
        for each, (amount, unit) in found.items()
    ]


@contextmanager
def counting() -> Iterator[Traffic]:
    """Counts what goes to any database meanwhile."""
    traffic = Traffic()

    def executed(
        _connection: Connection,
        _cursor: object,
        statement: str,
        parameters: Any,
        _context: object,
        several: bool,  # as it is called
    ) -> None:
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            rows = parameters if several else [parameters]
            traffic.rows += len(rows)
            traffic.written_bytes += sum(len(str(value)) for row in rows for value in row)

    def committed(_connection: Connection) -> None:
        traffic.transactions += 1

    event.listen(Engine, "after_cursor_execute", executed)
    event.listen(Engine, "commit", committed)
    try:
        yield traffic
    finally:
        event.remove(Engine, "after_cursor_execute", executed)
        event.remove(Engine, "commit", committed)


def _config(clusters: list[str]) -> Config:
    return Config.model_validate(
        {
            "fairness": {"rule": "directcontr"},
            "pool": [{"name": "all", "clusters": clusters}],
            "organization": [
                {"name": name, "accounts": [name], "nodes": [f"n{number:03}"]}
                for number, name in enumerate(_organizations())
            ],
        }
    )


def _organizations() -> list[str]:
    return [f"o{number:03}" for number in range(ORGANIZATIONS)]


def _cluster(name: str) -> SimulatedSlurm:
    nodes = {f"n{number:03}": PROCESSORS_OF_A_NODE for number in range(ORGANIZATIONS)}
    return SimulatedSlurm(
        SimulatedSpec(
            cluster=name,
            nodes=nodes,
            partitions={"all": list(nodes)},
            accounts=dict.fromkeys(_organizations()),
        ),
        now=NOW,
    )


def _all_at_work(sites: list[tuple[SimulatedSlurm, Cycle]], chance: Random) -> None:
    """Lets jobs come at every cluster for as long as from one cycle to the next; a cycle each."""
    jobs = max(JOBS_OF_A_DAY * POLL_SECONDS // (DAY * len(sites)), 1)
    organizations = _organizations()
    for slurm, cycle in sites:
        for _ in range(jobs):
            slurm.submit(
                chance.choice(organizations),
                processors=chance.choice((1, 1, 2, 4, 8)),
                processing_time=chance.randint(60, LONGEST_SECONDS),
            )
        slurm.advance(slurm.now + POLL_SECONDS)
        cycle.run()
