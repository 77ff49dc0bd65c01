"""Two daemons as processes: one steers whatever happens, and never both."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import make_url

from shapleyprio.daemon.pushing.lease import WATCH_SECONDS
from tests.daemon.played_daemon import FREEZE, IDLE_SECONDS
from tests.daemon.several_daemons import (
    LEASE_SECONDS,
    PATIENCE_SECONDS,
    POLL_SECONDS,
    Daemons,
    Life,
    Wire,
    led_beside_each_other,
)
from tests.store.servers import SERVERS, Databases

BUSY_SECONDS = 100.0
DAY = 86_400
"""What a machine on which all lives and other tests are led at once may need beside; it is less
than the smallest offset of a clock, by which a successor would be late that went by it."""

LIVES: dict[str, Life] = {}


def led(*kinds: object, lease: int = LEASE_SECONDS) -> Callable[..., Callable[..., None]]:
    """Makes a test, for each kind of store, of a function that leads a life.

    The lives of the tests that run are begun together, and each test waits for the end of its own.
    """

    def test_of(lead: Callable[[Daemons], None]) -> Callable[..., None]:
        @pytest.mark.parametrize("kind", kinds)
        def test(kind: str, lives: Mapping[str, Future[None]]) -> None:
            lives[f"{lead.__name__}[{kind}]"].result()

        for kind in ("sqlite", "postgresql", "mariadb"):
            LIVES[f"{lead.__name__}[{kind}]"] = Life(lead, kind, lease)
        return test

    return test_of


@pytest.fixture(scope="module")
def lives(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[None]]]:
    chosen = {item.name: LIVES[item.name] for item in request.session.items if item.name in LIVES}
    folder = tmp_path_factory.mktemp("lives")
    with led_beside_each_other(chosen, databases, folder) as results:
        yield results


@led("sqlite")
def test_a_frozen_daemon_writes_nothing_more_and_a_killed_one_is_succeeded(
    daemons: Daemons,
) -> None:
    first = daemons.start("--standby")
    daemons.until_written_by(1)
    other = daemons.start("--standby")
    daemons.until_standing_by(other)
    time.sleep(LEASE_SECONDS + 1)  # long enough to take over from a daemon that is only slow
    assert set(daemons.tokens()) == {1}

    daemons.freeze(first)
    daemons.until_written_by(2)
    first.send_signal(signal.SIGCONT)
    daemons.until_standing_by(first)

    daemons.kill(other)
    daemons.until_written_by(3)
    again = daemons.start("--standby")
    daemons.until_standing_by(again)
    first.terminate()
    daemons.until_written_by(4)
    assert first.wait(PATIENCE_SECONDS) == 0
    again.terminate()
    assert again.wait(PATIENCE_SECONDS) == 0
    daemons.assert_fenced()


@led("sqlite")
def test_wrong_clocks_take_no_lease_away_and_delay_no_successor(daemons: Daemons) -> None:
    """Each of them steers once, and is watched by those that have not steered yet."""
    left = [daemons.start("--standby")]
    daemons.until_written_by(1)
    left += [daemons.start_with_clock(offset) for offset in (301, -DAY, 365 * DAY, -301)]
    for process in left[1:]:
        daemons.until_standing_by(process)
    leader = left[0]
    for token in range(1, len(left) + 1):
        if token > 1:
            killed_at = time.monotonic()
            daemons.kill(leader)
            left.remove(leader)
            leader = daemons.until_steering(left)
            daemons.until_written_by(token)
            took = time.monotonic() - killed_at
            assert took < LEASE_SECONDS + WATCH_SECONDS + POLL_SECONDS + BUSY_SECONDS, took
        time.sleep(3 * WATCH_SECONDS)  # each of the others looks at the lease several times
        assert max(daemons.tokens()) == token
    daemons.assert_fenced()


@led("sqlite", lease=86_400)
def test_who_stops_in_order_hands_over_at_once(daemons: Daemons) -> None:
    first = daemons.start()
    daemons.until_written_by(1)
    other = daemons.start("--standby")
    daemons.until_standing_by(other)
    first.terminate()
    daemons.until_written_by(2)  # and not a day later
    assert first.wait(PATIENCE_SECONDS) == 0
    daemons.assert_fenced()


@led(*SERVERS)
def test_who_freezes_within_a_transaction_is_succeeded_and_undone(daemons: Daemons) -> None:
    trigger = daemons.folder / "freeze"
    first = daemons.start(**{FREEZE: str(trigger)})
    daemons.until_written_by(1)
    other = daemons.start("--standby")
    daemons.until_standing_by(other)
    trigger.touch()
    daemons.until_frozen(first)
    frozen_at = time.monotonic()
    daemons.until_written_by(2)
    took = time.monotonic() - frozen_at
    assert took < 2 * IDLE_SECONDS + BUSY_SECONDS, took
    trigger.unlink()
    first.send_signal(signal.SIGCONT)
    daemons.until_standing_by(first)
    daemons.assert_fenced()


@led("sqlite")
def test_the_same_host_name_and_process_number_do_not_let_two_steer(daemons: Daemons) -> None:
    inside = ("unshare", "--fork", "--pid", "--uts", "--kill-child", "sh", "-c")
    alike = (*inside, 'hostname node && exec "$@"', "sh")
    try:
        done = subprocess.run([*alike, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode != 0:
        pytest.skip("we may make no namespaces")
    daemons.start(before=alike)
    daemons.until_written_by(1)
    refused = daemons.start(before=alike)
    assert refused.wait(PATIENCE_SECONDS) == 6
    assert "process 1 on node steers cluster c1" in daemons.log(refused)
    assert set(daemons.tokens()) == {1}


@contextmanager
def wired(daemons: Daemons) -> Iterator[tuple[Wire, str]]:
    """A wire to PostgreSQL, and the URL of the store through it."""
    with ExitStack() as stack:
        short = stack.enter_context(TemporaryDirectory(dir="/tmp"))
        name = ".s.PGSQL.5432"
        url = make_url(daemons.url)
        wire = Wire(f"{url.query['host']}/{name}", Path(short, name))
        stack.callback(wire.mend)
        yield wire, url.set(query={"host": short}).render_as_string(hide_password=False)


@led(SERVERS[0])
def test_who_is_cut_off_from_the_database_writes_nothing_and_stops_when_asked_to(
    daemons: Daemons,
) -> None:
    with wired(daemons) as (wire, through):
        first = daemons.start(url=through)
        daemons.until_written_by(1)
        other = daemons.start("--standby")
        daemons.until_standing_by(other)

        wire.cut()
        daemons.until_written_by(2)
        wire.mend()
        daemons.until_standing_by(first)

        daemons.kill(other)
        daemons.until_written_by(3)
        wire.cut()
        time.sleep(LEASE_SECONDS)  # its threads ask the store by then, and hear nothing
        first.terminate()
        asked_at = time.monotonic()
        assert first.wait(PATIENCE_SECONDS) == 4
        assert time.monotonic() - asked_at < 60  # a busy machine's; alone it takes 8
        assert "the store does not answer" in daemons.log(first)
    daemons.assert_fenced()


@led(SERVERS[0])
def test_who_is_stopped_as_soon_as_the_database_is_cut_off_does_not_say_that_all_went_well(
    daemons: Daemons,
) -> None:
    with wired(daemons) as (wire, through):
        daemon = daemons.start(url=through)
        daemons.until_written_by(1)
        wire.cut()
        daemon.terminate()  # between cycles, before a sign of life is due
        assert daemon.wait(PATIENCE_SECONDS) == 4
        assert "the store does not answer" in daemons.log(daemon)


@led(SERVERS[0])
def test_nobody_takes_over_from_who_is_cut_off_with_a_journal(daemons: Daemons) -> None:
    journal = str(daemons.folder / "journal")
    with wired(daemons) as (wire, through):
        first = daemons.start(url=through, journal=journal)
        daemons.until_written_by(1)
        standby = daemons.start("--standby")
        daemons.until_standing_by(standby)
        wire.cut()
        time.sleep(3 * LEASE_SECONDS)
        assert set(daemons.tokens()) == {1}
        refused = daemons.start()
        assert refused.wait(PATIENCE_SECONDS) == 6
        assert "may steer cluster c1 by its store.journal" in daemons.log(refused)
        daemons.kill(first)
        time.sleep(2 * LEASE_SECONDS)
        assert set(daemons.tokens()) == {1}
        wire.mend()

        again = daemons.start(url=through, journal=journal)
        daemons.until_written_by(2)
        second = daemons.start(url=through, journal=journal)
        assert second.wait(PATIENCE_SECONDS) == 6
        assert f"has {journal} (store.journal); stop it first" in daemons.log(second)
        assert "steering" not in daemons.log(standby)

        daemons.kill(again)
        taken = daemons.start("--take-over")
        daemons.until_written_by(3)
        taken.terminate()
        daemons.until_written_by(4)
        assert "steering" in daemons.log(standby)
    daemons.assert_fenced()
