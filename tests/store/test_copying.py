"""A copy of a store, to try something on: from every database, and with the right to read only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, text

from shapleyprio.common.databases import database_url
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import Malformed
from shapleyprio.store import Store, StoreSchemaError, StoreUnreachableError
from shapleyprio.store.schema import metadata
from tests.leases import take_away
from tests.store.examples import BEGIN, cycle, new_push, placed_run, standing, watermark
from tests.store.servers import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapleyprio.store import View
    from tests.store.servers import Databases

OURS, OTHERS = "ours", "others"
AT_ONCE, MANY = 20, 50
"""Rows that are read at once in a test, and how many there are."""


@pytest.fixture(scope="module", params=KINDS)
def original(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    """URL of a store on each kind of database."""
    with databases.empty(request.param) as url:
        yield url


@pytest.fixture
def filled(original: str) -> Iterator[str]:
    with Store.open(original, create=True) as store:
        for cluster in (OURS, OTHERS):
            with store.cluster(cluster).transaction() as rows:
                last = MANY if cluster == OURS else 3
                rows.runs.put(placed_run(job, owners=("a", "ä\\'")) for job in range(1, last))
                rows.observed.observe_capacities({"a": {("batch", "short"): 8}}, BEGIN)
                rows.estimates.keep_sampling_seed(len(cluster))
                rows.ledger.save_watermark(watermark(horizon=None, accounted_to=BEGIN + 7))
                rows.ledger.save_tenures({("node", "a1"): []})
                rows.observed.quarantine([Malformed("queue", "x", "y")], BEGIN)
                for number in (1, 2, 3):
                    rows.history.save_cycle(cycle(number))
                    rows.history.save_standings([standing(number)] if number < 3 else [])
                numbers = rows.pushes.plan([new_push("1", 5), new_push("2", -7)])
                rows.pushes.settle({numbers[0]: (rows.pushes.open_pushes()[0].state, "")})
                take_away(rows)
    yield original
    engine = create_engine(database_url(original))
    metadata.drop_all(engine)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    engine.dispose()


def known(view: View) -> dict[str, object]:
    """What a cycle goes on from."""
    return {
        "runs": list(view.runs.all_runs()),
        "ledger": view.ledger.entries(),
        "tenures": list(view.ledger.tenures()),
        "capacities": view.observed.capacities(),
        "seed": view.estimates.sampling_seed(),
        "watermark": view.ledger.watermark(),
        "managed_values": {channel: view.pushes.managed_values(channel) for channel in CHANNELS},
        "open": view.pushes.open_pushes(),
        "standings": view.history.latest_standings(),
        "cycle": view.history.last_cycle(),
        "number": view.history.next_cycle(),
    }


def content(url: str) -> dict[str, list[Any]]:
    engine = create_engine(database_url(url))
    with engine.connect() as connection:
        rows = {
            name: sorted(map(repr, connection.execute(table.select()).all()))
            for name, table in metadata.tables.items()
        }
    engine.dispose()
    return rows


def test_there_is_nothing_to_copy_before_a_store_is_made(original: str) -> None:
    assert Store.open_existing(original) is None
    with Store.open(original, any_revision=True) as store:
        assert store.revision() is None


def test_a_copy_has_what_a_cycle_goes_on_from_and_no_lease(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("cluster_store", "repositories.runs"):
        monkeypatch.setattr(f"shapleyprio.store.{module}.ROWS_AT_ONCE", AT_ONCE)
    before = content(filled)
    store = Store.open_existing(filled)
    assert store is not None
    with store:
        store.cluster(OURS).copy(tmp_path / "copy.db", [OURS])
        with (
            Store.open(f"sqlite:///{tmp_path / 'copy.db'}") as copy,
            copy.cluster(OURS).reading() as view,
            store.cluster(OURS).reading() as original,
        ):
            answer = known(view)
            assert answer == known(original)
            assert len(answer["runs"]) == MANY - 1  # type: ignore[arg-type]
            assert answer["number"] == 4
            assert view.lease.read() is None
            assert original.lease.read() is not None
    assert content(filled) == before


def test_what_is_opened_to_read_cannot_be_written(filled: str) -> None:
    store = Store.open_existing(filled)
    assert store is not None
    with (
        store,
        pytest.raises(StoreUnreachableError, match="cannot be written"),
        store.cluster(OURS).transaction() as rows,
    ):
        take_away(rows)


def test_a_store_of_another_revision_is_not_opened(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(filled)
    monkeypatch.setattr("shapleyprio.store.migrations.HEAD", "9999")
    with pytest.raises(StoreSchemaError, match="run `shapleyprio db upgrade`"):
        Store.open_existing(filled)
    assert content(filled) == before


def test_on_a_server_the_right_to_select_is_enough(filled: str, tmp_path: Path) -> None:
    engine = create_engine(database_url(filled), isolation_level="AUTOCOMMIT")
    kind = engine.dialect.name
    if kind == "sqlite":
        pytest.skip("SQLite's rights are those of its file")
    with engine.connect() as connection:
        if kind == "postgresql":
            connection.execute(text("CREATE ROLE reader LOGIN"))
            connection.execute(text("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"))
        else:
            connection.execute(text("CREATE USER reader@localhost"))
            connection.execute(text(f"GRANT SELECT ON {engine.url.database}.* TO reader@localhost"))
    try:
        url = engine.url.set(username="reader").render_as_string()
        store = Store.open_existing(url)
        assert store is not None
        with store:
            store.cluster(OURS).copy(tmp_path / "copy.db", [OURS])
        with (
            Store.open(f"sqlite:///{tmp_path / 'copy.db'}") as copy,
            copy.cluster(OURS).reading() as view,
        ):
            assert view.ledger.watermark() is not None
    finally:
        with engine.connect() as connection:
            if kind == "postgresql":
                connection.execute(text("DROP OWNED BY reader"))
                connection.execute(text("DROP ROLE reader"))
            else:
                connection.execute(text("DROP USER reader@localhost"))
        engine.dispose()
