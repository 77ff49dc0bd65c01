"""A fresh store: in a file, or on the server that STORE_URL names.

``STORE_URL=postgresql+psycopg://... pytest tests/store -k "not sqlite"`` runs everything that is
not about SQLite itself on a server. Its database is emptied after every test.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import MetaData

from shapleyprio.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite:///{file}"


@contextmanager
def fresh_store(url: str) -> Iterator[Store]:
    with Store.open(os.environ.get("STORE_URL", url), create=True) as store:
        yield store
        tables = MetaData()
        tables.reflect(store._engine)
        tables.drop_all(store._engine)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with fresh_store(url) as store:
        yield store


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples of a property."""
    with fresh_store(f"sqlite:///{tmp_path_factory.mktemp('store')}/store.db") as store:
        yield store
