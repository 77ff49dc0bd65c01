"""A fresh store, on a database of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.servers import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapleyprio.store import Store
    from tests.store.servers import Databases


@pytest.fixture(scope="module", autouse=True)
def tables_made_once() -> None:
    """Here the migrations make the tables of each store."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite:///{file}"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, databases: Databases) -> Iterator[Store]:
    with databases.store(request.param) as store:
        yield store


@pytest.fixture(scope="module", params=KINDS)
def shared(request: pytest.FixtureRequest, databases: Databases) -> Iterator[Store]:
    """One store for all examples of a property."""
    with databases.store(request.param) as store:
        yield store
