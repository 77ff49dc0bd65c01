"""Stores that become full or cannot be written, and servers that are killed."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import event

from shapleyprio.store import Store
from shapleyprio.store.engine import make_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from tests.daemon.faults.cluster import Moments

Fault = Literal["full", "read only"]

REFUSING: dict[tuple[str, Fault], str] = {
    # what SQLite says of a full disk: its file may not grow beyond what it has
    ("sqlite", "full"): "PRAGMA max_page_count = 1",
    ("sqlite", "read only"): "PRAGMA query_only = ON",
    ("postgresql", "read only"): "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    ("mariadb", "read only"): "SET SESSION TRANSACTION READ ONLY",
}
"""Kind of database and what is wrong -> by what it refuses writes just as if it were so."""

BALLAST, PAGE_BYTES = "ballast", 4096

READING, CHANGING = "reading the store", "changing the store"
"""Moments of transactions."""


class FaultyStore:
    """A life's store, as one process after the other opens it.

    Args:
        kind: of database.
        url: of the store.
        moments: to which its statements and commits are added.
        disk: where a file-system of its own is mounted, for faults that are real.
        kill: kills the server and starts it again.
    """

    def __init__(
        self,
        kind: str,
        url: str,
        moments: Moments,
        *,
        disk: Path | None = None,
        kill: Callable[[], None] | None = None,
    ) -> None:
        self.kind = kind
        self.url = url
        self.moments = moments
        self.fault: Fault | None = None
        self._disk = disk
        self._kill = kill
        self._opened: list[Store] = []

    def open(self) -> Store:
        """Opens it as a new process does."""
        store = Store(make_engine(self.url))
        watch(store, self.moments.pass_)
        event.listen(store._engine, "connect", self._set_up)
        self._opened.append(store)
        return store

    def close(self) -> None:
        """Ends all connections of ours."""
        for store in self._opened:
            store.close()
        self._opened.clear()

    def forget_connections(self) -> None:
        """Lets go of connections that wait to be used again; new ones meet what is wrong now."""
        for store in self._opened:
            store.close()

    @property
    def faults(self) -> list[Fault]:
        """What may be wrong with it."""
        return [one for one in ("full", "read only") if self._disk or (self.kind, one) in REFUSING]

    @property
    def has_server(self) -> bool:
        return self._kill is not None

    def kill_server(self) -> None:
        assert self._kill is not None
        self._kill()

    @contextmanager
    def broken(self, fault: Fault) -> Iterator[None]:
        """Something is wrong with it for a while."""
        self.fault = fault
        self.forget_connections()
        if self._disk is not None:
            _break(self._disk, fault)
        try:
            yield
        finally:
            self.fault = None
            self.forget_connections()
            if self._disk is not None:
                _mend(self._disk)

    def _set_up(self, connection: Any, _entry: object) -> None:
        statements = []
        if self.kind == "sqlite":
            statements.append("PRAGMA synchronous = OFF")  # nothing here cuts the power
        if self.fault is not None and self._disk is None:
            statements.append(REFUSING[self.kind, self.fault])
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        cursor.close()
        connection.commit()


def watch(store: Store, moment: Callable[[str], None]) -> None:
    """Has each statement and each commit be a moment at which something may happen."""

    @event.listens_for(store._engine, "before_cursor_execute")
    def _execute(connection: Connection, _cursor: object, *_: object) -> None:
        moment(_doing(connection))

    @event.listens_for(store._engine, "commit")
    def _commit(connection: Connection) -> None:
        moment(_doing(connection))


def _doing(connection: Connection) -> str:
    options = connection.get_execution_options()
    reads = options.get("reading") or options.get("isolation_level") == "REPEATABLE READ"
    return READING if reads else CHANGING


@contextmanager
def small_disk(place: Path, megabytes: int = 2) -> Iterator[Path | None]:
    """A file-system of some megabytes; None where we may not mount any."""
    place.mkdir()
    if not _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)):
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _mount(*arguments: str) -> bool:
    if shutil.which("mount") is None:
        return False
    return not subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode


def _break(disk: Path, fault: Fault) -> None:
    if fault == "read only":
        assert _mount("-o", "remount,ro", str(disk))
        return
    with suppress(OSError), (disk / BALLAST).open("wb", buffering=0) as ballast:
        while ballast.write(bytes(PAGE_BYTES)):
            pass


def _mend(disk: Path) -> None:
    assert _mount("-o", "remount,rw", str(disk))
    (disk / BALLAST).unlink(missing_ok=True)
