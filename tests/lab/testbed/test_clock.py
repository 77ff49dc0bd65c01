"""The clock of a private cluster, in processes that have its library preloaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapleyprio.lab.testbed.clock import ClusterClock, clock_ahead

SPEED = 60

WAITING = """
import asyncio, json, queue, select, threading, time

def in_a_queue():
    try:
        queue.Queue().get(timeout=30)
    except queue.Empty:
        pass

def in_a_condition():
    condition = threading.Condition()
    with condition:
        condition.wait(30)

def in_a_poll():
    polled = select.poll()
    polled.poll(30_000)

ways = {
    "sleep": lambda: time.sleep(30),
    "select": lambda: select.select([], [], [], 30),
    "poll": in_a_poll,
    "epoll": lambda: select.epoll().poll(30),
    "asyncio": lambda: asyncio.run(asyncio.sleep(30)),
    "event": lambda: threading.Event().wait(30),
    "condition": in_a_condition,
    "queue": in_a_queue,
}
found = {}
for name, wait in ways.items():
    began = time.time(), time.monotonic()
    wait()
    found[name] = [time.time() - began[0], time.monotonic() - began[1]]
print(json.dumps(found))
"""


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[ClusterClock]:
    made = ClusterClock(tmp_path / "clock", speed=SPEED)
    yield made
    made.stop()


def run(clock: ClusterClock, *argv: str) -> str:
    done = subprocess.run(
        argv, env={**os.environ, **clock.environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_every_way_of_waiting_follows_the_clock_and_none_ends_early(clock: ClusterClock) -> None:
    began = time.monotonic()
    found = json.loads(run(clock, sys.executable, "-c", WAITING))
    real = time.monotonic() - began
    assert len(found) == 8
    for name, (wall, monotonic) in found.items():
        assert 30 <= wall < 30 + SPEED * real, name
        assert 29.99 <= monotonic < 30 + SPEED * real, name
    assert sum(wall for wall, _ in found.values()) > 2 * real  # it was faster than the machine's


def test_all_processes_and_its_owner_see_the_same_time(clock: ClusterClock) -> None:
    before = clock.now()
    first, second = (float(run(clock, "date", "+%s.%N")) for _ in range(2))
    assert before <= first <= second <= clock.now()
    assert abs(before - time.time()) < SPEED * 60


def test_it_begins_where_it_is_set(tmp_path: Path) -> None:
    clock = ClusterClock(tmp_path / "clock", speed=SPEED, epoch=1_772_438_400)
    try:
        assert 1_772_438_400 <= float(run(clock, "date", "+%s.%N")) < 1_772_438_400 + 60 * SPEED
    finally:
        clock.stop()


COMPUTING = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
CHILD = f"subprocess.run([sys.executable, '-c', {COMPUTING!r}], check=False)"


def passed(clock: ClusterClock, real_seconds: float) -> float:
    """How many times as fast as the machine's clock it is for so long."""
    began, shown = time.monotonic(), clock.now()
    time.sleep(real_seconds)
    return (clock.now() - shown) / (time.monotonic() - began)


def test_it_is_slow_for_as_long_as_its_owner_wants(clock: ClusterClock) -> None:
    with clock.slow():
        assert passed(clock, 0.3) == pytest.approx(1, abs=0.2)
    assert passed(clock, 0.5) > 2


@pytest.mark.parametrize("program", [COMPUTING, f"import subprocess, sys\n{CHILD}"])
def test_it_is_slow_while_a_watched_process_or_a_child_computes(
    clock: ClusterClock, program: str
) -> None:
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        clock.watch(process.pid)
        time.sleep(0.2)
        computing = passed(clock, 1)
        process.kill()
    idle = passed(clock, 1)
    assert computing < 0.2 * SPEED
    assert idle > 2 * computing


def test_a_clock_that_nobody_watches_is_slow(clock: ClusterClock) -> None:
    clock.stop()
    time.sleep(0.2)
    assert passed(clock, 0.3) == pytest.approx(1, abs=0.2)


def test_a_clock_may_be_ahead_or_behind_and_monotonic_all_the_same(tmp_path: Path) -> None:
    for seconds in (86_400, -3600):
        environment = {**os.environ, **clock_ahead(tmp_path / "clock", seconds)}
        code = "import time; print(time.time(), time.monotonic())"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        wall, monotonic = map(float, done.stdout.split())
        assert wall - time.time() == pytest.approx(seconds, abs=60)
        assert monotonic == pytest.approx(time.monotonic(), abs=60)


def test_a_speed_of_one_is_the_machines_clock(tmp_path: Path) -> None:
    clock = ClusterClock(tmp_path / "clock", speed=1)
    assert not clock.environment
    with clock.slow():
        assert clock.now() == pytest.approx(time.time(), abs=1)
    clock.stop()
    assert not (tmp_path / "clock").exists()
