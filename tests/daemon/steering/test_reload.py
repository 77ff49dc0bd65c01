"""SIGHUP to a daemon process: pools join and leave, and a bad file changes nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapleyprio.store import Store
from tests.daemon.several_daemons import PATIENCE_SECONDS, Daemons
from tests.store.servers import url_of

PA, PB, REST = (
    f'[[pool]]\nname = "{name}"\nclusters = ["c1"]\npartitions = {partitions}\n'
    for name, partitions in (("a", '["pa"]'), ("b", '["pb"]'), ("rest", '["all"]'))
)


class Reloaded:
    """A daemon and its file, which changes."""

    def __init__(self, daemons: Daemons, store: Store) -> None:
        self.daemons = daemons
        self.store = store
        self.process = daemons.start()
        self.file = daemons.folder / "0.toml"
        self.begun = self.file.read_text()

    def read(self, pools: str) -> str:
        """Writes another file and sends SIGHUP; returns what the daemon says to it."""
        said = len(self.log())
        self.file.write_text(self.begun + pools)
        self.process.send_signal(signal.SIGHUP)
        self.daemons.until(
            lambda: "new configuration" in self.log()[said:] or "reloaded" in self.log()[said:],
            what="answer to SIGHUP",
        )
        return self.log()[said:]

    def log(self) -> str:
        return self.daemons.log(self.process)

    def numbers(self) -> dict[str, int]:
        """Ledger -> number of its last cycle, all of which went well."""
        found = {}
        for ledger in self.store.clusters():
            with self.store.cluster(ledger).reading() as view:
                cycles = view.history.cycles(limit=1000)
            if cycles:
                assert {row.outcome for row in cycles} == {"ok"}
                found[ledger] = cycles[0].number
        return found

    def assert_serves(self, *ledgers: str) -> None:
        """Waits until two more cycles of these have passed, and none of others."""
        before = self.numbers()

        def passed() -> bool:
            now = self.numbers()
            return all(now.get(name, 0) >= before.get(name, 0) + 2 for name in ledgers)

        self.daemons.until(passed, what=f"cycles of {ledgers}")
        now = self.numbers()
        assert {name for name in now if now[name] != before.get(name)} == set(ledgers)


@pytest.fixture
def reloaded(tmp_path: Path, store: Store) -> Iterator[Reloaded]:
    daemons = Daemons(tmp_path, url_of(store))
    try:
        yield Reloaded(daemons, store)
    finally:
        daemons.kill_all()


def test_pools_join_and_leave_at_sighup_and_a_bad_file_changes_nothing(reloaded: Reloaded) -> None:
    reloaded.assert_serves("c1")

    assert "configuration reloaded" in reloaded.read(PA + REST)
    reloaded.assert_serves("c1/a", "c1/rest")

    assert "configuration reloaded" in reloaded.read(PA + PB + REST)
    reloaded.assert_serves("c1/a", "c1/b", "c1/rest")

    said = reloaded.read(PA + PA)
    assert "the new configuration is refused, the old one stays" in said
    assert "pool[2].name: 'a' is already taken by pool[1]" in said
    reloaded.assert_serves("c1/a", "c1/b", "c1/rest")

    assert "configuration reloaded" in reloaded.read(PB + REST)
    reloaded.assert_serves("c1/b", "c1/rest")

    assert "configuration reloaded" in reloaded.read("")
    reloaded.assert_serves("c1")
    reloaded.process.terminate()
    assert reloaded.process.wait(PATIENCE_SECONDS) == 0
