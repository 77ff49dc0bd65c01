"""What is written into Slurm while the store is away, on a disk of the daemon's own host."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Self

from shapleyprio.store.errors import StoreUnreachableError, store_errors
from shapleyprio.store.rows.pushes import NewPush

TABLES = (
    "CREATE TABLE IF NOT EXISTS holder (name TEXT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS push (ledger TEXT NOT NULL, written TEXT NOT NULL)",
)
WAIT_SECONDS = 1.0


class Journal:
    """Writes that the store does not know of, and who may have made them.

    One process has it at a time, and until that process ends: whoever opens it knows that all
    others which had it have ended, whatever the store says of them. Threads may share it. What is
    noted survives a kill -9 and a power cut.
    """

    def __init__(self, path: Path, rows: sqlite3.Connection) -> None:
        self._path = path
        self._rows = rows
        self._lock = Lock()

    @classmethod
    @contextmanager
    def open(cls, path: Path, *, create: bool) -> Iterator[Self | None]:
        """Opens it, within the context.

        Args:
            path: of its file.
            create: whether to make it if there is none.

        Yields:
            the journal; None if there is none.

        Raises:
            StoreBusyError: another process has it.
            StoreError: it cannot be made, read or written.
        """
        if not create and not path.exists():
            yield None
            return
        with _errors(path):
            if not path.exists():
                path.touch(mode=0o600)
            rows = sqlite3.connect(path, timeout=WAIT_SECONDS, check_same_thread=False)
        with closing(rows):
            journal = cls(path, rows)
            with _errors(path):
                rows.execute("PRAGMA locking_mode = EXCLUSIVE")  # kept from the first write on
                rows.execute("PRAGMA synchronous = FULL")
            with journal._transaction():
                for table in TABLES:
                    rows.execute(table)
            yield journal

    def holders(self) -> set[str]:
        """Returns the names of those that may have taken the lease while they had the journal."""
        with self._transaction() as rows:
            return {name for (name,) in rows.execute("SELECT name FROM holder")}

    def add_holder(self, name: str) -> None:
        """Notes who is going to take the lease."""
        with self._transaction() as rows:
            rows.execute("INSERT OR IGNORE INTO holder VALUES (?)", (name,))

    def keep_holder(self, name: str) -> None:
        """Forgets all other ones, as this one has taken the lease."""
        with self._transaction() as rows:
            rows.execute("DELETE FROM holder WHERE name <> ?", (name,))

    def note(self, ledger: str, pushes: Sequence[NewPush]) -> None:
        """Notes writes, before they are made."""
        with self._transaction() as rows:
            rows.executemany(
                "INSERT INTO push VALUES (?, ?)",
                [(ledger, json.dumps(asdict(push))) for push in pushes],
            )

    def pushes(self, ledger: str) -> list[NewPush]:
        """Returns what is noted of a ledger, the oldest first."""
        with self._transaction() as rows:
            found = rows.execute(
                "SELECT written FROM push WHERE ledger = ? ORDER BY rowid", (ledger,)
            )
            return [NewPush(**json.loads(written)) for (written,) in found]

    def ledgers(self) -> list[str]:
        """Returns the ledgers of which something is noted."""
        with self._transaction() as rows:
            return [name for (name,) in rows.execute("SELECT DISTINCT ledger FROM push ORDER BY 1")]

    def forget(self, ledger: str) -> None:
        """Forgets what is noted of a ledger, as the store has it."""
        with self._transaction() as rows:
            rows.execute("DELETE FROM push WHERE ledger = ?", (ledger,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _errors(self._path), self._rows:
            self._rows.execute("BEGIN EXCLUSIVE")
            yield self._rows


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        with store_errors(f"{path} (store.journal)"):
            yield
    except OSError as error:
        raise StoreUnreachableError(f"store.journal: {path}: {error.strerror}") from error
