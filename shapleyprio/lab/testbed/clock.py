"""The clock of a private cluster: fast while its Slurm idles, and slow while it computes.

What Slurm computes takes as long as it takes, however fast the clock goes: sixty times as fast, a
pass of backfilling of half a second would last half a minute, and jobs would wait for it that on a
real cluster do not. So the clock goes as slowly as a real one for as long as those computed, or
waited for a processor, that are watched.

All processes of the cluster have the library of preload.c preloaded and share a file, in which the
owner of the cluster says how fast the clock goes.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

LIBRARY = Path(__file__).with_name("preload.so")
TICK_SECONDS = 0.02  # real ones
UNWATCHED_NANOSECONDS = 100_000_000
"""For so long the clock goes fast after its rate was set, as in preload.c."""

_SECOND = 1_000_000_000
_HEAD = struct.Struct("=qdq")
_SETTING = struct.Struct("=dqq")
_NUMBER = struct.Struct("=q")
_MOST_BYTES = 4096  # of one of the kernel's files


class ClusterClock:
    """The clock of all processes with its environment; that of a speed of 1 is the machine's.

    Args:
        file: which they share; it is made anew.
        speed: cluster seconds per real second at most.
        epoch: second at which it begins; None for now.

    Attributes:
        environment: what makes it the clock of a process.
        speed: as given.
    """

    def __init__(self, file: Path, *, speed: float, epoch: int | None = None) -> None:
        self.speed = speed
        self.environment: Mapping[str, str] = {}
        self._watched: set[int] = set()
        self._slow = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        if speed == 1:
            return
        self.environment, self._shared = _made(file, speed, epoch)
        self._number = 0
        self._rate, self._real, self._shown = _SETTING.unpack_from(self._shared, _HEAD.size)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def now(self) -> float:
        """Returns its seconds since the epoch."""
        if self.speed == 1:
            return time.time()
        with self._lock:
            return self._shown_at(time.monotonic_ns()) / _SECOND

    def real_seconds_until(self, second: float) -> float:
        """Returns the real seconds until a second, if nobody computes; negative if it passed."""
        return (second - self.now()) / self.speed

    def watch(self, process: int) -> None:
        """Goes slowly from now on while a process or its children compute, until it has ended."""
        with self._lock:
            self._watched.add(process)

    @contextmanager
    def slow(self) -> Iterator[None]:
        """Goes slowly meanwhile."""
        with self._lock:
            self._slow += 1
        if self.speed != 1:
            self._set(1)
        try:
            yield
        finally:
            with self._lock:
                self._slow -= 1

    def stop(self) -> None:
        """Ceases to watch; the clock goes on slowly."""
        self._ended.set()
        if self.speed != 1:
            self._thread.join()

    def _shown_at(self, real: int) -> int:
        passed: int = real - self._real
        watched = min(passed, UNWATCHED_NANOSECONDS)
        shown: int = self._shown + int(watched * self._rate) + passed - watched
        return shown

    def _follow(self) -> None:
        told = _Times()
        before: dict[str, int] = {}
        late: dict[str, int] = {}  # what each thread did earlier, and the kernel told only now
        last = time.monotonic_ns()
        while not self._ended.wait(TICK_SECONDS):
            now, times = time.monotonic_ns(), told.read(self._watched)
            passed = now - last
            owed = {
                thread: late.get(thread, 0) + spent - before.get(thread, spent)
                for thread, spent in times.items()
            }
            busy = 1.0 if self._slow else min(sum(owed.values()) / passed, 1.0)
            late = {thread: rest - passed for thread, rest in owed.items() if rest > passed}
            before, last = times, now
            self._set(self.speed * (1 - busy) + busy)
        told.close()

    def _set(self, rate: float) -> None:
        """Lets the clock go on at another rate; readers take the new setting when it is whole."""
        with self._lock:
            real = time.monotonic_ns()
            self._rate, self._real, self._shown = rate, real, self._shown_at(real)
            self._number += 1
            place = _HEAD.size + (self._number & 1) * _SETTING.size
            _SETTING.pack_into(self._shared, place, rate, real, self._shown)
            _NUMBER.pack_into(self._shared, 0, self._number)


class _Times:
    """How long threads have computed or waited for a processor.

    The kernel tells of a wait when it has ended, so it may be longer than since last time.
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int]] = {}  # opened once, read fifty times a second

    def read(self, watched: set[int]) -> dict[str, int]:
        """Returns thread -> its nanoseconds, of processes and their children.

        Args:
            watched: ids of the processes; those that have ended are discarded.
        """
        found: dict[str, int] = {}
        for process in tuple(watched):
            if not self._read(str(process), found):
                watched.discard(process)
        for thread in self._files.keys() - found.keys():
            self._close(thread)
        return found

    def close(self) -> None:
        """Closes all files."""
        for thread in tuple(self._files):
            self._close(thread)

    def _read(self, process: str, found: dict[str, int]) -> bool:
        """Adds the threads of a process and its children; returns whether it is there."""
        tasks = f"/proc/{process}/task"
        try:
            threads = os.listdir(tasks)  # noqa: PTH208
        except OSError:
            return False
        for thread in threads:
            with suppress(OSError, ValueError):
                if thread not in self._files:
                    self._files[thread] = _opened(f"{tasks}/{thread}")
                times, children = self._files[thread]
                computed, waited, _ = os.pread(times, _MOST_BYTES, 0).split()
                found[thread] = int(computed) + int(waited)
                for child in os.pread(children, _MOST_BYTES, 0).split():
                    self._read(child.decode(), found)
        return True

    def _close(self, thread: str) -> None:
        for file in self._files.pop(thread):
            os.close(file)


def _opened(folder: str) -> tuple[int, int]:
    times = os.open(f"{folder}/schedstat", os.O_RDONLY)
    try:
        return times, os.open(f"{folder}/children", os.O_RDONLY)
    except OSError:
        os.close(times)
        raise


def clock_ahead(file: Path, seconds: float) -> Mapping[str, str]:
    """Returns the environment of a process whose clock is ahead; a monotonic one is as it is."""
    environment, _ = _made(file, 1, time.time() + seconds)
    return environment


def _made(file: Path, speed: float, epoch: float | None) -> tuple[Mapping[str, str], mmap.mmap]:
    real = time.monotonic_ns()
    shown = time.time_ns() if epoch is None else int(epoch * _SECOND)
    setting = _SETTING.pack(speed, real, shown)
    file.unlink(missing_ok=True)  # other processes may still have an old one
    file.write_bytes(_HEAD.pack(0, speed, shown - real) + setting + setting)
    with file.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), 0)
    return {"LD_PRELOAD": str(_library_beside(file)), "SHAPLEYPRIO_CLOCK": str(file)}, shared


def _library_beside(file: Path) -> Path:
    """Copies the library to where all who have the clock may read it, without a blank in its path.

    The loader takes a blank or a colon for the end of a name.
    """
    library = file.with_name(LIBRARY.name)
    if not library.exists():
        shutil.copyfile(LIBRARY, library)
    return library
