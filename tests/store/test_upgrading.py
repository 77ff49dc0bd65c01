"""A store that an earlier release wrote is upgraded with everything in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, inspect

from shapleyprio.fairness.runs import RunKey
from shapleyprio.fairness.tenure import Allocation
from shapleyprio.slurm.port import Malformed
from shapleyprio.store import (
    CapacityRow,
    ManagedValue,
    QuarantinedLine,
    Store,
    Watermark,
    migrations,
)
from shapleyprio.store.tables import metadata
from tests.store.examples import BEGIN
from tests.store.servers import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.store.servers import Databases

KEY = {"cluster": "c", "job_id": 7, "submit": BEGIN - 5, "start": BEGIN}
PUSH = {
    "cluster": "c",
    "number": 1,
    "cycle": 1,
    "channel": "nice",
    "target": "7",
    "key": "7",
    "organization": "physics",
    "label": "7",
    "asked": 100,
    "old": 100,
    "new": 80,
    "reason": "rank 1 of 2",
    "state": "planned",
    "note": "",
    "at": BEGIN,
}
ROWS: dict[str, dict[str, Any]] = {
    "run": {
        **KEY,
        "label": "7",
        "account": "phys",
        "user": "eve",
        "state": "RUNNING",
        "begin": BEGIN,
        "end": None,
        "paused_at": None,
        "nodes": '{"n1":2}',
    },
    "placement": {
        **KEY,
        "number": 0,
        "organization": "physics",
        "owner": "biology",
        "processors": 2,
        "begin": BEGIN,
        "end": None,
    },
    "progress": {
        "cluster": "c",
        "weight": "cpus",
        "opened": BEGIN - 9,
        "observed_until": BEGIN + 1,
        "accounted_to": BEGIN + 2,
        "horizon": None,
        "folded_to": 0,
        "pruned_until": BEGIN - 8,
    },
    "push": PUSH,
    "mark": {"cluster": "c", "channel": "nice", "key": "7", "asked": 100, "written": "[90,80]"},
    "refused": {
        "cluster": "c",
        "digest": "d" * 64,
        "source": "squeue",
        "text": "torn",
        "reason": "1 fields",
        "first_seen": BEGIN,
        "last_seen": BEGIN + 3,
        "times": 4,
    },
}
"""Table of revision 0003 -> one of its rows; those that others refer to come first."""


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    with databases.empty(request.param) as url:
        yield url


def migrate(store: Store, revision: str, *, down: bool = False) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations.scripts()))
    with store._engine.begin() as connection:
        config.attributes["connection"] = connection
        (command.downgrade if down else command.upgrade)(config, revision)


def test_renamed_tables_and_columns_keep_their_rows(empty: str) -> None:
    with Store.open(empty, any_revision=True) as store:
        migrate(store, "0003")
        insert(store, **{name: [row] for name, row in ROWS.items()})
        store.upgrade()
    with Store.open(empty) as store:
        with store._engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, metadata) == []
        references = inspect(store._engine).get_foreign_keys("allocation")
        assert [reference["name"] for reference in references] == ["allocation_of_run"]
        assert set(store.sizes()) == set(metadata.tables)
        with store.cluster("c").transaction() as rows:
            ((run, allocations),) = rows.all_runs()
            assert run.key == RunKey(7, BEGIN - 5, BEGIN)
            assert allocations == (Allocation("physics", "biology", 2, BEGIN, None),)
            assert rows.watermark() == Watermark(
                opened=BEGIN - 9,
                observed_until=BEGIN + 1,
                sure_until=BEGIN + 1,
                accounted_to=BEGIN + 2,
                horizon=None,
                pruned_until=BEGIN - 8,
                shown=BEGIN + 1,
            )
            assert rows.managed_values("nice") == {"7": ManagedValue(100, (90, 80))}
            (push,) = rows.open_pushes()
            assert (push.key, push.original, push.old, push.new) == ("7", 100, 100, 80)
            assert rows.quarantined() == [
                QuarantinedLine(
                    line=Malformed("squeue", "torn", "1 fields"),
                    first_seen=BEGIN,
                    last_seen=BEGIN + 3,
                    times=4,
                )
            ]
            rows.remove_runs([run.key])
        assert (store.sizes()["run"], store.sizes()["allocation"]) == (0, 0)


def test_renaming_can_be_undone_with_all_rows(empty: str) -> None:
    with Store.open(empty, any_revision=True) as store:
        migrate(store, "0003")
        insert(store, **{name: [row] for name, row in ROWS.items()})
        before = contents(store)
        store.upgrade()
        migrate(store, "0003", down=True)
        assert contents(store) == before


def test_scores_of_before_are_the_balances_and_sums_of_refused_stay(empty: str) -> None:
    large = 10**30
    standing = {
        "cluster": "c", "cycle": 1, "t": BEGIN, "parts": 1, "priority": 1, "pending": 0,
        "running": 0, "processors": 1,
    }  # fmt: skip
    standings = [
        standing | {"organization": name, "contribution": str(given), "utility": str(used)}
        for name, given, used in (("a", large, -1), ("b", 1, large), ("c", 7, 7))
    ]
    cycle = {
        "cluster": "c", "number": 1, "started": BEGIN, "finished": BEGIN, "outcome": "ok",
        "t": BEGIN, "seen": 9, "kept": 2, "refused": 5, "written": 1, "message": "",
        "seconds": "{}",
    }  # fmt: skip
    with Store.open(empty, any_revision=True) as store:
        migrate(store, "0005")
        insert(store, standing=standings, cycle=[cycle])
        before = contents(store)
        store.upgrade()
        with store.cluster("c").transaction() as rows:
            scores = {row.organization: row.score for row in rows.latest_standings()}
            assert scores == {"a": large + 1, "b": 1 - large, "c": 0}
            (last,) = rows.cycles()
            assert (last.quarantined, last.refused) == (0, 5)
            rows.save_cycle(replace(last, quarantined=3, refused=2))
        migrate(store, "0005", down=True)
        assert contents(store) == before


def test_runs_of_before_are_released_when_submitted_and_keep_their_allocations(
    empty: str,
) -> None:
    allocation = {
        **KEY, "number": 0, "organization": "physics", "owner": "biology", "processors": 2,
        "begin": BEGIN, "end": None,
    }  # fmt: skip
    with Store.open(empty, any_revision=True) as store:
        migrate(store, "0006")
        insert(store, run=[ROWS["run"]], allocation=[allocation])
        before = contents(store)
        store.upgrade()
        with store.cluster("c").transaction() as rows:
            ((run, allocations),) = rows.all_runs()
            assert (run.release, run.limit, run.partition) == (BEGIN - 5, None, "")
            assert allocations == (Allocation("physics", "biology", 2, BEGIN, None),)
            rows.observe_capacities({"physics": 2}, BEGIN)
            assert rows.capacities() == [
                CapacityRow(organization="physics", since=BEGIN, processors=2)
            ]
        migrate(store, "0006", down=True)
        assert contents(store) == before


def test_a_cluster_that_has_estimates_goes_on_with_the_draws_it_had(empty: str) -> None:
    estimate = {
        "t": BEGIN, "begin": BEGIN - 9, "value": "1", "rate": "0", "acceleration": "0",
        "denominator": "1", "error": "0", "utility": "0", "alone": "0", "without": "0",
        "parts": 1, "coalitions": 500,
    }  # fmt: skip
    with Store.open(empty, any_revision=True) as store:
        migrate(store, "0011")
        rows = [estimate | {"cluster": "c", "organization": name} for name in ("a", "b")]
        insert(store, estimate=rows)
        before = contents(store)
        store.upgrade()
        for cluster, seed in (("c", 0), ("new", 7)):
            with store.cluster(cluster).transaction() as kept:
                assert kept.keep_sampling_seed(7) == seed
        migrate(store, "0011", down=True)
        assert contents(store) == before


def insert(store: Store, **rows: list[dict[str, Any]]) -> None:
    """Puts rows of tables into the database, in the order of the tables."""
    tables = MetaData()
    with store._engine.begin() as connection:
        tables.reflect(connection)
        for table, found in rows.items():
            connection.execute(tables.tables[table].insert(), found)


def contents(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Table -> its rows, as the database has them."""
    tables = MetaData()
    with store._engine.connect() as connection:
        tables.reflect(connection)
        return {
            name: [tuple(row) for row in connection.execute(table.select())]
            for name, table in tables.tables.items()
            if name != "alembic_version"
        }
