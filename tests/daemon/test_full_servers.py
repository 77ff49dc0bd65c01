"""A server's disk fills up, or it takes no writes any more, within cycles; nothing is lost."""

from __future__ import annotations

import re
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from shapleyprio.daemon.steering.report import FAILURES
from shapleyprio.store import Store, StoreError, StoreSchemaError
from tests.cli.conftest import CommandLine, speaking_to
from tests.daemon.consortium import Cluster
from tests.daemon.faults.cluster import Moments
from tests.daemon.faults.daemon import LivingDaemon
from tests.daemon.faults.life import Life
from tests.daemon.faults.reckoning import check_everything
from tests.daemon.faults.stores import FaultyStore, small_disk
from tests.store.servers import SERVERS, Server, private_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from click.testing import Result

    from shapleyprio.config import Config
    from tests.daemon.faults.cluster import FaultyCluster

MEGABYTES = 96
MOST_CYCLES = 50
"""In the files of a server there is room left for fewer of them."""

SUBMISSIONS = 40
"""Before each cycle, so that there is something to store."""

at_moments = pytest.mark.parametrize(("seed", "moment"), [(60, 10), (2, 40)])
"""Of a cycle, at which something happens; it has some 80. These lives soon fill the files."""

READ_ONLY = {
    "postgresql": (
        "SET default_transaction_read_only = off",
        "ALTER DATABASE postgres SET default_transaction_read_only = {}",
    ),
    "mariadb": ("SET GLOBAL read_only = {}",),
}
"""Kind of server -> how its administrator says whether it takes no writes."""

FULL = re.compile("store .*: the server('s disk is full| cannot be used)")
"""What is said of a server whose disk is full, or that has ended by that."""

LOGGED = "SELECT pg_logical_emit_message(true, '', repeat('x', 1000000))"
"""Has PostgreSQL write a megabyte into its log."""


class SmallServer:
    """A store in a server whose data are on a small disk of its own.

    Args:
        kind: of server.
        url: of the store.
        disk: where it is mounted.
        server: itself.
    """

    def __init__(self, kind: str, url: str, disk: Path, server: Server) -> None:
        self.store = FaultyStore(kind, url, Moments(), disk=disk)
        self._server = server

    @contextmanager
    def lived(self, seed: int, place: Path) -> Iterator[Life]:
        """A consortium's life, which ends with the exact ledger; a journal goes to the place."""
        with ExitStack() as ends:

            def begin(config: Config, slurm: FaultyCluster, name: str) -> LivingDaemon:
                journal = place / "journal" if life.has_journal else None
                daemon = LivingDaemon(config, slurm, self.store.open(), name, journal)
                ends.callback(daemon.kill)
                return daemon

            life = Life(seed, self.store, begin)
            assert fails(life) is None
            yield life
            assert fails(life) is None
            life.settle()
            check_everything(life)

    @contextmanager
    def empty(self) -> Iterator[str]:
        """URL of another database, without tables, in which somebody has been once."""
        self._server.execute("CREATE DATABASE another")
        text = make_url(self._server.url).set(database="another").render_as_string()
        with pytest.raises(StoreSchemaError):
            Store.open(text)
        yield text
        self._server.execute("DROP DATABASE another")

    @contextmanager
    def full(self) -> Iterator[None]:
        """Its disk is full meanwhile; it is started again if it has ended by that."""
        with self.store.broken("full"):
            yield
        self._server.start()

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Its disk is so full that its log cannot go on, and PostgreSQL ends."""
        with self.full():
            with pytest.raises(SQLAlchemyError):
                self._server.execute(*[LOGGED] * MEGABYTES)
            yield

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """It takes no writes meanwhile."""
        on, off = (
            [text.format(state) for text in READ_ONLY[self.store.kind]] for state in ("on", "off")
        )
        self._server.execute(*on)
        self.store.fault = "read only"
        self.store.forget_connections()
        yield
        self.store.fault = None
        self.store.forget_connections()
        self._server.execute(*off)


@pytest.fixture(scope="module", params=SERVERS)
def small(request: pytest.FixtureRequest) -> Iterator[SmallServer]:
    with tempfile.TemporaryDirectory(prefix="store-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)  # the server's user gets to the disk
        with small_disk(Path(folder, "disk"), MEGABYTES) as disk:
            if disk is None:
                pytest.skip("no file-system may be mounted here")
            with private_server(request.param, disk) as server:
                small = SmallServer(request.param, _made(request.param, server), disk, server)
                yield small
                small.store.close()


def _made(kind: str, server: Server) -> str:
    """Makes a store, and returns its URL; in MariaDB it is that of a user who may do no more."""
    url = make_url(server.url)
    if kind == "mariadb":
        user = "member@localhost"
        grants = ("CREATE DATABASE store", f"CREATE USER {user}", f"GRANT ALL ON store.* TO {user}")
        server.execute(*grants)
        url = url.set(username="member", database="store")
    text = url.render_as_string(hide_password=False)
    Store.open(text, create=True).close()
    return text


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shapleyprio.store.cluster_store.LONGEST_PAUSE_SECONDS", 0.0)


def test_commands_say_in_one_line_that_a_servers_disk_is_full(
    small: SmallServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = Cluster()
    slurm.fill("biology")
    shell = CommandLine(tmp_path, slurm)
    shell.configure(store={"url": small.store.url}, slurm={"cluster": slurm.cluster()})

    def once() -> Result:
        for _ in range(SUBMISSIONS):
            slurm.submit("physics", processing_time=9)
        slurm.wait(30)
        return shell.run("daemon", "--once")

    with speaking_to(lambda *_: slurm, monkeypatch):
        assert once().exit_code == 0
        with small.full():
            done = next(done for done in (once() for _ in range(MOST_CYCLES)) if done.exit_code)
            assert done.exit_code == 4
            *_, line = done.stderr.splitlines()
            assert FULL.match(line.removeprefix("shapleyprio: "))
        assert once().exit_code == 0


def test_a_store_that_found_no_room_at_first_is_made_when_there_is_some(
    small: SmallServer,
) -> None:
    with small.empty() as url:
        with small.full(), pytest.raises(StoreError, match=FULL):
            Store.open(url, create=True)
        Store.open(url, create=True).close()


@at_moments
def test_what_a_server_with_a_full_disk_cannot_keep_is_caught_up(
    small: SmallServer, tmp_path: Path, seed: int, moment: int
) -> None:
    with small.lived(seed, tmp_path) as life, happening(life, moment, small.full):
        for _ in range(2):
            assert_fails(life, FULL)


@at_moments
def test_what_a_server_that_takes_no_writes_does_not_keep_is_caught_up(
    small: SmallServer, tmp_path: Path, seed: int, moment: int
) -> None:
    with small.lived(100 + seed, tmp_path) as life, happening(life, moment, small.read_only):
        for _ in range(2):
            assert_fails(life, re.compile("store .*: it cannot be written, for the server or "))


@pytest.mark.parametrize("small", SERVERS[:1], indirect=True)
def test_a_server_that_ended_for_want_of_room_loses_nothing(
    small: SmallServer, tmp_path: Path
) -> None:
    with small.lived(200, tmp_path) as life, happening(life, 40, small.ended):
        for _ in range(2):
            assert_fails(life, FULL)


@contextmanager
def happening(
    life: Life, moment: int, fault: Callable[[], AbstractContextManager[None]]
) -> Iterator[None]:
    """Lets something go wrong from a moment of the next cycle on, and mends it in the end."""
    with ExitStack() as meanwhile:
        life.store.moments.arm(moment, lambda _: meanwhile.enter_context(fault()))
        yield


def fails(life: Life) -> BaseException | None:
    """By what a cycle fails that has much to store."""
    for _ in range(SUBMISSIONS):
        life.world.submit()
    life.slurm.wait(60)
    return life._try(life._cycle)


def assert_fails(life: Life, message: re.Pattern[str]) -> None:
    """One of the next cycles fails, and says why in one line."""
    failure = next(filter(None, (fails(life) for _ in range(MOST_CYCLES))))
    assert isinstance(failure, StoreError)
    assert message.match(str(failure))
    assert len(str(failure).splitlines()) == 1
    outcome = next(name for error, name in FAILURES.items() if isinstance(failure, error))
    assert outcome == "store_failed"
